//! The files that a launcher was started with. A launcher's mounts and rules are about the files that had the
//! names then; so before each command every path of the policy is checked again, and the launcher is replaced
//! if one was created, removed or replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use super::placeholders::is_placeholder;
use super::resolved::ResolvedPolicy;

type Object = (u64, u64);
type Changed = (i64, i64);

/// Time after which a further change of a folder gets another time of change: more than a tick of any kernel.
const TICK: i64 = 20_000_000;

/// The paths of a policy, and the files that they name.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The folders that contain the paths. One that is absent is among the names of the folder above it.
    parents: Vec<Parent>,
    /// Folders whose names the rules list: each must still contain the same ones.
    folders: Vec<(PathBuf, Option<(Object, Changed)>)>,
}

/// A folder that contains paths of a policy.
#[derive(Debug)]
struct Parent {
    folder: PathBuf,
    /// Each must still be the same file, or still be absent.
    names: Vec<(PathBuf, Option<Object>)>,
    /// State of the folder in which the names were last checked. While it lasts, no name in it has changed.
    checked: Mutex<Option<(Object, Changed)>>,
}

impl Seen {
    /// Looks at every path of the policy. Must be called before placeholders are created and rules are made.
    pub(super) fn of(policy: &ResolvedPolicy) -> Self {
        let mut seen = Self::default();
        let mut parents: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for path in policy.write.iter().chain(&policy.denied).chain(&policy.read_only) {
            let mut below = path.as_path();
            while let Some(folder) = below.parent() {
                parents.entry(folder).or_default().insert(below);
                // A folder that exists is checked by itself; the name of an absent one is checked above it.
                if below != path.as_path() && object(below).is_some() {
                    break;
                }
                below = folder;
            }
        }
        for (folder, names) in parents.into_iter().filter(|(folder, _)| folder.exists()) {
            let names = names.into_iter().map(|path| (path.to_owned(), object(path)));
            seen.parents.push(Parent {
                folder: folder.to_owned(),
                names: names.collect(),
                checked: Mutex::default(),
            });
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
            && self.parents.iter().all(Parent::still_holds)
    }
}

impl Parent {
    fn still_holds(&self) -> bool {
        let now = look(&self.folder);
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_some() && *checked == now {
            return true;
        }
        // A change in the tick of this look would leave the time as it is.
        *checked = now.filter(|(_, changed)| is_past(*changed));
        self.names.iter().all(|(path, seen)| object(path) == *seen)
    }
}

fn is_past((seconds, nanoseconds): Changed) -> bool {
    let now = clock_gettime(ClockId::Realtime);
    let passed = (now.tv_sec - seconds).saturating_mul(1_000_000_000) + (now.tv_nsec - nanoseconds);
    passed > TICK
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
