//! System calls that no library here has words for. Their numbers are the same on all processors that we know.

use std::ffi::{c_int, c_long, c_uint};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const CLOSE_RANGE: c_long = 436;
const LANDLOCK_ADD_RULE: c_long = 445;
const LANDLOCK_RESTRICT_SELF: c_long = 446;

/// Marks what is open instead of closing it.
const CLOSE_RANGE_CLOEXEC: c_uint = 4;
/// The kind of rule that is about a place and what is below.
const RULE_PATH_BENEATH: c_int = 1;

// SAFETY: this is how the C library declares it, and the standard library is linked with that.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// What a rule about a place is made of, as the kernel reads it: without a gap.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    place: c_int,
}

/// Marks every descriptor from `first` on to be closed when this process becomes another program.
///
/// # Errors
/// When the kernel is older than Landlock, or a filter does not know the call.
pub(super) fn close_on_exec_from(first: c_uint) -> io::Result<()> {
    // SAFETY: three numbers, and no descriptor is closed.
    #[allow(unsafe_code)]
    let result = unsafe { syscall(CLOSE_RANGE, first, c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
    told(result)
}

/// Adds a place to a set of path rules.
///
/// # Errors
/// When the descriptor is no such set, or a right is not one that it handles.
pub(super) fn allow(rules: BorrowedFd<'_>, place: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
    let rule = PathBeneath {
        allowed,
        place: place.as_raw_fd(),
    };
    let no_flags: c_uint = 0;
    // SAFETY: both descriptors are open, and the rule, which has the layout of its kind, outlives the call.
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
    told(result)
}

/// Narrows this thread to a set of path rules.
///
/// # Errors
/// When the descriptor is no such set, or new privileges are not refused yet.
pub(super) fn restrict_self(rules: BorrowedFd<'_>) -> io::Result<()> {
    let no_flags: c_uint = 0;
    // SAFETY: the descriptor is open, and what this takes away stays away.
    #[allow(unsafe_code)]
    let result = unsafe { syscall(LANDLOCK_RESTRICT_SELF, rules.as_raw_fd(), no_flags) };
    told(result)
}

fn told(result: c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
