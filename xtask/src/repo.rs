//! The repository: where it is, and the text of its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::child;

/// The folder of the workspace.
#[derive(Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Cargo says where this package is when it runs us; the workspace is one folder up.
    pub(crate) fn find() -> Result<Self> {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").context("start this with `cargo xtask`")?;
        let parent = Path::new(&package)
            .parent()
            .context("xtask has no parent folder")?;
        Ok(Self(parent.to_path_buf()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Where cargo puts what it builds, whoever decided that.
    pub(crate) fn target_dir(&self) -> Result<PathBuf> {
        #[derive(serde::Deserialize)]
        struct Metadata {
            target_directory: PathBuf,
        }
        let json =
            child::output(child::cargo(self).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Metadata = serde_json::from_str(&json).context("cannot read `cargo metadata`")?;
        Ok(metadata.target_directory)
    }
}

/// Folders that are never tracked, for a copy of the repository without git's data.
const UNTRACKED: &[&str] = &[".git", "target", "__pycache__"];

/// A text file. The path is relative to the root, with `/` between its parts.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file that is tracked, or would be if it were added: a new file is checked before its first commit.
pub(crate) fn text_files(root: &Root) -> Result<Vec<TextFile>> {
    let paths = match listed(root) {
        Some(paths) => paths,
        None => walked(root)?,
    };
    let caches = cache_folders(&paths);
    let files = paths
        .into_iter()
        .filter(|path| !caches.iter().any(|cache| path.starts_with(cache)));
    // What cannot be read as text is an image, or was deleted and not committed yet.
    Ok(files
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(&path)).ok()?;
            Some(TextFile { path, text })
        })
        .collect())
}

/// The files git knows or would take. `None` in a copy without git's data, or one git does not trust.
fn listed(root: &Root) -> Option<BTreeSet<String>> {
    let list = ["ls-files", "-z", "-co", "--exclude-standard"];
    let output = child::command(root, "git").args(list).output().ok()?;
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    Some(
        text.split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// All files below the root, except what git would never list.
fn walked(root: &Root) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    let mut folders = vec![root.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let path = entry.path();
                paths.extend(
                    path.strip_prefix(root.path())
                        .ok()
                        .and_then(Path::to_str)
                        .map(str::to_owned),
                );
            } else if entry.file_type()?.is_dir() && !UNTRACKED.iter().any(|name| entry.file_name() == *name)
            {
                folders.push(entry.path());
            }
        }
    }
    Ok(paths)
}

/// Folders that call themselves a cache (a second target folder, pytest's), each with a slash at its end.
fn cache_folders(paths: &BTreeSet<String>) -> Vec<String> {
    let tags = paths.iter().filter_map(|path| path.strip_suffix("CACHEDIR.TAG"));
    tags.filter(|folder| !folder.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_by_their_tag() {
        let paths = ["README.md", "out/CACHEDIR.TAG", "out/debug/x.rs", "src/out.rs"];
        assert_eq!(cache_folders(&paths.map(str::to_owned).into()), ["out/"]);
    }
}
