//! System calls that no library here wraps. Their numbers are the same on all supported processors.

use std::ffi::{CString, c_char, c_int, c_long, c_short, c_uint};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Signal};

const CLOSE_RANGE: c_long = 436;
const MOUNT_SETATTR: c_long = 442;

const CURRENT_DIRECTORY: c_int = -100;
const EMPTY_PATH: c_uint = 0x1000;
const RECURSIVE: c_uint = 0x8000;
const MOUNT_READ_ONLY: u64 = 1;

const SET_INTERFACE_FLAGS: std::ffi::c_ulong = 0x8914;
const INTERFACE_UP: c_short = 1;

// SAFETY: this is how the C library declares them, and the standard library is linked with the C library.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    #[link_name = "fork"]
    fn c_fork() -> c_int;
    #[link_name = "close"]
    fn c_close(descriptor: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn ioctl(descriptor: c_int, request: std::ffi::c_ulong, ...) -> c_int;
}

/// The attributes of a mount in the kernel's layout.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// The flags of a network interface in the kernel's layout.
#[repr(C)]
struct InterfaceFlags {
    name: [c_char; 16],
    flags: c_short,
    padding: [u8; 22],
}

/// Creates a copy of this process. Returns the copy in the original, and `None` in the copy. Only for a
/// process with a single thread.
///
/// # Errors
/// If no process can be created.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the caller has a single thread, so no lock is held by a thread that the copy does not have.
    #[allow(unsafe_code)]
    let number = unsafe { c_fork() };
    match number {
        0 => Ok(None),
        number if number > 0 => Ok(Pid::from_raw(number)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes a descriptor by its number, in a copy of this process that never uses its owner.
///
/// # Errors
/// If the descriptor is not open.
pub(super) fn close(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the owner of the descriptor is never used or dropped in this process.
    #[allow(unsafe_code)]
    let result = unsafe { c_close(descriptor) };
    checked(c_long::from(result))
}

/// Ignores the signals with which people and service managers end a group of processes.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn ignore_ending_signals() -> io::Result<()> {
    const IGNORE: usize = 1;
    const REFUSED: usize = usize::MAX;
    for number in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::PIPE] {
        // SAFETY: no handler of ours is installed; the kernel only stops to deliver the signal.
        #[allow(unsafe_code)]
        let before = unsafe { signal(number.as_raw(), IGNORE) };
        if before == REFUSED {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Closes the descriptors between two numbers, both included.
///
/// # Errors
/// If the kernel is older than Landlock, or a filter does not know the call.
pub(super) fn close_range(first: c_uint, last: c_uint) -> io::Result<()> {
    let no_flags: c_uint = 0;
    // SAFETY: three numbers. The caller owns no descriptor in the range.
    #[allow(unsafe_code)]
    let result = unsafe { syscall(CLOSE_RANGE, first, last, no_flags) };
    checked(result)
}

/// Makes every mount at and below a path read-only.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn read_only_below(path: &Path) -> io::Result<()> {
    set_read_only(CURRENT_DIRECTORY, path, RECURSIVE)
}

/// Makes the mount at a path read-only, but not the mounts below it.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn read_only_mount(path: &Path) -> io::Result<()> {
    set_read_only(CURRENT_DIRECTORY, path, 0)
}

/// Makes a tree of mounts read-only that is not attached yet.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn read_only(tree: &OwnedFd) -> io::Result<()> {
    set_read_only(tree.as_raw_fd(), Path::new(""), RECURSIVE | EMPTY_PATH)
}

fn set_read_only(folder: c_int, path: &Path, flags: c_uint) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = MountAttributes {
        set: MOUNT_READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the path and the attributes, which have the layout of their type, outlive the call.
    #[allow(unsafe_code)]
    let result = unsafe {
        syscall(
            MOUNT_SETATTR,
            folder,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    checked(result)
}

/// Starts the loopback interface of a new network namespace.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = InterfaceFlags {
        name: [0; 16],
        flags: INTERFACE_UP,
        padding: [0; 22],
    };
    for (place, byte) in request.name.iter_mut().zip(b"lo") {
        *place = byte.cast_signed();
    }
    // SAFETY: the request has the layout and the size that the kernel reads, and outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { ioctl(socket.as_raw_fd(), SET_INTERFACE_FLAGS, &raw const request) };
    checked(c_long::from(result))
}

fn checked(result: c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
