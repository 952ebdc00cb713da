//! System calls that no library here wraps. Their numbers are the same on all supported processors.

use std::ffi::{c_int, c_long, c_uint};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const CLOSE_RANGE: c_long = 436;
const LANDLOCK_ADD_RULE: c_long = 445;
const LANDLOCK_RESTRICT_SELF: c_long = 446;

/// Marks the descriptors instead of closing them.
const CLOSE_RANGE_CLOEXEC: c_uint = 4;
/// Rule type for a path and everything below it.
const RULE_PATH_BENEATH: c_int = 1;

// SAFETY: this is how the C library declares it, and the standard library is linked with the C library.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// A path rule in the kernel's layout: without padding.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    place: c_int,
}

/// Marks every descriptor from `first` on to be closed when this process becomes another program.
///
/// # Errors
/// If the kernel is older than Landlock, or a filter does not know the call.
pub(super) fn close_on_exec_from(first: c_uint) -> io::Result<()> {
    // SAFETY: three numbers, and no descriptor is closed.
    #[allow(unsafe_code)]
    let result = unsafe { syscall(CLOSE_RANGE, first, c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
    checked(result)
}

/// Adds a path to a set of path rules.
///
/// # Errors
/// If the descriptor is not such a set, or the set does not handle one of the rights.
pub(super) fn allow(rules: BorrowedFd<'_>, place: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
    let rule = PathBeneath {
        allowed,
        place: place.as_raw_fd(),
    };
    let no_flags: c_uint = 0;
    // SAFETY: both descriptors are open, and the rule, which has the layout of its type, outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe {
        syscall(
            LANDLOCK_ADD_RULE,
            rules.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            no_flags,
        )
    };
    checked(result)
}

/// Restricts this thread to a set of path rules.
///
/// # Errors
/// If the descriptor is not such a set, or new privileges are not refused yet.
pub(super) fn restrict_self(rules: BorrowedFd<'_>) -> io::Result<()> {
    let no_flags: c_uint = 0;
    // SAFETY: the descriptor is open, and the call only removes rights.
    #[allow(unsafe_code)]
    let result = unsafe { syscall(LANDLOCK_RESTRICT_SELF, rules.as_raw_fd(), no_flags) };
    checked(result)
}

fn checked(result: c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
