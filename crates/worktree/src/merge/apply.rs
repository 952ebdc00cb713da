//! Applies a merge. Every file is compared with the state that the plan is based on directly before it is
//! replaced, and is replaced as a whole. No link is followed.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use windlass_sandbox::folder;

use super::{Action, Edit, MergePlan, OnConflict};
use crate::copy::{create, raw};
use crate::error::{Context, Result};
use crate::node::{Found, Node, Root, Seen, as_path, file_node, is_same, split};

/// Name under which a file is written before it is moved into place.
const TEMPORARY: &[u8] = b".windlass-merge";

/// Result of an applied merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeOutcome {
    /// Files that were changed, in the order of their paths.
    pub changed: Vec<PathBuf>,
    /// Files that were left alone although the plan contains them, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

impl MergePlan {
    /// Makes the changes. A file that has changed since the plan was made is left alone, and so is everything
    /// that cannot be written; the outcome lists both.
    ///
    /// # Errors
    /// If one of the two folders cannot be opened. Nothing was changed then.
    pub fn apply(&self, conflicts: OnConflict, cancel: &CancellationToken) -> Result<MergeOutcome> {
        let writer = Writer {
            plan: self,
            folder: Root::open(&self.into).when("open", &self.into)?,
            tree: Root::open(&self.tree).when("open", &self.tree)?,
        };
        let is_removal = |edit: &&Edit| matches!(edit.action, Action::Remove);
        let removals = self.edits(conflicts).rev().filter(is_removal);
        // Room is made first: a file may become a folder.
        let others = self.edits(conflicts).filter(|edit| !is_removal(edit));
        let mut outcome = MergeOutcome::default();
        for edit in removals.chain(others) {
            let path = as_path(&edit.path).to_owned();
            let done = match cancel.is_cancelled() {
                true => Err(io::Error::other("canceled")),
                false => writer.write(edit),
            };
            match done {
                Ok(()) => outcome.changed.push(path),
                Err(error) => outcome.left.push((path, error.to_string())),
            }
        }
        outcome.changed.sort();
        outcome.left.sort();
        Ok(outcome)
    }
}

struct Writer<'a> {
    plan: &'a MergePlan,
    folder: Root,
    tree: Root,
}

impl Writer<'_> {
    fn write(&self, edit: &Edit) -> io::Result<()> {
        let seen = self.folder.look(&edit.path, self.plan.algorithm)?;
        let now = match seen {
            Seen::Nothing => None,
            Seen::Node(node) => Some(node),
            Seen::Folder if edit.before.is_none() => {
                self.remove_folders(&edit.path)?;
                None
            }
            Seen::Folder | Seen::Special => return Err(changed()),
        };
        if !is_same(now.as_ref(), edit.before.as_ref()) {
            return Err(changed());
        }
        let (parent, name) = split(&edit.path);
        let parent_handle = self.make_folders(parent)?;
        match &edit.action {
            Action::Remove => {
                rustix::fs::unlinkat(&parent_handle, name, AtFlags::empty())?;
                self.remove_empty(parent);
                Ok(())
            }
            Action::Mode { mode } => folder::set_file_mode(&parent_handle, OsStr::from_bytes(name), *mode),
            Action::Link { target } => self.replace(&parent_handle, name, |temporary| {
                Ok(rustix::fs::symlinkat(&target[..], &parent_handle, temporary)?)
            }),
            Action::Write { text, mode } => self.replace(&parent_handle, name, |temporary| {
                let mut file = create(&parent_handle, temporary, 0o600)?;
                file.write_all(text.as_bytes())?;
                Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(raw(*mode)))?)
            }),
            Action::Take { theirs, mode } => self.replace(&parent_handle, name, |temporary| {
                let mut file = create(&parent_handle, temporary, 0o600)?;
                self.copy(&edit.path, theirs, &mut file)?;
                Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(raw(*mode)))?)
            }),
        }
    }

    /// Copies a file of the worktree, and checks that it is the planned one.
    fn copy(&self, path: &[u8], theirs: &Node, to: &mut std::fs::File) -> io::Result<()> {
        let Found::File(mut from, _) = self.tree.find(path)? else {
            return Err(io::Error::other(
                "gone in the worktree since the merge was planned",
            ));
        };
        io::copy(&mut from, to)?;
        io::Seek::rewind(to)?;
        let written = rustix::fs::fstat(&*to)?;
        let copied = file_node(self.plan.algorithm, to.try_clone()?, &written)?;
        let is_planned = match (&copied, theirs) {
            (Node::File { digest: one, .. }, Node::File { digest: two, .. }) => one == two,
            _ => false,
        };
        match is_planned {
            true => Ok(()),
            false => Err(io::Error::other(
                "changed in the worktree since the merge was planned",
            )),
        }
    }

    /// Writes an entry under a temporary name, and moves it into place.
    fn replace(
        &self,
        parent: &OwnedFd,
        name: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match rustix::fs::unlinkat(parent, TEMPORARY, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let moved =
            write(TEMPORARY).and_then(|()| Ok(rustix::fs::renameat(parent, TEMPORARY, parent, name)?));
        if moved.is_err() {
            let _ = rustix::fs::unlinkat(parent, TEMPORARY, AtFlags::empty());
        }
        moved
    }

    /// Opens a folder, and creates it and the folders above it if they are missing.
    fn make_folders(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let mut opened = folder::open_below(&self.folder.handle, as_path(b""))?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            match rustix::fs::mkdirat(&opened, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            opened = folder::open_below(&opened, as_path(name))?;
        }
        Ok(opened)
    }

    /// Removes a folder that became empty, and the folders above it that did.
    fn remove_empty(&self, path: &[u8]) {
        let mut path = path;
        while !path.is_empty() {
            let removed = self
                .folder
                .parent(path)
                .and_then(|(parent, name)| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR));
            if removed.is_err() {
                return;
            }
            path = split(path).0;
        }
    }

    /// Removes a folder in which there are only folders.
    fn remove_folders(&self, path: &[u8]) -> io::Result<()> {
        let mut folders = vec![path.to_vec()];
        let mut next = 0;
        while let Some(path) = folders.get(next).cloned() {
            next += 1;
            let handle = folder::open_below_to_list(&self.folder.handle, as_path(&path))?;
            folder::names(&handle, |name| {
                folders.push(crate::copy::join(&path, name.to_bytes()));
                match folders.len() > super::NAMES {
                    true => Err(changed()),
                    false => Ok(()),
                }
            })?;
        }
        for path in folders.iter().rev() {
            let (parent, name) = self.folder.parent(path)?;
            rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::other("changed since the merge was planned")
}
