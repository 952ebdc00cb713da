//! Programs by absolute path: a file in the working directory is never run instead of a system program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds the program `cmd`. A plain name is searched in the absolute folders of the search path `path`.
pub fn find(cmd: &str, path: &str) -> Option<PathBuf> {
    if cmd.starts_with('/') {
        return Some(PathBuf::from(cmd)).filter(|file| is_program(file));
    }
    path.split(':')
        .map(|folder| Path::new(folder).join(cmd))
        .find(|file| is_program(file))
}

fn is_program(path: &Path) -> bool {
    path.is_absolute()
        && fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-1: relative folders and files that are not executable are skipped.
    #[test]
    fn only_absolute_programs_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tool");
        fs::write(&file, "").expect("a file");
        let path = format!(":.:relative:{}", folder.path().display());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
        assert_eq!(find("tool", &path), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
        assert_eq!(find("tool", &path), Some(file.clone()));
        assert_eq!(find(&file.display().to_string(), ""), Some(file));
        assert_eq!(find("tool", ":.:relative"), None);
    }
}
