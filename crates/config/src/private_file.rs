//! A file for this user's eyes alone that several processes change: one after the other, each time whole or not at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long others may take with their changes, which take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nobody else reads it or writes to it.
const OWN: u32 = 0o600;

/// Such a file. Reading needs no lock: there is always a whole one.
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

    /// What is in it; `None` when there is no such file.
    pub fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps others from changing it. What is to be changed must be read after this, and nobody may be asked meanwhile.
    ///
    /// # Errors
    /// When somebody else holds it for too long, or its folder cannot be written to.
    pub fn hold(&self) -> io::Result<Held> {
        self.hold_within(PATIENCE)
    }

    fn hold_within(&self, patience: Duration) -> io::Result<Held> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder(&self.path))?;
        let real = real(&self.path)?;
        // The file itself is replaced by every change, so a lock on it would be one on what is gone.
        let mut name = OsString::from(".");
        name.push(real.file_name().unwrap_or_default());
        name.push(".lock");
        let lock = lock(&folder(&real).join(name), patience)?;
        Ok(Held { real, _lock: lock })
    }
}

/// A file that nobody else changes until this is dropped.
#[derive(Debug)]
pub struct Held {
    /// Links are followed, so that they stay.
    real: PathBuf,
    _lock: File,
}

impl Held {
    /// Replaces what is in it. After an error it is as it was; after success it is on the disk.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let folder = folder(&self.real);
        // Made for its owner alone, from the first moment on, and that stays so under the new name.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.real)?;
        File::open(folder)?.sync_all()
    }

    /// Adds to its end. For what is written often and may be lost: it costs no more than the text.
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

/// The file that is meant, which may not be there yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            // A link to a file that is not there. It ends: too many links in a row are another error.
            Ok(target) => real(&folder(path).join(target)),
            Err(_) => Ok(path.to_owned()),
        },
        found => found,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Takes the lock, which ends with the file that is given back, and with the process at the latest.
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
        // A file system without locks is no reason to keep nothing.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (sender, locked) = mpsc::channel();
    // Nothing can stop a thread that waits for a lock. One that gets it too late gives it back at once.
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
