//! The repository: its location and the text of its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::child;

/// Folder of the workspace.
#[derive(Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Finds the workspace: the parent of this package's folder, which cargo passes in the environment.
    pub(crate) fn find() -> Result<Self> {
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set; run this with `cargo xtask`")?;
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

    /// Folder for cargo's build output, with all of cargo's configuration applied.
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

/// Folders that are never tracked. Used in a copy of the repository without git's data.
const UNTRACKED: &[&str] = &[".git", "target", "__pycache__"];

/// A text file. The path is relative to the root and separated by `/`.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Reads every text file that is tracked or not ignored: a new file is checked before its first commit.
pub(crate) fn text_files(root: &Root) -> Result<Vec<TextFile>> {
    let paths = match listed(root) {
        Some(paths) => paths,
        None => walked(root)?,
    };
    let caches = cache_folders(&paths);
    let files = paths
        .into_iter()
        .filter(|path| !caches.iter().any(|cache| path.starts_with(cache)));
    // A file that cannot be read as text is an image, or was deleted without a commit.
    Ok(files
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(&path)).ok()?;
            Some(TextFile { path, text })
        })
        .collect())
}

/// Lists the files that git tracks or does not ignore. `None` in a copy without git's data, or one that git
/// does not trust.
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

/// Lists all files below the root, except in folders that are never tracked.
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

/// Returns the folders tagged as a cache (a second target folder, pytest's), each with a trailing slash.
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
