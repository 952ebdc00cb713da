use std::sync::Arc;

use super::*;

/// Masks one word.
fn redact() -> RedactLine {
    Box::new(|line: &str| line.replace("hunter2", "[redacted]"))
}

fn logged(format: LogFormat, level: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("logs/windlass.log");
    let file = RotatingFile::open(path.clone(), 1 << 20).expect("a file");
    let clock = windlass_core::clock::system();
    let writer = LogWriter::new(level, format, file, redact(), Arc::clone(&clock)).expect("a level");
    tracing::subscriber::with_default(writer, || {
        tracing::info!(tokens_before = 10, key = "hunter2", "compacted\nand more");
        tracing::debug!("details");
        tracing::info!(target: "h2::frame", "a frame");
        tracing::warn!(target: "h2::frame", "a warning");
    });
    std::fs::read_to_string(path).expect("the log")
}

/// OBS-1: lines are text or JSON, without keys, and nobody can write a line of their own.
#[test]
fn lines_have_fields_and_no_keys() {
    let text = logged(LogFormat::Text, "info");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let expected = "compacted\\nand more tokens_before=10 key=[redacted]";
    assert!(lines[0].ends_with(expected), "{text}");
    assert!(lines[0].contains(" INFO windlass_telemetry"), "{text}");
    assert!(lines[1].contains("a warning"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(logged(LogFormat::Json, "debug").lines().next().expect("a line")).expect("JSON");
    assert_eq!(json["message"], "compacted\nand more");
    assert_eq!(json["tokens_before"], 10);
    assert_eq!(json["key"], "[redacted]");
    assert_eq!(json["level"], "info");
    assert!(logged(LogFormat::Text, "debug").contains("details"));
}

/// OBS-1: a full file is renamed, three old ones are kept, and only their user can read them.
#[test]
fn a_full_file_is_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("windlass.log");
    let mut file = RotatingFile::open(path.clone(), 100).expect("a file");
    for number in 0..60 {
        file.write_line(&format!("line {number:03} {}", "x".repeat(20)))
            .expect("written");
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "windlass.log",
            "windlass.log.1",
            "windlass.log.2",
            "windlass.log.3"
        ]
    );
    for name in names {
        let data = std::fs::metadata(folder.path().join(&name)).expect("a file");
        assert!(data.len() <= 100, "{name}");
        assert_eq!(data.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(
        std::fs::read_to_string(&path)
            .expect("the log")
            .contains("line 059")
    );
}
