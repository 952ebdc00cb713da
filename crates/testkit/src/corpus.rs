//! The stored inputs of the fuzz targets.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Returns the inputs in `fuzz/corpus` and `fuzz/regressions` on which a fuzz target's check panics.
///
/// # Panics
/// When the target has no corpus, or an input cannot be read.
pub fn failing_inputs(target: &str, check: fn(&[u8])) -> Vec<String> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let corpus = inputs(&fuzz.join("corpus").join(target));
    assert!(!corpus.is_empty(), "fuzz/corpus/{target} has no inputs");
    let regressions = inputs(&fuzz.join("regressions").join(target));
    let fails = |path: &&PathBuf| {
        let data = crate::must(fs::read(path), "a stored input can be read");
        catch_unwind(|| check(&data)).is_err()
    };
    let failing = corpus.iter().chain(&regressions).filter(fails);
    failing.map(|path| path.display().to_string()).collect()
}

/// Lists the files of a folder. A missing folder has none.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| crate::must(entry, "a folder can be listed").path())
        .collect()
}
