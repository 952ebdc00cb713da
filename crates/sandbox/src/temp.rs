//! The private folder for temporary files of a session. Commands see it as `/tmp`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

/// The machine's folders for temporary files, which all users share.
pub(crate) const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];

/// A private folder for temporary files, removed when this value is dropped.
#[derive(Debug)]
pub struct PrivateTemp {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: OwnedFd,
}

impl PrivateTemp {
    /// Creates a folder below `parent`, and removes the folders there that ended programs left behind.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(parent: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let parent = fs::canonicalize(parent)?;
        let stale;
        let path = parent.join(uuid::Uuid::new_v4().simple().to_string());
        let lock = {
            // Held for a moment: a folder that was just created is not locked yet, and looks left behind.
            let _alone = locked(&parent)?;
            stale = left_behind(&parent);
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            let lock = open(&path)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)?;
            lock
        };
        for (folder, _held) in stale {
            let _ = fs::remove_dir_all(folder);
        }
        Ok(Self { path, _lock: lock })
    }

    /// Returns the folder, with every link followed.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTemp {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later session.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks a folder against other programs that create folders in it.
fn locked(parent: &Path) -> rustix::io::Result<OwnedFd> {
    let folder = open(parent)?;
    rustix::fs::flock(&folder, FlockOperation::LockExclusive)?;
    Ok(folder)
}

/// Returns the folders that no program holds, each with a lock that keeps it from being taken.
fn left_behind(parent: &Path) -> Vec<(PathBuf, OwnedFd)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let stale = entries.filter_map(|entry| {
        let folder = open(&entry.path()).ok()?;
        rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some((entry.path(), folder))
    });
    stale.collect()
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// SAFE-10: a session's temporary files are its own, and are gone when it ends, at the latest when the next one
    /// begins.
    #[test]
    fn a_private_folder_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let first = PrivateTemp::new(parent.path()).unwrap();
        assert_eq!(
            fs::metadata(first.path()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let stale = parent.path().join("stale");
        fs::create_dir_all(stale.join("x")).unwrap();
        let second = PrivateTemp::new(parent.path()).unwrap();
        assert!(first.path().exists() && !stale.exists());
        fs::write(second.path().join("file"), "x").unwrap();
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists() && first.path().exists());
    }
}
