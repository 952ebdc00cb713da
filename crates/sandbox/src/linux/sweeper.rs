//! Removes the placeholders of a program that was killed: a small process beside the launcher, in the namespaces of the
//! program.
//!
//! It waits for the end of everything in the sandbox. If the program is still there then, it takes care of its
//! placeholders itself. A sweeper that was killed, too, leaves them to the next sandbox.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::exit;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{DumpableBehavior, PidfdFlags, getppid, pidfd_open};

use super::placeholders::sweep;
use super::resolved::ResolvedPolicy;
use super::syscalls;
use crate::policy::Guard;

/// Time in which a program that was killed has ended, once its launcher has.
const DYING: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Time in which the other launchers of a program end with it. Their commands must not outlive a placeholder.
const OTHERS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Starts the sweeper of the program that is this launcher's parent. It begins its work once the returned pipe is closed
/// everywhere. Must be called before the launcher enters its namespaces. Returns `None` if there are no placeholders.
///
/// # Errors
/// If the system allows no further process.
pub(super) fn start(socket: &OwnedFd, policy: &ResolvedPolicy) -> io::Result<Option<PipeWriter>> {
    let placeholders: Vec<PathBuf> = policy.placeholders().map(|(path, _)| path).collect();
    let Some(program) = getppid().filter(|_| policy.has(Guard::Masks) && !placeholders.is_empty()) else {
        return Ok(None);
    };
    let program = pidfd_open(program, PidfdFlags::empty())?;
    let (ended, running) = io::pipe()?;
    if syscalls::fork()?.is_some() {
        return Ok(Some(running));
    }
    drop(running);
    // The connection to the launcher belongs to the launcher alone.
    let _ = syscalls::close(socket.as_raw_fd());
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    run(&ended, &program, &placeholders)
}

fn run(ended: &PipeReader, program: &OwnedFd, placeholders: &[PathBuf]) -> ! {
    wait(ended, None);
    if wait(program, Some(&DYING)) {
        let _ = poll(&mut [], Some(&OTHERS));
        sweep(placeholders);
    }
    exit(0)
}

/// Waits until a pipe is closed or a process has ended. Returns false if the time is over before.
fn wait(file: &impl AsFd, limit: Option<&Timespec>) -> bool {
    loop {
        let mut ready = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
        match poll(&mut ready, limit) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
