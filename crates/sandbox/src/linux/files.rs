//! Opening and renaming files by handle, with the system calls that only Linux has.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// Flags for a folder that is only a starting point for other paths. They need no permission to list it.
pub(crate) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Opens one name in a folder; never through a link, and never out of the folder.
pub(crate) fn open_name(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(folder, name, flags, mode, beneath) {
        // Old kernels, and filters that do not know the call. For a single name `openat` does the same.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(folder, name, flags, mode),
        other => other,
    }
}

/// Opens a path that has no link in it. Returns `None` if the kernel has no call for that.
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> Option<Result<OwnedFd>> {
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty(), no_links) {
        // Old kernels, and filters that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => None,
        other => Some(other),
    }
}

/// Renames a file inside a folder. Fails if the new name exists.
pub(crate) fn rename_new(folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<()> {
    match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // Some file systems do not know the flag; a second link does not replace a file either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
            rustix::fs::unlinkat(folder, from, AtFlags::empty())
        }
        other => other,
    }
}
