//! Folders by handle, for walks over a whole tree: opened, listed and changed without following a link.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

use crate::backend::files::{self, FOLDER};

/// Opens a folder as a starting point for other paths. Links in the path are followed.
///
/// # Errors
/// The error of the system.
pub fn open(path: &Path) -> Result<OwnedFd> {
    rustix::fs::open(path, FOLDER | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a folder below another one as a starting point for other paths. An empty path is the folder itself.
///
/// # Errors
/// The error of the system: `LOOP` or `NOTDIR` if a part of the path is not a folder.
pub fn open_below(folder: impl AsFd, path: &Path) -> Result<OwnedFd> {
    below(folder.as_fd(), path, FOLDER)
}

/// Like [`open_below`], for [`names`].
///
/// # Errors
/// As [`open_below`].
pub fn open_below_to_list(folder: impl AsFd, path: &Path) -> Result<OwnedFd> {
    below(folder.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn below(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let here = Path::new(".");
    let path = if path.as_os_str().is_empty() { here } else { path };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    files::open_below(folder, path, flags).unwrap_or_else(|| step_by_step(folder, path, flags))
}

fn step_by_step(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let mut parts = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .peekable();
    let flags_before = |is_last: bool| if is_last { flags } else { FOLDER | OFlags::CLOEXEC };
    let first = flags_before(parts.peek().is_none());
    let mut opened = files::open_name(folder, OsStr::new("."), first, Mode::empty())?;
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(Errno::INVAL);
        };
        let flags = flags_before(parts.peek().is_none());
        opened = files::open_name(opened.as_fd(), name, flags, Mode::empty())?;
    }
    Ok(opened)
}

/// Calls `visit` with each name in a folder, in the order of the system, until one call fails.
///
/// # Errors
/// The error of the system, or of `visit`.
pub fn names(folder: impl AsFd, mut visit: impl FnMut(&CStr) -> io::Result<()>) -> io::Result<()> {
    files::names(folder.as_fd(), |name| match name.to_bytes() {
        b"." | b".." => Ok(()),
        _ => visit(name),
    })
}

/// Sets the mode of a folder, even if the folder is closed to its owner. A link is not followed.
///
/// # Errors
/// The error of the system. On a system other than Linux and the BSDs, a folder that its owner cannot read may
/// stay closed.
pub fn set_folder_mode(parent: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    files::set_mode(parent.as_fd(), name, OFlags::DIRECTORY, mode)
}

/// Sets the mode of a file. A link is not followed.
///
/// # Errors
/// As [`set_folder_mode`].
pub fn set_file_mode(parent: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    files::set_mode(parent.as_fd(), name, OFlags::empty(), mode)
}

/// Returns the time as it would be stamped on a file that changes now, in nanoseconds.
pub fn stamp_time() -> i64 {
    let now = rustix::time::clock_gettime(files::STAMP_CLOCK);
    now.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
