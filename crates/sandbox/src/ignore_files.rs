//! Ignore files that a walk can read. The walker reads each one whole, and would wait for a pipe and never finish a device.

use std::path::Path;

/// Names of ignore files in a folder.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Largest ignore file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Returns true if a walk may read the ignore files of this folder: they are regular files of at most a megabyte. Otherwise
/// the folder is left out, or its ignore files do not count.
pub fn can_read_ignore_files(folder: &Path) -> bool {
    let is_fine = |name: &&str| match std::fs::metadata(folder.join(name)) {
        Ok(about) => about.is_file() && about.len() <= LARGEST,
        Err(_) => true,
    };
    NAMES.iter().all(is_fine)
}

/// Returns true if a walk may read the ignore files of this folder and of those above it.
pub fn can_read_ignore_files_above(folder: &Path) -> bool {
    folder.ancestors().all(can_read_ignore_files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-6: ignore files of any kind and size neither stop a walk nor fill the memory.
    #[test]
    fn only_ordinary_ignore_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        std::fs::create_dir_all(&below).unwrap();
        let fine = || can_read_ignore_files(folder.path());
        assert!(fine());
        std::fs::write(folder.path().join(".ignore"), "*.o\n").unwrap();
        assert!(fine());
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(".gitignore")).unwrap();
        assert!(!fine() && can_read_ignore_files(&below) && !can_read_ignore_files_above(&below));
        std::fs::remove_file(folder.path().join(".gitignore")).unwrap();
        let large = std::fs::File::create(folder.path().join(".gitignore")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(!fine());
    }
}
