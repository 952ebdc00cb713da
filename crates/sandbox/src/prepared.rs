//! Path rules made once and handed to many commands. A home folder has many neighbours to go around, and to name them
//! all again takes longer than to start a command.
//!
//! The rules are of the objects that had the names when they were made. So before each use every folder that was gone
//! through, and every place that was named, is looked at again, and when one is another or has changed, the rules are
//! made anew. What nobody looks for is a mount that comes or goes on one of the names: it is of another object, so the
//! rules allow less until they are made anew, and never more.
//!
//! The rules travel as the helper's standard input, which no other child of ours gets: whoever has them can add to them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::MemfdFlags;

use super::policy::{Guard, Settled};
use super::{SandboxError, grants, masks};

/// How many commands use the same rules. Each adds a place to them that only it can reach.
const USES: usize = 64;

/// How many seconds a folder must have been left alone. One that was just changed could change again without another
/// time, as far as its file system counts.
const QUIET: i64 = 3;

/// The rules of one wall.
#[derive(Debug, Default)]
pub(super) struct Prepared(Mutex<Option<Made>>);

#[derive(Debug)]
struct Made {
    rules: OwnedFd,
    /// The files that the rules allow because they are hidden.
    hidden: BTreeSet<PathBuf>,
    seen: Seen,
    /// How often they may still be used.
    left: usize,
}

impl Prepared {
    /// The rules for a command that starts now, and the files that must be hidden for them to be enough.
    ///
    /// # Errors
    /// When they cannot be made. Whoever starts the command finds out why when it makes its own.
    pub(super) fn next(&self, settled: &Settled) -> Result<(OwnedFd, BTreeSet<PathBuf>), SandboxError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = kept
            .take()
            .filter(|made| made.left > 0 && made.seen.still_holds());
        let mut made = match usable {
            Some(made) => made,
            None => Made::now(settled)?,
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
    fn now(settled: &Settled) -> Result<Self, SandboxError> {
        let hidden = match settled.masks && settled.has(Guard::Masks) {
            true => masks::hidden_files(settled)?,
            false => BTreeSet::new(),
        };
        let mut masked = hidden.clone();
        if settled.masks {
            masked.extend(settled.inside_writable().cloned());
        }
        let mut seen = Seen::default();
        let rules: Option<OwnedFd> = grants::rules(settled, &masked, &mut seen)?.into();
        Ok(Self {
            rules: rules.ok_or(SandboxError::NoLandlock)?,
            hidden,
            left: if seen.was_quiet() { USES } else { 0 },
            seen,
        })
    }
}

/// What the rules were made from.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Places that were named: each must still be the same object.
    places: Vec<(PathBuf, Option<Object>)>,
    /// Folders that were gone through: each must have the same names in it.
    folders: Vec<(PathBuf, Option<(Object, Changed)>)>,
}

type Object = (u64, u64);
type Changed = (i64, i64);

impl Seen {
    /// Notes a place that is named in a rule.
    pub(super) fn place(&mut self, path: &Path) {
        self.places
            .push((path.to_owned(), look(path).map(|(object, _)| object)));
    }

    /// Notes a folder. Must be called before it is gone through.
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

/// Which object a path is, and when it was last changed. That time cannot be set by anybody.
fn look(path: &Path) -> Option<(Object, Changed)> {
    let data = fs::symlink_metadata(path).ok()?;
    Some(((data.dev(), data.ino()), (data.ctime(), data.ctime_nsec())))
}

/// The time that changes are noted with, in seconds: the one that a new file has.
fn now() -> Option<i64> {
    let file = rustix::fs::memfd_create("now", MemfdFlags::CLOEXEC).ok()?;
    Some(File::from(file).metadata().ok()?.ctime())
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
