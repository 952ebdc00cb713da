//! Runs the checks of the fuzzer on its corpus and on every input that once failed.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use windlass_providers::fuzzing;

/// PROV-12: any chunking of any bytes gives the same events and the same reply.
#[test]
fn stream() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let kept = inputs(&fuzz.join("corpus/stream"));
    assert!(!kept.is_empty(), "fuzz/corpus/stream has no inputs");
    let found = inputs(&fuzz.join("regressions/stream"));
    let fails = |path: &&PathBuf| {
        let data = fs::read(path).expect("an input can be read");
        catch_unwind(|| fuzzing::stream(&data)).is_err()
    };
    let failing: Vec<&PathBuf> = kept.iter().chain(&found).filter(fails).collect();
    assert!(failing.is_empty(), "{failing:?}");
}

/// Lists the files of a folder; empty if the folder is missing.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect()
}
