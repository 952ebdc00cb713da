//! A name in a folder that is held by a handle.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use super::rules::Denied;
use super::{Attempt, OpenMode, PathDenied, step};

/// A name in a folder. The folder stays the same whatever happens to its path.
#[derive(Debug)]
pub struct Place<'a> {
    folder: OwnedFd,
    name: OsString,
    path: PathBuf,
    denied: &'a Denied,
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy)]
enum There {
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

    /// The real path, with every link followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The name in the folder.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// What is there under this name, without opening it. `None` when there is nothing.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn look(&self) -> Result<Option<Stat>, PathDenied> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.told(Attempt::System(error.into()))),
        }
    }

    pub(super) fn open(&self, how: OpenMode) -> Result<File, Attempt> {
        // Without waiting: a pipe with nobody at its other end would hold us for ever.
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

    /// Opens the file of this name, which must still be no link.
    ///
    /// # Errors
    /// When it is denied, has become something else, or the system refuses.
    pub fn file(&self, how: OpenMode) -> Result<File, PathDenied> {
        self.open(how).map_err(|failure| self.told(failure))
    }

    /// Replaces the file as a whole: written beside it under a name that nobody can guess, then moved over it. With
    /// `permissions` it gets those; without, there must be no such file yet, and it gets what any new file gets.
    ///
    /// # Errors
    /// When it is denied, exists against expectation, or the system refuses.
    pub fn replace(&self, content: &[u8], permissions: Option<Permissions>) -> Result<File, PathDenied> {
        let there = if permissions.is_some() {
            There::Replaced
        } else {
            There::Refused
        };
        self.put(content, permissions, there)
    }

    /// Writes a file that does not exist yet, with these permissions or what any new file gets.
    ///
    /// # Errors
    /// When it is denied, exists, or the system refuses.
    pub fn create(&self, content: &[u8], permissions: Option<Permissions>) -> Result<File, PathDenied> {
        self.put(content, permissions, There::Refused)
    }

    fn put(
        &self,
        content: &[u8],
        permissions: Option<Permissions>,
        there: There,
    ) -> Result<File, PathDenied> {
        // What is there is replaced and not read, so why else it cannot be opened does not matter.
        if let Err(Attempt::Denied) = self.open(OpenMode::Read) {
            return Err(self.told(Attempt::Denied));
        }
        let temporary = OsString::from(format!(".windlass-{}", Uuid::new_v4().simple()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = step(&self.folder, &temporary, flags).map_err(|failure| self.told(failure))?;
        let written = self.fill(file.into(), &temporary, content, permissions, there);
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written.map_err(|error| self.told(Attempt::System(error)))
    }

    fn fill(
        &self,
        mut file: File,
        temporary: &OsStr,
        content: &[u8],
        permissions: Option<Permissions>,
        there: There,
    ) -> io::Result<File> {
        file.write_all(content)?;
        let (from, to) = (temporary, self.name.as_os_str());
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        match there {
            There::Replaced => rustix::fs::renameat(&self.folder, from, &self.folder, to)?,
            There::Refused => {
                match rustix::fs::renameat_with(&self.folder, from, &self.folder, to, RenameFlags::NOREPLACE)
                {
                    // Some file systems do not know the flag; a second name does not replace either.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        rustix::fs::linkat(&self.folder, from, &self.folder, to, AtFlags::empty())?;
                        rustix::fs::unlinkat(&self.folder, from, AtFlags::empty())?;
                    }
                    other => other?,
                }
            }
        }
        Ok(file)
    }

    /// Removes the file of this name.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&self) -> Result<(), PathDenied> {
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())
            .map_err(|error| self.told(Attempt::System(error.into())))
    }

    fn told(&self, failure: Attempt) -> PathDenied {
        let path = self.path.clone();
        match failure {
            Attempt::Denied => PathDenied::Denied(path),
            Attempt::Outside => PathDenied::Outside(path),
            Attempt::Changed => PathDenied::Raced(path),
            Attempt::System(source) => PathDenied::System { path, source },
        }
    }
}
