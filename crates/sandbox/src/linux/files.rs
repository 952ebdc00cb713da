//! Opening and renaming files by handle, with the system calls that only Linux has.

use std::ffi::{CStr, OsStr};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

/// Flags for a folder that is only a starting point for other paths. They need no permission to list it.
pub(crate) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// The clock that the kernel stamps files with.
pub(crate) const STAMP_CLOCK: ClockId = ClockId::RealtimeCoarse;

/// No link, and no way out of the folder.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Bytes of names that are read at once.
const NAMES: usize = 32 << 10;

/// Opens one name in a folder; never through a link, and never out of the folder.
pub(crate) fn open_name(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW;
    match rustix::fs::openat2(folder, name, flags, mode, BENEATH) {
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

/// Opens a path below a folder. Returns `None` if the kernel has no call for that.
pub(crate) fn open_below(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Option<Result<OwnedFd>> {
    match rustix::fs::openat2(folder, path, flags, Mode::empty(), BENEATH) {
        // Old kernels, and filters that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => None,
        other => Some(other),
    }
}

/// Calls `visit` with each name in a folder, `.` and `..` included.
pub(crate) fn names(
    folder: BorrowedFd<'_>,
    mut visit: impl FnMut(&CStr) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = Vec::<u8>::with_capacity(NAMES);
    let mut names = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = names.next() {
        visit(entry?.file_name())?;
    }
    Ok(())
}

/// Sets the mode of a file or folder that needs not be readable. `kind` is a flag for opening it.
pub(crate) fn set_mode(folder: BorrowedFd<'_>, name: &OsStr, kind: OFlags, mode: u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | kind;
    let handle = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    // Such a handle has no call of its own for this. If it is a link, the mode is refused.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
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

/// Creates a file without a name on the file system of a folder; it vanishes with the process that writes it.
/// `None` if the file system cannot.
pub(crate) fn create_unnamed(folder: BorrowedFd<'_>) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(0o666));
    file.ok().map(File::from)
}

/// Gives a file without a name a name in a folder. Fails if the name exists.
pub(crate) fn link_unnamed(file: &File, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let linked = rustix::fs::linkat(file, "", folder, name, AtFlags::EMPTY_PATH);
    // Older kernels want a privilege for that, and take the path of the descriptor.
    let linked = linked.or_else(|_| {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, path, folder, name, AtFlags::SYMLINK_FOLLOW)
    });
    linked.map_err(io::Error::from)
}

/// Returns true for the entries of a process: its environment, memory and open files.
pub(crate) fn is_of_process(path: &[u8]) -> bool {
    let name = path.strip_prefix(b"/proc/").and_then(|rest| rest.first());
    name.is_some_and(u8::is_ascii_digit)
}

/// Returns true for folders without files of their own, whose entries tell about processes and devices.
pub(crate) fn is_of_kernel(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"]
        .iter()
        .any(|kernel| path.starts_with(kernel))
}
