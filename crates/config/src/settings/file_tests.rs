//! Unusual files: foreign line ends, broken, huge, not files at all.

use std::time::Instant;

use super::fixture_tests::Bed;

/// CFG-1
#[test]
fn syntax_errors_have_a_place() {
    let cases: [(&str, &str); 6] = [
        ("model = ", "config.toml:1:9: not valid TOML: "),
        ("model = \"x\"\n[agent\n", "config.toml:2:7: not valid TOML: "),
        ("é = 1", "config.toml:1:1: not valid TOML: "),
        ("model = \"é\" é", "config.toml:1:13: not valid TOML: "),
        (
            "model = \"x\"\nmodel = \"y\"",
            "config.toml:2:1: not valid TOML: duplicate key",
        ),
        ("\u{feff}model =\r\n", "config.toml:1:8: not valid TOML: "),
    ];
    for (text, expected) in cases {
        let problems = Bed::new().user(text).problems();
        assert!(problems.starts_with(expected), "{text:?} gave {problems}");
        assert_eq!(problems.lines().count(), 1, "{problems}");
    }
}

/// CFG-1
#[test]
fn byte_order_marks_and_line_ends_do_not_matter() {
    let bed = Bed::new().user("\u{feff}model = \"x\"\r\n\r\n[agent]\r\nmax_iterations = 7\r\n");
    assert_eq!(bed.line("model"), "model = \"x\"  # config.toml:1");
    assert_eq!(
        bed.line("agent.max_iterations"),
        "agent.max_iterations = 7  # config.toml:4"
    );
    let wrong = Bed::new().user("\u{feff}modle = \"x\"\r\n[agent]\r\n  modle = 1\r\n");
    assert_eq!(
        wrong.problems(),
        "config.toml:1:1: modle: unknown key; did you mean `model`?\n\
         config.toml:3:3: agent.modle: unknown key; did you mean `model`?"
    );
}

/// CFG-1
#[test]
fn an_empty_file_sets_nothing() {
    for text in ["", "\n", "# nothing\n", "\u{feff}", "[agent]\n[providers.x]\n"] {
        let settings = Bed::new().user(text).project(text).settings();
        assert_eq!(
            super::show(&settings, true),
            super::show(&Bed::new().settings(), true)
        );
    }
}

/// CFG-1
#[test]
fn text_that_is_not_utf8_has_a_place() {
    let bed = Bed::new().user(b"model = \"x\"\n# caf\xe9\n");
    assert_eq!(
        bed.problems(),
        "config.toml:2:6: not UTF-8 text; save the file as UTF-8"
    );
}

/// CFG-1
#[test]
fn a_large_broken_file_is_refused_soon() {
    let noise: Vec<u8> = (0..1_000_000u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let letters: Vec<u8> = noise.iter().map(|byte| b' ' + byte % 95).collect();
    let keys: String = (0..50_000).map(|index| format!("zebra_{index} = 1\n")).collect();
    let inline: String = (0..50_000).map(|index| format!("z{index} = 1, ")).collect();
    let files: [(&str, Vec<u8>); 8] = [
        ("noise", noise),
        ("letters", letters),
        ("one long key", "a".repeat(1_000_000).into_bytes()),
        (
            "one long key with a value",
            format!("{} = 1", "a".repeat(1_000_000)).into_bytes(),
        ),
        ("deep arrays", format!("a={}", "[".repeat(500_000)).into_bytes()),
        ("deep keys", "a.".repeat(400_000).into_bytes()),
        ("many keys", keys.into_bytes()),
        ("one line", format!("agent = {{ {inline} }}").into_bytes()),
    ];
    for (name, bytes) in files {
        let bed = Bed::new().user(&bytes);
        let start = Instant::now();
        let problems = bed.problems();
        assert!(
            start.elapsed() < windlass_testkit::PATIENCE,
            "{name} took {:?}",
            start.elapsed()
        );
        assert!(
            problems.lines().count() <= 21 && problems.len() < 10_000,
            "{name} gave {} bytes",
            problems.len()
        );
    }
    let bed = Bed::new().user(vec![b'\n'; (1 << 20) + 1]);
    assert_eq!(
        bed.problems(),
        "config.toml: is larger than 1 MiB, expected a settings file"
    );
}

/// CFG-1
#[test]
fn a_folder_is_no_file() {
    let bed = Bed::new();
    std::fs::create_dir(bed.user_file()).unwrap();
    std::fs::create_dir(bed.project_file()).unwrap();
    let bed = bed.trusted();
    assert_eq!(
        bed.problems(),
        "config.toml: is a folder, expected a file\nproject/config.toml: is a folder, expected a file"
    );
    let named = bed.user_file();
    assert!(
        bed.named(&named)
            .problems()
            .starts_with("config.toml: is a folder, expected a file")
    );
}

/// CFG-1
#[test]
fn a_named_file_must_exist() {
    let bed = Bed::new();
    let named = bed.user_file();
    let problems = bed.named(&named).problems();
    assert!(
        problems.starts_with("config.toml: cannot be read: No such file"),
        "{problems}"
    );
}

/// CFG-1
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let bed = Bed::new().user("model = \"x\"");
    std::fs::set_permissions(bed.user_file(), std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read everything; a link to itself is unreadable even for root.
    if std::fs::read(bed.user_file()).is_ok() {
        std::fs::remove_file(bed.user_file()).unwrap();
        std::os::unix::fs::symlink(bed.user_file(), bed.user_file()).unwrap();
    }
    let problems = bed.problems();
    assert!(
        problems.starts_with("config.toml: cannot be read: "),
        "{problems}"
    );
}

/// CFG-1, SAFE-6
#[cfg(unix)]
#[test]
fn a_socket_is_not_waited_for() {
    let bed = Bed::new();
    let _socket = std::os::unix::net::UnixListener::bind(bed.user_file()).unwrap();
    assert_eq!(bed.problems(), "config.toml: is not a regular file");
    let bed = Bed::new().project("model = \"x\"");
    std::fs::remove_file(bed.project_file()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.project_file()).unwrap();
    assert_eq!(
        bed.warnings(),
        [
            "repo/.windlass: not in effect, because this folder cannot be trusted as it is now: \
          .windlass/config.toml is neither a file nor a folder"
        ]
    );
    assert_eq!(bed.settings().model, None);
}
