//! Placeholders: empty folders in place of denied paths that do not exist, so that a mask can be mounted on
//! them.
//!
//! An empty folder disturbs least: version control does not see it. A placeholder has a mode that nothing
//! else uses, so that one left behind by a killed program is taken over and removed by the next. Several
//! sandboxes share a placeholder through a lock.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result};

/// Readable by the owner only, so that it can be locked; the sticky bit marks it as a placeholder.
const OURS: Mode = Mode::RUSR.union(Mode::XUSR).union(Mode::SVTX);

/// Maximum number of attempts at a path that keeps changing.
const TRIES: usize = 8;

/// The placeholders of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Mutex<BTreeMap<PathBuf, OwnedFd>>);

impl Placeholders {
    /// Makes sure that the path exists. A file or folder that is not a placeholder is left as it is.
    ///
    /// # Errors
    /// If no placeholder can be created.
    pub(super) fn hold(&self, path: &Path) -> Result<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            match rustix::fs::mkdir(path, OURS) {
                Ok(()) => rustix::fs::chmod(path, OURS)?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let folder = match open(path) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => continue,
                // Not a placeholder, and not a folder: the path exists, which is sufficient.
                Err(_) => return Ok(()),
            };
            if !ours(&folder)? {
                return Ok(());
            }
            rustix::fs::flock(&folder, FlockOperation::LockShared)?;
            // Another sandbox may have removed the placeholder before we got the lock.
            if same(path, &folder) {
                held.insert(path.to_owned(), folder);
                return Ok(());
            }
        }
        Err(Errno::BUSY)
    }
}

impl Placeholders {
    /// Removes the placeholders that no other sandbox needs.
    pub(super) fn release(&self) {
        let held = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (path, folder) in &held {
            let last = rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            if last && same(path, folder) {
                // This fails for a folder with contents, which is not ours to remove.
                let _ = rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR);
            }
        }
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns true for a placeholder of any sandbox.
pub(super) fn is_placeholder(path: &Path) -> bool {
    open(path).and_then(|folder| ours(&folder)).unwrap_or_default()
}

fn open(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn ours(folder: &OwnedFd) -> Result<bool> {
    let data = rustix::fs::fstat(folder)?;
    let folder = FileType::from_raw_mode(data.st_mode) == FileType::Directory;
    let owner = data.st_uid == rustix::process::geteuid().as_raw();
    Ok(folder && owner && Mode::from_raw_mode(data.st_mode) == OURS)
}

fn same(path: &Path, folder: &OwnedFd) -> bool {
    let (Ok(there), Ok(here)) = (rustix::fs::lstat(path), rustix::fs::fstat(folder)) else {
        return false;
    };
    (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sandbox_removes_a_placeholder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".windlass");
        let (first, second) = (Placeholders::default(), Placeholders::default());
        first.hold(&path).unwrap();
        first.hold(&path).unwrap();
        second.hold(&path).unwrap();
        drop(first);
        assert!(path.is_dir());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn files_of_others_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, full, used) = (
            folder.path().join("a"),
            folder.path().join("b"),
            folder.path().join("c"),
        );
        std::fs::write(&file, "x").unwrap();
        std::fs::create_dir(&full).unwrap();
        let holds = Placeholders::default();
        for path in [&file, &full, &used] {
            holds.hold(path).unwrap();
        }
        rustix::fs::chmod(&used, Mode::RWXU).unwrap();
        std::fs::write(used.join("x"), "x").unwrap();
        drop(holds);
        assert!(file.exists() && full.exists() && used.join("x").exists());
    }
}
