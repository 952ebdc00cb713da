//! Folders that are opened up for their owner while files in them are compared or restored.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::fs::{AtFlags, FileType};
use rustix::process::geteuid;
use windlass_sandbox::folder::set_folder_mode;

use super::node::{Bytes, Change, Node};
use super::tree::{Tree, stat};

/// Permissions of the owner that the folder of a changed file needs, and those of the folders above.
const CHANGED: u32 = 0o700;
const PASSED: u32 = 0o500;

/// Folders that were closed to their owner and are open now. Each gets its mode when this is closed or dropped.
pub(super) struct Access<'a> {
    tree: &'a Tree,
    modes: BTreeMap<Bytes, u32>,
}

impl<'a> Access<'a> {
    /// Opens up the folders around changed paths, as far as they belong to this user. A folder that cannot be
    /// opened up stays as it is; using it gives the error.
    pub(super) fn open(tree: &'a Tree, changes: &[Change]) -> Self {
        let mut access = Self {
            tree,
            modes: BTreeMap::new(),
        };
        // The outermost first: a path sorts before everything below it.
        for (folder, needed) in around(changes) {
            let _ = access.open_one(folder, needed);
        }
        access
    }

    fn open_one(&mut self, folder: Bytes, needed: u32) -> io::Result<()> {
        let (parent, name) = self.tree.parent(&folder)?;
        let data = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let stat = stat(&data);
        let is_ours = stat.kind() == FileType::Directory && data.st_uid == geteuid().as_raw();
        let mode = stat.mode & 0o7777;
        if is_ours && mode & needed != needed {
            set_folder_mode(&parent, name, mode | needed)?;
            self.modes.insert(folder, mode);
        }
        Ok(())
    }

    /// Like [`Tree::glance`]. An opened folder has the mode that it had before.
    pub(super) fn glance(&self, path: &Bytes) -> io::Result<Option<Node>> {
        Ok(self.as_before(path, self.tree.glance(path)?))
    }

    /// Like [`Tree::look`]. An opened folder has the mode that it had before.
    pub(super) fn look(&self, path: &Bytes) -> io::Result<Option<Node>> {
        Ok(self.as_before(path, self.tree.look(path)?))
    }

    fn as_before(&self, path: &Bytes, now: Option<Node>) -> Option<Node> {
        match (now, self.modes.get(path)) {
            (Some(Node::Folder { .. }), Some(mode)) => Some(Node::Folder { mode: *mode }),
            (now, _) => now,
        }
    }

    /// Returns the opened folders that are not among the changes, as changes that keep their modes.
    pub(super) fn unchanged(&self, changes: &[Change]) -> Vec<Change> {
        let changed: BTreeSet<&Bytes> = changes.iter().map(|change| &change.path).collect();
        let others = self.modes.iter().filter(|(path, _)| !changed.contains(path));
        let keep = |(path, mode): (&Bytes, &u32)| {
            let node = Some(Node::Folder { mode: *mode });
            Change {
                path: path.clone(),
                before: node.clone(),
                after: node,
            }
        };
        others.map(keep).collect()
    }

    /// Sets the state that a restored path gets in the end.
    pub(super) fn restored(&mut self, change: &Change) {
        match change.after {
            Some(Node::Folder { mode }) => self.modes.insert(change.path.clone(), mode),
            _ => self.modes.remove(&change.path),
        };
    }

    /// Gives every folder its mode. If one fails, the others get theirs all the same.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.give_modes()
    }

    fn give_modes(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        // The innermost first: a closed folder is in the way to everything below it.
        while let Some((folder, mode)) = self.modes.pop_last() {
            let parent = self.tree.parent(&folder).map_err(io::Error::from);
            let given = parent.and_then(|(parent, name)| set_folder_mode(&parent, name, mode));
            match given.map_err(|error| (error.kind(), error)) {
                // Removed or replaced meanwhile.
                Ok(()) | Err((io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _)) => {}
                Err((_, error)) => result = Err(error),
            }
        }
        result
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        // After an error that is reported already.
        let _ = self.give_modes();
    }
}

/// Returns every folder around the changed paths, with the permissions that its owner needs.
fn around(changes: &[Change]) -> BTreeMap<Bytes, u32> {
    let mut folders = BTreeMap::new();
    for change in changes {
        let above = change.path.path().ancestors().skip(1);
        let above = above.take_while(|folder| folder.file_name().is_some());
        for (folder, needed) in above.zip(std::iter::once(CHANGED).chain(std::iter::repeat(PASSED))) {
            let known = folders.entry(Bytes::of(folder)).or_insert(0);
            // A folder that is known was entered with everything above it.
            if *known & needed == needed {
                break;
            }
            *known |= needed;
        }
    }
    folders
}
