//! Copies of skills that live in Windlass's own folders, which tools cannot read.

use std::path::{Path, PathBuf};

use windlass_sandbox::{read_regular, sha256_hex};

/// Maximum number of files, their maximum size in total, and the maximum depth.
const MOST_FILES: usize = 1_000;
const MOST_BYTES: usize = 20 << 20;
const DEEPEST: usize = 10;

/// Returns a copy of a folder, made once for each content.
///
/// # Errors
/// Fails with the reason if the folder is too large or cannot be copied.
pub fn copied(folder: &Path, parent: &Path) -> Result<PathBuf, String> {
    let mut files = Vec::new();
    read_tree(folder, folder, 0, &mut files)?;
    let name = folder.file_name().unwrap_or_default();
    let place = parent.join(tree_hash(&files)).join(name);
    if place.is_dir() {
        return Ok(place);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(parent).map_err(failed)?;
    let draft = tempfile::tempdir_in(parent).map_err(failed)?;
    for file in &files {
        let path = draft.path().join(name).join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        std::fs::write(&path, &file.bytes).map_err(failed)?;
        if file.is_program {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
    }
    let target = place.parent().unwrap_or(&place);
    match std::fs::rename(draft.path(), target) {
        Ok(()) => {
            let _ = draft.keep();
        }
        // Another process made it.
        Err(_) if place.is_dir() => {}
        Err(error) => return Err(failed(error)),
    }
    Ok(place)
}

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Path relative to the folder.
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// True if it can be run.
    pub is_program: bool,
}

/// Returns one hash for all files.
pub fn tree_hash(files: &[TreeFile]) -> String {
    let mut all = Vec::new();
    for file in files {
        let line = format!(
            "{} {} {}\n",
            file.path.display(),
            sha256_hex(&file.bytes),
            file.is_program
        );
        all.extend(line.into_bytes());
    }
    sha256_hex(&all)
}

/// Reads all files below a folder, by path. Links are left out, and so is `.git`.
///
/// # Errors
/// Fails with the reason if there are too many files, or one cannot be read.
pub fn read_tree(root: &Path, folder: &Path, depth: usize, files: &mut Vec<TreeFile>) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    if depth > DEEPEST {
        return Err(format!("{}: nested too deeply", folder.display()));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .take(MOST_FILES + 1)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let data = path.symlink_metadata().map_err(failed)?;
        if data.is_dir() && path.file_name().is_some_and(|name| name != ".git") {
            read_tree(root, &path, depth + 1, files)?;
        } else if data.is_file() {
            let bytes = read_regular(&path, MOST_BYTES as u64).map_err(failed)?;
            let total: usize = files.iter().map(|file: &TreeFile| file.bytes.len()).sum();
            if files.len() >= MOST_FILES || total + bytes.len() > MOST_BYTES {
                let most = MOST_BYTES >> 20;
                return Err(format!(
                    "{}: more than {MOST_FILES} files or {most} MB",
                    root.display()
                ));
            }
            files.push(TreeFile {
                path: path.strip_prefix(root).unwrap_or(&path).to_owned(),
                bytes,
                is_program: data.permissions().mode() & 0o111 != 0,
            });
        }
    }
    Ok(())
}
