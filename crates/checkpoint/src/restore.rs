//! Restores files. The journal contains every step before the first one is taken, and every step can be
//! repeated: if a process is stopped halfway, the next one finishes the work. Folders that are closed to their
//! owner are opened up for the time of the work.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use windlass_sandbox::folder::{set_file_mode, set_folder_mode};

use super::access::Access;
use super::node::{Bytes, Change, Node};
use super::pack::Contents;
use super::tree::Tree;

/// Name under which a file is written before it is moved into place.
pub(super) const TEMPORARY: &[u8] = b".windlass-undo";

/// Permissions of its owner that a folder has during the work.
const OPEN: u32 = 0o700;

/// Result of a restoration.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Changes that were made.
    pub(super) done: Vec<Change>,
    /// Changes that were not made, each with the reason.
    pub(super) left: Vec<String>,
}

/// Brings every path to its state after the changes. A path in neither its before nor its after state is left
/// alone.
pub(super) fn restore(tree: &Tree, contents: &Contents, changes: &[Change]) -> io::Result<Outcome> {
    let mut access = Access::open(tree, changes);
    let mut outcome = Outcome::default();
    let mut steps: Vec<&Change> = Vec::new();
    sweep(tree, changes);
    for change in changes {
        if let Some(why) = change.uncovered() {
            outcome.left.push(format!("{}: {}", change.path, why.reason()));
            continue;
        }
        let now = access.glance(&change.path)?;
        if now == change.after {
            outcome.done.push(change.clone());
        } else if now == change.before || has_begun(change, now.as_ref()) {
            steps.push(change);
        } else {
            outcome.left.push(format!(
                "{}: changed by something else in the meantime",
                change.path
            ));
        }
    }
    // The deepest first, so that folders are empty before they are removed.
    let mut away: Vec<&Change> = steps
        .iter()
        .filter(|change| needs_room(change))
        .copied()
        .collect();
    away.sort_by_key(|change| std::cmp::Reverse(change.path.depth()));
    let mut kept_back: BTreeSet<&Bytes> = BTreeSet::new();
    for change in away {
        if let Some(why) = remove(tree, change)? {
            outcome.left.push(format!("{}: {why}", change.path));
            kept_back.insert(&change.path);
        }
    }
    let mut there: Vec<&Change> = steps;
    there.retain(|change| !kept_back.contains(&change.path));
    there.sort_by_key(|change| change.path.depth());
    for change in &there {
        make(tree, contents, change)?;
    }
    // Last, so that a read-only folder receives its content first.
    for change in &there {
        access.restored(change);
    }
    access.close()?;
    outcome.done.extend(there.into_iter().cloned());
    outcome.done.retain(|change| change.before != change.after);
    outcome.done.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(outcome)
}

/// Returns true if an interrupted restoration left a path like this: removed to make room, or a folder that is
/// opened up.
fn has_begun(change: &Change, now: Option<&Node>) -> bool {
    let Some(now) = now else {
        return needs_room(change);
    };
    let mut states = [&change.before, &change.after].into_iter().flatten();
    states.any(|state| match (now, state) {
        (Node::Folder { mode: now }, Node::Folder { mode }) => {
            now & !OPEN == mode & !OPEN && now & mode == *mode
        }
        _ => false,
    })
}

/// Returns true if the current entry has to be removed first.
fn needs_room(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(_), None) => true,
        (Some(before), Some(after)) => !before.fits(after),
        _ => false,
    }
}

/// Removes files that a stopped process left under the temporary name.
fn sweep(tree: &Tree, changes: &[Change]) {
    let mut seen = BTreeSet::new();
    for change in changes {
        if seen.insert(change.path.path().parent())
            && let Ok((folder, _)) = tree.parent(&change.path)
        {
            let _ = rustix::fs::unlinkat(&folder, OsStr::from_bytes(TEMPORARY), AtFlags::empty());
        }
    }
}

/// Removes one path. Returns the reason if it cannot be removed.
fn remove(tree: &Tree, change: &Change) -> io::Result<Option<&'static str>> {
    let (folder, name) = match tree.parent(&change.path) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let flags = match &change.before {
        Some(Node::Folder { .. }) => AtFlags::REMOVEDIR,
        _ => AtFlags::empty(),
    };
    match rustix::fs::unlinkat(&folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Some("not empty: the remaining files are not covered")),
        Err(error) => Err(error.into()),
    }
}

/// Creates one path in its target state. Folders stay writable for now.
fn make(tree: &Tree, contents: &Contents, change: &Change) -> io::Result<()> {
    let Some(after) = &change.after else {
        return Ok(());
    };
    let (folder, name) = tree.parent(&change.path)?;
    match after {
        Node::Folder { mode } => match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => set_folder_mode(&folder, name, mode | OPEN),
            Err(error) => Err(error.into()),
        },
        Node::Link { target } => {
            let temporary = OsStr::from_bytes(TEMPORARY);
            rustix::fs::symlinkat(target.path(), &folder, temporary)?;
            Ok(rustix::fs::renameat(&folder, temporary, &folder, name)?)
        }
        Node::File { mode, digest, .. } => {
            if let Some(Node::File { digest: now, .. }) = &change.before
                && now == digest
            {
                return set_file_mode(&folder, name, *mode);
            }
            let content = contents
                .get(digest)
                .ok_or_else(|| io::Error::other(format!("the content of {} was not stored", change.path)))?;
            write(&folder, name, &content, *mode)
        }
        Node::Skipped { .. } => Ok(()),
    }
}

fn write(folder: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = OsStr::from_bytes(TEMPORARY);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, temporary, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    let written = file
        .write_all(content)
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| Ok(rustix::fs::renameat(folder, temporary, folder, name)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
    }
    written
}
