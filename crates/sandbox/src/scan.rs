//! Searches the writable folders for what a sandbox must know by its path: files with denied names, and nested
//! repositories. Removes the temporary files that a killed process of ours left there.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::backend::SYSTEM_FOLDERS;
use crate::handle::{Parents, is_abandoned};
use crate::{Roots, SandboxPolicy};

/// Maximum number of entries that are looked at. Beyond it commands ask for approval.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;

/// The paths that were found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Files and folders with a denied name.
    pub(crate) denied: Vec<PathBuf>,
    /// The `.git` of nested repositories.
    pub(crate) protected: Vec<PathBuf>,
    /// True if the search ended early, so that more may be there.
    pub(crate) is_partial: bool,
}

impl Scan {
    /// Searches folders, whose paths must be real. No folder is left out, and no link is followed.
    pub(crate) fn of(roots: &Roots, folders: &[PathBuf], max_entries: usize) -> Self {
        let mut scan = Self::default();
        let mut left = max_entries;
        let nested = |folder: &&PathBuf| {
            let above = |other: &PathBuf| other != *folder && folder.starts_with(other);
            !folders.iter().any(above)
        };
        let mut queue: VecDeque<PathBuf> = folders.iter().filter(nested).cloned().collect();
        while let Some(folder) = queue.pop_front() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(fewer) = left.checked_sub(1) else {
                    scan.is_partial = true;
                    return scan;
                };
                left = fewer;
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = entry.path();
                if roots.denies_name(&entry.file_name()) {
                    scan.denied.push(path);
                } else if entry.file_name() == ".git" {
                    if !folders.contains(&folder) {
                        scan.nested_repository(&path);
                    }
                } else if is_folder && !is_system(&path) {
                    queue.push_back(path);
                } else if is_abandoned(&entry) {
                    // Best effort: whoever cannot remove it is not hurt by it.
                    let _ = roots
                        .locate(&path, Parents::Exist)
                        .and_then(|place| place.remove());
                }
            }
        }
        scan
    }

    /// Adds the paths to a policy.
    pub(crate) fn add_to(&self, policy: &mut SandboxPolicy) {
        policy.hidden.extend(self.denied.iter().cloned());
        policy.read_only.extend(self.protected.iter().cloned());
    }

    /// Protects a repository inside a writable folder. An empty folder is not one.
    fn nested_repository(&mut self, git: &Path) {
        let is_empty = fs::read_dir(git).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty {
            self.protected.push(git.to_owned());
        }
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM_FOLDERS.iter().any(|system| path == Path::new(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a folder");
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, "").expect("a file");
        }
        (folder, root)
    }

    fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        paths.sort();
        paths
    }

    /// SAFE-3: files and folders with a denied name are found wherever they are, also in third-party folders.
    #[test]
    fn denied_names_are_found() {
        let (_folder, root) = tree(&[
            ".env",
            "a/b/.env.local",
            "a/b/.ENV",
            ".env.example",
            "node_modules/x/.env",
            "deep/1/2/3/4/5/6/7/8/9/.env",
            "service/.env.d/key",
            "a/plain",
        ]);
        let roots = Roots::new(std::slice::from_ref(&root), &[".env*".into()]).expect("roots");
        let scan = Scan::of(&roots, std::slice::from_ref(&root), MAX_ENTRIES);
        let expected = [
            ".env",
            "a/b/.ENV",
            "a/b/.env.local",
            "deep/1/2/3/4/5/6/7/8/9/.env",
            "node_modules/x/.env",
            "service/.env.d",
        ];
        assert_eq!(sorted(scan.denied), expected.map(|name| root.join(name)));
        assert!(!scan.is_partial);
        assert!(Scan::of(&roots, &[root], 5).is_partial);
    }

    /// SAFE-10: nested repositories are found; the one at the top is not nested.
    #[test]
    fn nested_repositories_are_found() {
        let (_folder, root) = tree(&[".git/HEAD", "lib/.git/HEAD", "sub/.git", "x/y"]);
        fs::create_dir(root.join("x/.git")).expect("a folder");
        let scan = Scan::of(&Roots::default(), std::slice::from_ref(&root), MAX_ENTRIES);
        assert_eq!(
            sorted(scan.protected),
            ["lib/.git", "sub/.git"].map(|name| root.join(name))
        );
    }
}
