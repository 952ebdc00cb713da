//! Empty folders that hold the place of denied paths that do not exist, so that a mask can be put over them.
//!
//! An empty folder is what disturbs least: version control does not see it. It carries a mode that nobody else uses, so
//! that one left behind by a killed program is taken over and removed by the next. Several walls share one through a lock.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result};

/// Readable by the owner, so that it can be locked, and nothing else; the sticky bit says that it is ours.
const OURS: Mode = Mode::RUSR.union(Mode::XUSR).union(Mode::SVTX);

/// How often a place may change under our hands.
const TRIES: usize = 8;

/// The places held by one wall.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<BTreeMap<PathBuf, OwnedFd>>);

impl Holds {
    /// Makes sure that something is there. What is not ours is left as it is.
    ///
    /// # Errors
    /// When nothing can be made there.
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
                // Somebody else's, and no folder: it is there, which is all that is needed.
                Err(_) => return Ok(()),
            };
            if !ours(&folder)? {
                return Ok(());
            }
            rustix::fs::flock(&folder, FlockOperation::LockShared)?;
            // The last one who held it may have removed it before we had the lock.
            if same(path, &folder) {
                held.insert(path.to_owned(), folder);
                return Ok(());
            }
        }
        Err(Errno::BUSY)
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        let held = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (path, folder) in held {
            let last = rustix::fs::flock(&*folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            if last && same(path, folder) {
                // It stays when something is in it, and then it is not ours to remove.
                let _ = rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// Whether this is an empty folder that one of our walls made.
pub(super) fn holds_a_place(path: &Path) -> bool {
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
    fn the_last_wall_removes_what_holds_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".windlass");
        let (first, second) = (Holds::default(), Holds::default());
        first.hold(&path).unwrap();
        first.hold(&path).unwrap();
        second.hold(&path).unwrap();
        drop(first);
        assert!(path.is_dir());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn what_others_made_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, full, used) = (
            folder.path().join("a"),
            folder.path().join("b"),
            folder.path().join("c"),
        );
        std::fs::write(&file, "x").unwrap();
        std::fs::create_dir(&full).unwrap();
        let holds = Holds::default();
        for path in [&file, &full, &used] {
            holds.hold(path).unwrap();
        }
        rustix::fs::chmod(&used, Mode::RWXU).unwrap();
        std::fs::write(used.join("x"), "x").unwrap();
        drop(holds);
        assert!(file.exists() && full.exists() && used.join("x").exists());
    }
}
