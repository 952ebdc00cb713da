//! Limits of the stored contents, and the folders that version control ignores.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ignore::Match;
use ignore::gitignore::Gitignore;
use rustix::fs::FileType;

use super::{Job, Work, lock};
use crate::look::Look;
use crate::node::Bytes;

impl Work<'_> {
    /// Reserves bytes of the remaining storage budget.
    pub(super) fn spend(&self, job: &Job, size: u64) -> bool {
        let take = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(size)
            })
            .is_ok()
        };
        (!job.ignored || take(&self.left_ignored)) && take(&self.left)
    }

    /// Returns true if an ignored folder is small enough to be stored.
    pub(super) fn fits(&self, path: &[u8]) -> bool {
        let mut left = self.left_ignored.load(Ordering::Relaxed);
        let mut entries = self.scan.tree.limits.entries / 4;
        let mut folders: Vec<Arc<[u8]>> = vec![Arc::from(path)];
        let mut look = Look::default();
        while let Some(path) = folders.pop() {
            let Ok(handle) = self.scan.tree.folder(&path) else {
                continue;
            };
            if look.read(self.scan.tree, &path, handle.as_fd(), None).is_err() {
                continue;
            }
            for (name, stat) in look.entries() {
                let size = match stat.kind() {
                    FileType::Directory => {
                        folders.push(Arc::from(Bytes::join(&path, name).0));
                        0
                    }
                    FileType::RegularFile => stat.size,
                    _ => 0,
                };
                let (Some(bytes), Some(count)) = (left.checked_sub(size), entries.checked_sub(1)) else {
                    return false;
                };
                (left, entries) = (bytes, count);
            }
        }
        true
    }

    /// Returns true if version control ignores a folder by its own name; its parent folders were checked
    /// before.
    pub(super) fn is_ignored(&self, path: &[u8]) -> bool {
        if let Some(is_ignored) = self.scan.known.ignores(path) {
            return is_ignored;
        }
        let path = Bytes(path.to_vec());
        let mut folder = path.path();
        while let Some(parent) = folder.parent() {
            folder = parent;
            let Some(rules) = self.rules(folder.as_os_str().as_bytes()) else {
                continue;
            };
            match rules.matched(self.scan.tree.root.join(path.path()), true) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn rules(&self, folder: &[u8]) -> Option<Arc<Gitignore>> {
        if let Some(known) = lock(&self.rules).get(folder) {
            return known.clone();
        }
        let file = self
            .scan
            .tree
            .root
            .join(OsStr::from_bytes(folder))
            .join(".gitignore");
        let is_readable =
            file.is_file() && file.parent().is_some_and(windlass_sandbox::can_read_ignore_files);
        let rules = is_readable.then(|| Arc::new(Gitignore::new(file).0));
        lock(&self.rules).insert(folder.to_vec(), rules.clone());
        rules
    }
}
