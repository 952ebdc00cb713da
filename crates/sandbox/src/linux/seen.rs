//! The files that a launcher was started with. A launcher's mounts and rules are about the files that had the
//! names then; so before each command every path of the policy is checked again, and the launcher is replaced
//! if one was created, removed or replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::placeholders::is_placeholder;
use super::resolved::ResolvedPolicy;

type Object = (u64, u64);
type Changed = (i64, i64);

/// The paths of a policy, and the files that they name.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Each must still be the same file, or still be absent.
    places: Vec<(PathBuf, Option<Object>)>,
    /// Folders whose names the rules list: each must still contain the same ones.
    folders: Vec<(PathBuf, Option<(Object, Changed)>)>,
}

impl Seen {
    /// Looks at every path of the policy. Must be called before placeholders are created and rules are made.
    pub(super) fn of(policy: &ResolvedPolicy) -> Self {
        let mut seen = Self::default();
        let paths = policy.write.iter().chain(&policy.denied).chain(&policy.read_only);
        for path in paths {
            seen.places.push((path.clone(), object(path)));
        }
        if !policy.masks {
            // Rules without masks go around each denied path, through the names next to it and above.
            let around = policy.denied.iter().chain(&policy.read_only);
            for folder in around.flat_map(|path| path.ancestors().skip(1)) {
                if !seen.folders.iter().any(|(known, _)| known == folder) {
                    seen.folders.push((folder.to_owned(), look(folder)));
                }
            }
        }
        seen
    }

    pub(super) fn still_holds(&self) -> bool {
        self.folders.iter().all(|(path, seen)| look(path) == *seen)
            && self.places.iter().all(|(path, seen)| object(path) == *seen)
    }
}

/// Returns the identity of a file. A placeholder counts as absent.
fn object(path: &Path) -> Option<Object> {
    let (object, _) = look(path)?;
    (!path.ancestors().take(3).any(is_placeholder)).then_some(object)
}

/// Returns the identity of a file and the time of its last change. No process can set that time.
fn look(path: &Path) -> Option<(Object, Changed)> {
    let data = fs::symlink_metadata(path).ok()?;
    Some(((data.dev(), data.ino()), (data.ctime(), data.ctime_nsec())))
}
