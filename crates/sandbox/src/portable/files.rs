//! Opening and renaming files by handle, with POSIX calls only.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, Result};

/// Flags for a folder that is only a starting point for other paths. They need permission to list it.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opens one name in a folder, never through a link. The name must be a single one and not `..`.
pub(crate) fn open_name(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    match rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, mode) {
        // FreeBSD's error for a link.
        Err(Errno::MLINK) => Err(Errno::LOOP),
        other => other,
    }
}

/// Returns `None`: POSIX has no call that opens a whole path without following links.
pub(crate) fn open_without_links(_path: &Path, _flags: OFlags) -> Option<Result<OwnedFd>> {
    None
}

/// Renames a file inside a folder. Fails if the new name exists.
pub(crate) fn rename_new(folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<()> {
    // A rename replaces, a second link does not.
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    rustix::fs::unlinkat(folder, from, AtFlags::empty())
}
