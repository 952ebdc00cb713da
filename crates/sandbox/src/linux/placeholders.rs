//! Placeholders: empty folders or files in place of denied and protected paths that do not exist, so that a
//! mask can be mounted on them.
//!
//! An empty folder disturbs least: version control does not see it. A placeholder has ordinary permissions, so that
//! the user and other programs can use it; as soon as they do, it is theirs. It is recognized by its time of
//! modification. One that a killed program left behind is removed by its sweeper, or taken over and removed by the next
//! program. Several sandboxes share a placeholder through a lock.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::{Errno, Result};

use crate::protected::Placeholder;

/// Time of modification that marks a placeholder, in seconds. Any use of the placeholder changes it.
const MARK: i64 = 0x5749_4e44;

const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// Mode of a placeholder until it is marked. It is set in the moment of creation, unlike the mark, and nothing else has
/// it: this bit has no meaning where only the owner may write.
const UNFINISHED: u32 = 0o1000;

/// Maximum number of attempts at a path that keeps changing.
const TRIES: usize = 8;

/// The placeholders of all sandboxes of this program, for its end.
static ALL: Mutex<All> = Mutex::new(All {
    is_closed: false,
    sandboxes: Vec::new(),
});

struct All {
    is_closed: bool,
    sandboxes: Vec<Weak<Mutex<Held>>>,
}

type Held = BTreeMap<PathBuf, OwnedFd>;

/// The placeholders of one sandbox.
#[derive(Debug)]
pub(super) struct Placeholders(Arc<Mutex<Held>>);

impl Default for Placeholders {
    fn default() -> Self {
        let held = Arc::default();
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.sandboxes.retain(|known| known.strong_count() > 0);
        all.sandboxes.push(Arc::downgrade(&held));
        Self(held)
    }
}

/// Removes the placeholders of all sandboxes, and lets no new ones be created.
pub(crate) fn release_all() {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.is_closed = true;
    for held in all.sandboxes.drain(..).filter_map(|held| held.upgrade()) {
        release(&held);
    }
}

impl Placeholders {
    /// Makes sure that the path exists. A file or folder that is not a placeholder is left as it is.
    ///
    /// # Errors
    /// If no placeholder can be created.
    pub(super) fn hold(&self, path: &Path, kind: Placeholder) -> Result<()> {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_closed {
            return Err(Errno::BUSY);
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            match create(path, kind) {
                Ok(()) | Err(Errno::EXIST) => {}
                // Another program removed it before it was marked.
                Err(Errno::NOENT) if path.parent().is_some_and(Path::exists) => continue,
                Err(error) => return Err(error),
            }
            match rustix::fs::lstat(path) {
                // Another program creates it just now, or was killed in between.
                Ok(found) if is_unfinished(&found) => match mark(path, kind) {
                    Ok(()) => {}
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error),
                },
                Ok(found) if is_mark(&found) => {}
                Err(Errno::NOENT) => continue,
                // Not a placeholder: the path exists, which is sufficient.
                Ok(_) | Err(_) => return Ok(()),
            }
            let Ok(object) = open(path) else { continue };
            rustix::fs::flock(&object, FlockOperation::LockShared)?;
            // Another sandbox may have removed the placeholder before we got the lock.
            if same(path, &object) {
                held.insert(path.to_owned(), object);
                return Ok(());
            }
        }
        Err(Errno::BUSY)
    }

    /// Returns false if another program removed or replaced a placeholder: nothing keeps its place any longer.
    pub(super) fn still_hold(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().all(|(path, object)| same(path, object))
    }

    /// Returns true if a line of output contains the name of a placeholder.
    pub(super) fn is_one_in(&self, line: &str) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = held.keys().filter_map(|path| path.file_name()?.to_str());
        names.any(|name| line.contains(name))
    }

    /// Forgets the placeholders that another program removed or replaced.
    pub(super) fn forget_lost(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|path, object| same(path, object));
    }

    /// Removes the placeholders that no other sandbox needs, and that nobody has used.
    pub(super) fn release(&self) {
        release(&self.0);
    }
}

/// Removes the placeholders among these paths that no sandbox needs any longer.
pub(super) fn sweep(paths: &[PathBuf]) {
    for path in paths.iter().filter(|path| is_placeholder(path)) {
        if let Ok(object) = open(path) {
            remove(path, &object);
        }
    }
}

fn release(held: &Mutex<Held>) {
    let held = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
    for (path, object) in &held {
        remove(path, object);
    }
}

/// Removes a placeholder unless another sandbox needs it, or somebody has used it.
fn remove(path: &Path, object: &OwnedFd) {
    let last = rustix::fs::flock(object, FlockOperation::NonBlockingLockExclusive).is_ok();
    if last && same(path, object) && is_placeholder(path) {
        // This fails for a folder with contents, which is not ours to remove.
        let is_folder = path.is_dir();
        let flags = if is_folder {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        let _ = rustix::fs::unlinkat(CWD, path, flags);
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns true for a placeholder of any sandbox.
pub(super) fn is_placeholder(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|found| is_mark(&found))
}

/// Creates a placeholder and marks it.
fn create(path: &Path, kind: Placeholder) -> Result<()> {
    match kind {
        Placeholder::File => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::from_raw_mode(FILE_MODE | UNFINISHED))?;
        }
        Placeholder::Folder | Placeholder::Nothing => {
            rustix::fs::mkdir(path, Mode::from_raw_mode(FOLDER_MODE | UNFINISHED))?;
        }
    }
    mark(path, kind)
}

/// Marks a placeholder and gives it the mode of an ordinary file or folder.
fn mark(path: &Path, kind: Placeholder) -> Result<()> {
    let object = open(path)?;
    let mark = Timespec {
        tv_sec: MARK,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: mark,
        last_modification: mark,
    };
    rustix::fs::futimens(&object, &times)?;
    // Our own files are private, but this one is not ours.
    let mode = match kind {
        Placeholder::File => FILE_MODE,
        Placeholder::Folder | Placeholder::Nothing => FOLDER_MODE,
    };
    rustix::fs::fchmod(&object, Mode::from_raw_mode(mode))
}

fn open(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Returns true if a file has the mark of a placeholder, or is one that is being created.
pub(crate) fn is_mark(found: &Stat) -> bool {
    let is_marked = found.st_mtime == MARK && found.st_mtime_nsec == 0;
    is_unused(found) && (is_marked || is_unfinished(found))
}

fn is_unfinished(found: &Stat) -> bool {
    let is_for_others = 0o022;
    is_unused(found) && found.st_mode & (UNFINISHED | is_for_others) == UNFINISHED
}

fn is_unused(found: &Stat) -> bool {
    let is_owned = found.st_uid == rustix::process::geteuid().as_raw();
    is_owned
        && match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => true,
            FileType::RegularFile => found.st_size == 0,
            _ => false,
        }
}

fn same(path: &Path, object: &OwnedFd) -> bool {
    let (Ok(there), Ok(here)) = (rustix::fs::lstat(path), rustix::fs::fstat(object)) else {
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
        for holder in [&first, &first, &second] {
            holder.hold(&path, Placeholder::Folder).unwrap();
        }
        drop(first);
        assert!(path.is_dir());
        drop(second);
        assert!(!path.exists());
    }

    /// SAFE-10: the user can use a placeholder like any other file or folder, and then keeps it.
    #[test]
    fn a_placeholder_is_ordinary() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
        let holds = Placeholders::default();
        for (path, kind) in paths.iter().zip([
            Placeholder::Folder,
            Placeholder::File,
            Placeholder::Folder,
            Placeholder::File,
        ]) {
            holds.hold(path, kind).unwrap();
            assert!(is_placeholder(path));
        }
        std::fs::write(paths[2].join("settings.json"), "{}").unwrap();
        std::fs::write(&paths[3], "x = 1").unwrap();
        assert!(!is_placeholder(&paths[2]) && !is_placeholder(&paths[3]));
        drop(holds);
        assert_eq!(
            paths.each_ref().map(|path| path.exists()),
            [false, false, true, true]
        );
    }

    /// SAFE-10: a placeholder is recognized from the moment it exists; one that a killed program left unmarked is taken over.
    #[test]
    fn an_unfinished_placeholder_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".zed");
        rustix::fs::mkdir(&path, Mode::from_raw_mode(FOLDER_MODE | UNFINISHED)).unwrap();
        assert!(is_placeholder(&path));
        let shared = folder.path().join("tmp");
        std::fs::create_dir(&shared).unwrap();
        rustix::fs::chmod(&shared, Mode::from_raw_mode(0o1777)).unwrap();
        assert!(!is_placeholder(&shared));
        let holds = Placeholders::default();
        holds.hold(&path, Placeholder::Folder).unwrap();
        let found = rustix::fs::lstat(&path).unwrap();
        assert!(!is_unfinished(&found) && is_mark(&found));
        drop(holds);
        assert!(!path.exists());
    }

    /// SAFE-10: a sandbox notices that another program removed one of its placeholders, and holds a new one.
    #[test]
    fn a_removed_placeholder_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let holds = Placeholders::default();
        let hold = || {
            paths
                .iter()
                .try_for_each(|path| holds.hold(path, Placeholder::Folder))
        };
        hold().unwrap();
        assert!(holds.still_hold());
        std::fs::remove_dir(&paths[0]).unwrap();
        std::fs::remove_dir(&paths[1]).unwrap();
        std::fs::write(&paths[1], "a file of the user").unwrap();
        assert!(!holds.still_hold());
        holds.forget_lost();
        hold().unwrap();
        assert!(holds.still_hold());
        drop(holds);
        assert_eq!(paths.each_ref().map(|path| path.exists()), [false, true]);
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
            holds.hold(path, Placeholder::Folder).unwrap();
        }
        std::fs::write(used.join("x"), "x").unwrap();
        drop(holds);
        assert!(file.exists() && full.exists() && used.join("x").exists());
    }
}
