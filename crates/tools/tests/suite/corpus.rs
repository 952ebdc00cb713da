//! Every input that fuzzing kept, and every one that it once found something with, through the same checks.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use windlass_tools::fuzzing;

/// SAFE-2: what is not refused has every program named, whatever the text.
#[test]
fn shell() {
    assert_eq!(failing("shell", fuzzing::shell), [""; 0]);
}

/// TOOL-6 (S6.8): each value stays inside one argument and makes no option of it, whatever the file and the call.
#[test]
fn declared() {
    assert_eq!(failing("declared", fuzzing::declared), [""; 0]);
}

/// TOOL-2: an edit changes what it says it found and nothing else, whatever the texts.
#[test]
fn edit() {
    assert_eq!(failing("edit", fuzzing::edit), [""; 0]);
}

/// TOOL-2: any text may be a patch, and a diff from one text to another leads there.
#[test]
fn patch() {
    assert_eq!(failing("patch", fuzzing::patch), [""; 0]);
}

/// SAFE-3 (S6.10, S6.11): what is opened is inside and not denied, however its path is spelled.
#[test]
fn paths() {
    assert_eq!(failing("paths", fuzzing::paths), [""; 0]);
}

/// The names of the inputs that a check does not hold for.
fn failing(target: &str, check: fn(&[u8])) -> Vec<String> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let kept = inputs(&fuzz.join("corpus").join(target));
    assert!(!kept.is_empty(), "fuzz/corpus/{target} has no inputs");
    let found = inputs(&fuzz.join("regressions").join(target));
    let fails = |path: &&PathBuf| {
        let data = fs::read(path).expect("an input can be read");
        catch_unwind(|| check(&data)).is_err()
    };
    let failing = kept.iter().chain(&found).filter(fails);
    failing.map(|path| path.display().to_string()).collect()
}

/// The files of a folder; none when it is missing.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect()
}
