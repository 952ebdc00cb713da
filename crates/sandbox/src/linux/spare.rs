//! Supervisors that wait for a command. The launcher always keeps one ready, because a fork takes longer than
//! the rest of a start: it happens while the command before runs.
//!
//! The spare supervisor receives the request itself, from the connection that it shares with the launcher, and
//! tells the launcher to create the next one.
//!
//! A command may signal every process of its sandbox except the launcher. A supervisor that was stopped could
//! neither end its command nor look at its memory, so the launcher looks for stopped ones and ends the sandbox.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::exit;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getppid, pidfd_open, set_parent_process_death_signal,
};

use super::resolved::ResolvedPolicy;
use super::supervise::{self, Files};
use super::{syscalls, wire};
use crate::policy::Guard;

/// Pause before the next supervisor is created, so that its fork does not slow down the start of the command.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Pause between two looks at the supervisors of running commands.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A supervisor that waits for a command.
struct Spare {
    pid: Pid,
    /// Readable once it has ended.
    handle: OwnedFd,
    /// Readable once it has taken a command.
    taken: PipeReader,
}

/// Starts commands until the connection closes.
pub(super) fn attend(socket: &OwnedFd, policy: &ResolvedPolicy) {
    let mut spare = None;
    let mut busy = Vec::new();
    loop {
        // Supervisors that have ended. Without this they would stay in the process table.
        while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
            spare.take_if(|spare: &mut Spare| spare.pid == pid);
            busy.retain(|running| *running != pid);
        }
        if spare.is_none() {
            spare = create(socket, policy);
        }
        let may_continue = match &spare {
            Some(_) => wait(socket, &mut spare, &mut busy),
            None => refuse(socket),
        };
        let waiting = spare.iter().map(|spare| &spare.pid);
        if !may_continue || busy.iter().chain(waiting).any(is_stopped) {
            return;
        }
    }
}

/// Returns true if a signal stopped this process.
fn is_stopped(pid: &Pid) -> bool {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The name of the program, in parentheses, may contain anything.
    let end = stat.iter().rposition(|byte| *byte == b')').unwrap_or_default();
    matches!(stat.get(end + 2), Some(b'T' | b't'))
}

/// Waits until the spare supervisor has a command or has ended; while others are busy, for a moment. Returns false if
/// the connection is closed.
fn wait(socket: &OwnedFd, spare: &mut Option<Spare>, busy: &mut Vec<Pid>) -> bool {
    let Some(waiting) = spare else { return true };
    let mut ready = [
        // Only its end matters: the spare supervisor receives the requests.
        PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::empty()),
        PollFd::from_borrowed_fd(waiting.taken.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(waiting.handle.as_fd(), PollFlags::IN),
    ];
    let limit = (!busy.is_empty()).then_some(&LOOK);
    if poll(&mut ready, limit).is_err() {
        return true;
    }
    let [closed, taken, _] = ready.map(|one| !one.revents().is_empty());
    if taken {
        busy.extend(spare.take().map(|spare| spare.pid));
        let _ = poll(&mut [], Some(&PAUSE));
    }
    !closed
}

/// Drops one request, because no supervisor can be created: its caller learns it, since the connection of the
/// command closes without a report. Waits for it only a moment. Returns false if the connection is closed.
fn refuse(socket: &OwnedFd) -> bool {
    let mut ready = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    match poll(&mut ready, Some(&LOOK)) {
        Ok(0) | Err(_) => true,
        Ok(_) => matches!(wire::receive(socket), Ok(Some(_))),
    }
}

/// Creates a supervisor that waits; `None` if the system does not allow another process.
fn create(socket: &OwnedFd, policy: &ResolvedPolicy) -> Option<Spare> {
    let (taken, tell) = std::io::pipe().ok()?;
    let launcher = rustix::process::getpid();
    match syscalls::fork() {
        Ok(Some(pid)) => Some(Spare {
            pid,
            handle: pidfd_open(pid, PidfdFlags::empty()).ok()?,
            taken,
        }),
        Ok(None) => {
            drop(taken);
            serve(socket, tell, launcher, policy)
        }
        Err(_) => None,
    }
}

/// Waits for a command and supervises it. Never returns.
fn serve(socket: &OwnedFd, mut tell: PipeWriter, launcher: Pid, policy: &ResolvedPolicy) -> ! {
    supervise::prepare();
    // Without the launcher nobody would replace this process, so the connection must close.
    let follows = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    if !follows || getppid().is_some_and(|parent| parent != launcher) {
        exit(1)
    }
    let Ok(Some((_, files))) = wire::receive(socket) else {
        exit(0)
    };
    let _ = tell.write(b"t");
    drop(tell);
    // The connection to the launcher belongs to the launcher alone, and a command survives it.
    let _ = syscalls::close(socket.as_raw_fd());
    let _ = set_parent_process_death_signal(None);
    let mut files = files.into_iter();
    let (Some(request), Some(caller), Some(input), Some(output), Some(errors)) = (
        files.next(),
        files.next(),
        files.next(),
        files.next(),
        files.next(),
    ) else {
        exit(1)
    };
    supervise::run(Files {
        request,
        caller,
        streams: [input, output, errors],
        offline: policy.own_network(),
        memory: policy.limits.memory.filter(|_| policy.has(Guard::ResourceLimits)),
    })
}
