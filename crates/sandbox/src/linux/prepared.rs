//! Path rules created once and used for many commands. A denied path in a home folder has many siblings, and
//! listing them all again takes longer than starting a command.
//!
//! The rules are about the files that had the names when the rules were created. So before each use every
//! folder that was listed, and every path that was named, is checked again; if one was replaced or has
//! changed, the rules are created again. Mounts that appear or disappear on one of the names are not checked:
//! they are different files, so the rules allow less until they are created again, and never more.
//!
//! The rules are passed as the helper's standard input, which no other child process gets: a process that has
//! the rules can add to them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::MemfdFlags;

use super::resolved::ResolvedPolicy;
use super::{masks, path_rules};
use crate::SandboxError;
use crate::policy::Guard;

/// Maximum number of commands that use the same rules. Each command adds a path that only it can reach.
const USES: usize = 64;

/// Number of seconds that a folder must have been unchanged. A folder that was just changed could change
/// again within the resolution of its file system's timestamps.
const QUIET: i64 = 3;

/// The rules of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Prepared(Mutex<Option<Made>>);

#[derive(Debug)]
struct Made {
    rules: OwnedFd,
    /// Files that the rules allow because a mask hides them.
    hidden: BTreeSet<PathBuf>,
    seen: Seen,
    /// Number of uses left.
    left: usize,
}

impl Prepared {
    /// Returns the rules for a command that starts now, and the files that must be hidden for the rules to be
    /// sufficient.
    ///
    /// # Errors
    /// If the rules cannot be created. The helper reports why when it creates its own.
    pub(super) fn next(&self, policy: &ResolvedPolicy) -> Result<(OwnedFd, BTreeSet<PathBuf>), SandboxError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = kept
            .take()
            .filter(|made| made.left > 0 && made.seen.still_holds());
        let mut made = match usable {
            Some(made) => made,
            None => Made::now(policy)?,
        };
        made.left = made.left.saturating_sub(1);
        let rules = made.rules.try_clone();
        let rules = rules.map_err(|error| SandboxError::system("handing on path rules", error))?;
        let hidden = made.hidden.clone();
        *kept = Some(made);
        Ok((rules, hidden))
    }
}

impl Made {
    fn now(policy: &ResolvedPolicy) -> Result<Self, SandboxError> {
        let hidden = match policy.masks && policy.has(Guard::Masks) {
            true => masks::hidden_files(policy)?,
            false => BTreeSet::new(),
        };
        let mut masked = hidden.clone();
        if policy.masks {
            masked.extend(policy.inside_writable().cloned());
        }
        let mut seen = Seen::default();
        let rules: Option<OwnedFd> = path_rules::rules(policy, &masked, &mut seen)?.into();
        Ok(Self {
            rules: rules.ok_or(SandboxError::NoLandlock)?,
            hidden,
            left: if seen.was_quiet() { USES } else { 0 },
            seen,
        })
    }
}

/// The files and folders that the rules were created from.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Paths that were named: each must still be the same file.
    places: Vec<(PathBuf, Option<Object>)>,
    /// Folders that were listed: each must still contain the same names.
    folders: Vec<(PathBuf, Option<(Object, Changed)>)>,
}

type Object = (u64, u64);
type Changed = (i64, i64);

impl Seen {
    /// Records a path that is named in a rule.
    pub(super) fn place(&mut self, path: &Path) {
        self.places
            .push((path.to_owned(), look(path).map(|(object, _)| object)));
    }

    /// Records a folder. Must be called before the folder is listed.
    pub(super) fn folder(&mut self, path: &Path) {
        self.folders.push((path.to_owned(), look(path)));
    }

    fn still_holds(&self) -> bool {
        let same = |(path, object): &(PathBuf, Option<Object>)| look(path).map(|now| now.0) == *object;
        let unchanged = |(path, seen): &(PathBuf, Option<(Object, Changed)>)| look(path) == *seen;
        self.folders.iter().all(unchanged) && self.places.iter().all(same)
    }

    fn was_quiet(&self) -> bool {
        let Some(now) = now() else { return false };
        let quiet = |(_, changed): &(Object, Changed)| changed.0 < now.saturating_sub(QUIET);
        self.folders
            .iter()
            .all(|(_, seen)| seen.as_ref().is_none_or(quiet))
    }
}

/// Returns the identity of a file and the time of its last change. No process can set that time.
fn look(path: &Path) -> Option<(Object, Changed)> {
    let data = fs::symlink_metadata(path).ok()?;
    Some(((data.dev(), data.ino()), (data.ctime(), data.ctime_nsec())))
}

/// Returns the current time of the kernel's file timestamps, in seconds: the one that a new file gets.
fn now() -> Option<i64> {
    let file = rustix::fs::memfd_create("now", MemfdFlags::CLOEXEC).ok()?;
    Some(File::from(file).metadata().ok()?.ctime())
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
