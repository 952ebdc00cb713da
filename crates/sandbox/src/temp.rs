//! The private folder for temporary files of a session. Commands see it as `/tmp`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

/// The machine's folders for temporary files, which all users share.
pub(crate) const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];

/// A private folder for temporary files, emptied when this value is dropped. The empty folder stays for the next session,
/// because creating one is slow where others were just removed.
#[derive(Debug)]
pub struct PrivateTemp {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: OwnedFd,
}

impl PrivateTemp {
    /// Takes an empty folder below `parent` or creates one, and removes what ended programs left behind there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(parent: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let parent = fs::canonicalize(parent)?;
        let mut stale;
        let (path, lock) = {
            // Held for a moment: a folder that was just created is not locked yet, and looks left behind.
            let _alone = locked(&parent)?;
            stale = left_behind(&parent);
            let empty = stale.iter().position(|(path, _)| is_empty(path));
            let (path, lock) = match empty {
                Some(place) => stale.swap_remove(place),
                None => {
                    let path = parent.join(uuid::Uuid::new_v4().simple().to_string());
                    fs::DirBuilder::new().mode(0o700).create(&path)?;
                    let lock = open(&path)?;
                    (path, lock)
                }
            };
            // A command may have changed it.
            rustix::fs::fchmod(&lock, Mode::RWXU)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)?;
            (path, lock)
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
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let _ = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
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
    /// begins. A folder that a session emptied is used again, with its rights restored.
    #[test]
    fn a_private_folder_is_emptied() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let first = PrivateTemp::new(parent.path()).unwrap();
        assert_eq!(mode(first.path()), 0o700);
        let stale = parent.path().join("stale");
        fs::create_dir_all(stale.join("x")).unwrap();
        let second = PrivateTemp::new(parent.path()).unwrap();
        assert!(first.path().exists() && !stale.exists());
        let path = second.path().to_owned();
        fs::create_dir_all(path.join("folder/deep")).unwrap();
        fs::write(path.join("folder/deep/file"), "x").unwrap();
        std::os::unix::fs::symlink(first.path(), path.join("link")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        drop(second);
        assert!(is_empty(&path) && first.path().exists());
        let third = PrivateTemp::new(parent.path()).unwrap();
        assert_eq!((third.path(), mode(third.path())), (path.as_path(), 0o700));
        let fourth = PrivateTemp::new(parent.path()).unwrap();
        assert!(fourth.path() != third.path() && fourth.path() != first.path());
    }
}
