//! Files without a name, which vanish with the process that writes them.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

#[cfg(all(target_os = "linux", not(windlass_portable)))]
pub(super) use self::linux::{create, link};
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
pub(super) use self::portable::{create, link};

#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags};

    use super::{BorrowedFd, File, OsStr, io};

    /// Creates a file on the file system of a folder. `None` if the file system cannot.
    pub(in super::super) fn create(folder: BorrowedFd<'_>) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(0o666));
        file.ok().map(File::from)
    }

    /// Gives the file a name in a folder. Fails if the name exists.
    pub(in super::super) fn link(file: &File, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let linked = rustix::fs::linkat(file, "", folder, name, AtFlags::EMPTY_PATH);
        // Older kernels want a privilege for that, and take the path of the descriptor.
        let linked = linked.or_else(|_| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, path, folder, name, AtFlags::SYMLINK_FOLLOW)
        });
        linked.map_err(io::Error::from)
    }
}

#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable {
    use super::{BorrowedFd, File, OsStr, io};

    pub(in super::super) fn create(_: BorrowedFd<'_>) -> Option<File> {
        None
    }

    pub(in super::super) fn link(_: &File, _: BorrowedFd<'_>, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
