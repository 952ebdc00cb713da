//! Opening and renaming files by handle, with POSIX calls only.

use std::ffi::{CStr, OsStr};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RawMode};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

/// Flags for a folder that is only a starting point for other paths. They need permission to list it.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The clock that files are stamped with, or a more exact one.
pub(crate) const STAMP_CLOCK: ClockId = ClockId::Realtime;

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

/// Returns `None`, for the same reason.
pub(crate) fn open_below(_folder: BorrowedFd<'_>, _path: &Path, _flags: OFlags) -> Option<Result<OwnedFd>> {
    None
}

/// Calls `visit` with each name in a folder, `.` and `..` included.
pub(crate) fn names(
    folder: BorrowedFd<'_>,
    mut visit: impl FnMut(&CStr) -> io::Result<()>,
) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        visit(entry?.file_name())?;
    }
    Ok(())
}

/// Sets the mode of a file or folder. `kind` is a flag for opening it.
pub(crate) fn set_mode(folder: BorrowedFd<'_>, name: &OsStr, kind: OFlags, mode: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | kind;
    match open_name(folder, name, flags, Mode::empty()) {
        Ok(handle) => File::from(handle).set_permissions(Permissions::from_mode(mode)),
        // Not readable. The BSDs can set a mode by name without following a link; elsewhere the call fails.
        Err(Errno::ACCESS) => {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::unnecessary_cast,
                reason = "the type of a mode differs from system to system, its twelve bits do not"
            )]
            let mode = Mode::from_raw_mode(mode as RawMode);
            Ok(rustix::fs::chmodat(
                folder,
                name,
                mode,
                AtFlags::SYMLINK_NOFOLLOW,
            )?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Renames a file inside a folder. Fails if the new name exists.
pub(crate) fn rename_new(folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<()> {
    // A rename replaces, a second link does not.
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    rustix::fs::unlinkat(folder, from, AtFlags::empty())
}

/// Returns `None`: POSIX has no files without a name.
pub(crate) fn create_unnamed(_: BorrowedFd<'_>) -> Option<File> {
    None
}

/// Fails: there is no such file.
pub(crate) fn link_unnamed(_: &File, _: BorrowedFd<'_>, _: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns false: processes have no entries that are files.
pub(crate) fn is_of_process(_path: &[u8]) -> bool {
    false
}

/// Returns true for a folder of devices.
pub(crate) fn is_of_kernel(path: &Path) -> bool {
    path.starts_with("/dev")
}
