//! A file readable only by its user that several processes change: one after the other, and atomically.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use windlass_sandbox::read_regular;

/// Size of the largest file.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum wait for other processes to finish their changes, which take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// File mode without access for other users.
const OWN: u32 = 0o600;

/// A private file. Reading needs no lock, because the file is always complete.
#[derive(Debug)]
pub struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// Refers to the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content, or `None` if the file does not exist.
    pub fn read(&self) -> io::Result<Option<String>> {
        let text = read_regular(&self.path, MAX_BYTES).and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|_| io::Error::new(ErrorKind::InvalidData, "this is not UTF-8 text"))
        });
        match text {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Locks the file against changes by other processes. The caller must read the content to change after
    /// this call, and must not wait for user input while holding the lock.
    ///
    /// # Errors
    /// If another process holds the lock for too long, or the folder cannot be written to.
    pub fn hold(&self) -> io::Result<Held> {
        self.hold_within(PATIENCE)
    }

    fn hold_within(&self, patience: Duration) -> io::Result<Held> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder(&self.path))?;
        let real = real(&self.path)?;
        // The lock is on a separate file: every change replaces the file itself, so a lock on it would be on
        // a deleted file.
        let mut name = OsString::from(".");
        name.push(real.file_name().unwrap_or_default());
        name.push(".lock");
        let lock = lock(&folder(&real).join(name), patience)?;
        Ok(Held { real, _lock: lock })
    }
}

/// A locked file. Other processes cannot change it until this value is dropped.
#[derive(Debug)]
pub struct Held {
    /// Path with links resolved, so that replacing the file keeps the links.
    real: PathBuf,
    _lock: File,
}

impl Held {
    /// Replaces the content. After an error the file is unchanged; after success the content is on disk.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let folder = folder(&self.real);
        // The temporary file is private from the start, and stays so under its new name.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.real)?;
        File::open(folder)?.sync_all()
    }

    /// Appends to the file, at the cost of writing only the text. For frequent writes that may be lost.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let mut file = File::options()
            .append(true)
            .create(true)
            .mode(OWN)
            .open(&self.real)?;
        file.set_permissions(Permissions::from_mode(OWN))?;
        file.write_all(text.as_bytes())
    }
}

/// Resolves the path to the actual file, which may not exist yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            // A dangling link. The recursion ends: a chain of too many links is a different error.
            Ok(target) => real(&folder(path).join(target)),
            Err(_) => Ok(path.to_owned()),
        },
        found => found,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Takes the lock. It is released when the returned file is dropped, at the latest when the process ends.
fn lock(path: &Path, patience: Duration) -> io::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(OWN)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        // On a file system without locks, writing unlocked is better than storing nothing.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (sender, locked) = mpsc::channel();
    // A thread that waits for a lock cannot be stopped. If it gets the lock too late, it releases it
    // immediately.
    thread::spawn(move || sender.send(file.lock().map(|()| file)));
    locked.recv_timeout(patience).unwrap_or_else(|_| {
        let text = format!(
            "another process has been changing it for {} s (it holds {}); try again when it has finished",
            patience.as_secs(),
            path.display()
        );
        Err(io::Error::new(ErrorKind::TimedOut, text))
    })
}

#[cfg(test)]
#[path = "private_file_tests.rs"]
mod tests;
