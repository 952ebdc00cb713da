//! A file name in a folder that is held open by a handle.

use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use super::rules::Denied;
use super::{Attempt, OpenMode, PathDenied, step};
use crate::backend::files;
use crate::folder::stamp_time;

/// Start of the name of a file that gets its real name when it is complete. The rest is an id in hexadecimal digits.
const TEMPORARY: &str = ".windlass-";
const ID_LENGTH: usize = 32;
/// Seconds after its last change during which such a file may still be written.
const WRITING: i64 = 600;

/// A file name in a folder. The folder stays the same whatever happens to its path.
#[derive(Debug)]
pub struct Place<'a> {
    folder: OwnedFd,
    name: OsString,
    path: PathBuf,
    denied: &'a Denied,
}

/// Treatment of a file that exists already.
#[derive(Clone, Copy)]
enum Existing {
    Replaced,
    Refused,
}

impl<'a> Place<'a> {
    pub(super) fn new(folder: OwnedFd, name: OsString, path: PathBuf, denied: &'a Denied) -> Self {
        Self {
            folder,
            name,
            path,
            denied,
        }
    }

    /// Returns the real path, with every link followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the name in the folder.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the metadata of the file with this name, without opening it. `None` if there is no such file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn look(&self) -> Result<Option<Stat>, PathDenied> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.denial(Attempt::System(error.into()))),
        }
    }

    pub(super) fn open(&self, how: OpenMode) -> Result<File, Attempt> {
        // Without blocking: a pipe that no process has open at the other end would block forever.
        let flags = match how {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::WRONLY,
            OpenMode::Create => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        };
        let file = step(
            &self.folder,
            &self.name,
            flags | OFlags::NONBLOCK | OFlags::NOCTTY,
        )?;
        self.denied.check(&file)?;
        Ok(file.into())
    }

    /// Opens the file with this name, which must still not be a link.
    ///
    /// # Errors
    /// If the file is denied, was replaced by something else, or the system refuses.
    pub fn file(&self, how: OpenMode) -> Result<File, PathDenied> {
        self.open(how).map_err(|failure| self.denial(failure))
    }

    /// Replaces the whole file: writes a file with an unguessable name next to it, then moves that file over
    /// it. With `permissions` the new file gets those; without, no such file may exist yet, and the default
    /// permissions apply.
    ///
    /// # Errors
    /// If the file is denied, exists unexpectedly, or the system refuses.
    pub fn replace(&self, content: &[u8], permissions: Option<Permissions>) -> Result<File, PathDenied> {
        let existing = if permissions.is_some() {
            Existing::Replaced
        } else {
            Existing::Refused
        };
        self.put(content, permissions, existing)
    }

    /// Writes a file that does not exist yet, with these permissions or the default ones.
    ///
    /// # Errors
    /// If the file is denied, exists, or the system refuses.
    pub fn create(&self, content: &[u8], permissions: Option<Permissions>) -> Result<File, PathDenied> {
        self.put(content, permissions, Existing::Refused)
    }

    fn put(
        &self,
        content: &[u8],
        permissions: Option<Permissions>,
        existing: Existing,
    ) -> Result<File, PathDenied> {
        // The existing file is replaced and not read, so any other reason why it cannot be opened does not
        // matter.
        if let Err(Attempt::Denied) = self.open(OpenMode::Read) {
            return Err(self.denial(Attempt::Denied));
        }
        if let Some(file) = files::create_unnamed(self.folder.as_fd()) {
            let written = self.fill_unnamed(file, content, permissions.clone(), existing);
            match written {
                Ok(Some(file)) => return Ok(file),
                // A file system that cannot give it a name.
                Ok(None) => {}
                Err(error) => return Err(self.denial(Attempt::System(error))),
            }
        }
        let temporary = temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = step(&self.folder, &temporary, flags).map_err(|failure| self.denial(failure))?;
        let written = self.fill(file.into(), &temporary, content, permissions, existing);
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written.map_err(|error| self.denial(Attempt::System(error)))
    }

    /// Writes a file that has no name before it is complete, so that a process that is killed leaves nothing
    /// behind. Returns `None` if it cannot get a name.
    fn fill_unnamed(
        &self,
        mut file: File,
        content: &[u8],
        permissions: Option<Permissions>,
        existing: Existing,
    ) -> io::Result<Option<File>> {
        file.write_all(content)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        let folder = self.folder.as_fd();
        let name = match existing {
            Existing::Refused => self.name.clone(),
            // A link replaces nothing, a rename does.
            Existing::Replaced => temporary_name(),
        };
        match files::link_unnamed(&file, folder, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
        if let Existing::Replaced = existing {
            let moved = rustix::fs::renameat(folder, &name, folder, &self.name);
            if moved.is_err() {
                let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
            }
            moved?;
        }
        Ok(Some(file))
    }

    fn fill(
        &self,
        mut file: File,
        temporary: &OsStr,
        content: &[u8],
        permissions: Option<Permissions>,
        existing: Existing,
    ) -> io::Result<File> {
        file.write_all(content)?;
        let (from, to) = (temporary, self.name.as_os_str());
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        match existing {
            Existing::Replaced => rustix::fs::renameat(&self.folder, from, &self.folder, to)?,
            Existing::Refused => files::rename_new(self.folder.as_fd(), from, to)?,
        }
        Ok(file)
    }

    /// Removes the file with this name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self) -> Result<(), PathDenied> {
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())
            .map_err(|error| self.denial(Attempt::System(error.into())))
    }

    fn denial(&self, failure: Attempt) -> PathDenied {
        let path = self.path.clone();
        match failure {
            Attempt::Denied => PathDenied::Denied(path),
            Attempt::Outside => PathDenied::Outside(path),
            Attempt::Changed => PathDenied::Raced(path),
            Attempt::Moved(real) => PathDenied::Moved { path, real },
            Attempt::System(source) => PathDenied::System { path, source },
        }
    }
}

/// Returns a name that nobody can guess.
fn temporary_name() -> OsString {
    OsString::from(format!("{TEMPORARY}{}", Uuid::new_v4().simple()))
}

/// Returns true for the temporary file of a process that was killed before it could give the file its real name.
pub(crate) fn is_abandoned(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let id = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY));
    let is_ours = |found: Metadata| found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    let is_old = |found: &Metadata| found.mtime() < stamp_time() / 1_000_000_000 - WRITING;
    id.is_some_and(|id| id.len() == ID_LENGTH && Uuid::try_parse(id).is_ok())
        && entry
            .metadata()
            .is_ok_and(|found| is_old(&found) && is_ours(found))
}
