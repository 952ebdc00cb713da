//! The warden as a process, and the server's end of it.
//!
//! They share a file in memory with two copies of the deadline, in nanoseconds since boot. The server writes one after
//! the other, so a reader that finds both equal has read a whole one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio, exit};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, pread, pwrite};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::process::{Server, ServerTrees};
use super::{syscalls, wire};
use crate::process::kill_at_once;
use crate::warden::{WARDEN_MARK, since_boot};
use crate::{HELPER, SandboxError};

/// Argument that makes the helper a warden, with a connection to the server as standard input.
pub(super) const WARDEN: &str = "--warden";

/// Only message of a warden.
const READY: &[u8] = b"ready";
/// Maximum time until a warden is ready.
const START: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};
/// Pause between two searches while the deadline has passed and the server is still there.
const AGAIN: Duration = Duration::from_millis(500);
/// Readings of the page before the earlier of two different deadlines counts.
const READINGS: usize = 100;
/// The deadline of a server that has none.
const NEVER: u64 = u64::MAX;
/// Exit code if the warden cannot do what it was started for.
const CANNOT_RUN: i32 = 126;

/// A running warden, as the server sees it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    page: OwnedFd,
}

impl Running {
    /// Starts a warden, and waits until it watches. The helper is this binary unless another one is given.
    pub(crate) fn start(deadline: Option<Duration>, mark: &str, helper: Option<&Path>) -> io::Result<Self> {
        let page = rustix::fs::memfd_create("windlass-deadline", MemfdFlags::CLOEXEC)?;
        write_deadline(&page, deadline.map_or(NEVER, nanoseconds))?;
        let server = pidfd_open(getpid(), PidfdFlags::empty())?;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let child = Command::new(helper.unwrap_or(Path::new(super::OURSELVES)))
            .args([HELPER, WARDEN])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let running = Self { child, page };
        let facts = format!("{} {mark}", getpid().as_raw_nonzero());
        wire::send(&ours, facts.as_bytes(), &[running.page.as_fd(), server.as_fd()])?;
        let mut ready = [PollFd::from_borrowed_fd(ours.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&START))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match wire::receive(&ours)? {
            Some((text, _)) if text == READY => Ok(running),
            Some(_) | None => Err(io::Error::other("the warden did not start")),
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        // An error says that somebody else has collected it.
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        write_deadline(&self.page, nanoseconds(deadline))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}

fn write_deadline(page: &OwnedFd, deadline: u64) -> io::Result<()> {
    for copy in [0, 8] {
        pwrite(page, &deadline.to_ne_bytes(), copy)?;
    }
    Ok(())
}

/// Reads the deadline. If the server was stopped between its two writes, the earlier one counts.
fn read_deadline(page: &OwnedFd) -> u64 {
    let read = |copy| {
        let mut bytes = [0; 8];
        match pread(page, &mut bytes, copy) {
            Ok(8) => u64::from_ne_bytes(bytes),
            Ok(_) | Err(_) => 0,
        }
    };
    let mut both = (0, 0);
    for _ in 0..READINGS {
        both = (read(8), read(0));
        if both.0 == both.1 {
            break;
        }
    }
    both.0.min(both.1)
}

/// Becomes the warden of the process at the other end of standard input.
pub(super) fn run(mut rest: impl Iterator<Item = OsString>) -> ! {
    if rest.next().is_some() {
        exit(CANNOT_RUN)
    }
    match Watch::begin() {
        Ok(watch) => watch.run(),
        Err(_) => exit(CANNOT_RUN),
    }
}

struct Watch {
    page: OwnedFd,
    /// Readable once the server has ended.
    server: OwnedFd,
    timer: OwnedFd,
    trees: ServerTrees,
}

impl Watch {
    fn begin() -> io::Result<Self> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::process::setsid()?;
        syscalls::ignore_ending_signals()?;
        rustix::stdio::dup2_stdin(&File::open("/dev/null")?)?;
        let broken = || io::Error::other(SandboxError::Arguments);
        let (facts, files) = wire::receive(&socket)?.ok_or_else(broken)?;
        let facts = String::from_utf8_lossy(&facts).into_owned();
        let mut files = files.into_iter();
        let (Some(page), Some(server)) = (files.next(), files.next()) else {
            return Err(broken());
        };
        let (pid, mark) = facts.split_once(' ').ok_or_else(broken)?;
        let pid: i32 = pid.parse().map_err(|_| broken())?;
        let found = Server::find(pid).ok_or_else(broken)?;
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        // Nothing that leaked into this process may stay open because of it.
        let mut kept = [&page, &server, &timer, &socket].map(AsRawFd::as_raw_fd);
        kept.sort_unstable();
        let mut first = 3;
        for number in kept.map(|number| u32::try_from(number).unwrap_or(first)) {
            if number > first {
                syscalls::close_range(first, number - 1)?;
            }
            first = number + 1;
        }
        syscalls::close_range(first, u32::MAX)?;
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        let _ = fs::write("/proc/self/comm", "windlass-warden");
        wire::send(&socket, READY, &[])?;
        Ok(Self {
            page,
            server,
            timer,
            trees: ServerTrees::new(found, format!("{WARDEN_MARK}={mark}").into_bytes()),
        })
    }

    /// Watches until the server has ended, and ends what it left behind.
    fn run(mut self) -> ! {
        loop {
            if self.has_ended() {
                self.trees.server_ended();
                kill_at_once(&mut self.trees);
                exit(0);
            }
            self.wait();
        }
    }

    fn has_ended(&self) -> bool {
        let mut ready = [PollFd::from_borrowed_fd(self.server.as_fd(), PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut ready, Some(&now)), Ok(1))
    }

    /// Acts if the deadline has passed, and waits for the next one or the end of the server.
    fn wait(&mut self) {
        let deadline = read_deadline(&self.page);
        let now = nanoseconds(since_boot());
        let wake = if deadline == NEVER {
            None
        } else if deadline <= now {
            kill_at_once(&mut self.trees);
            Some(nanoseconds(since_boot() + AGAIN))
        } else {
            self.trees.remember();
            Some(deadline)
        };
        let set = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(wake.unwrap_or_default()),
        };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &set);
        let mut ready = [
            PollFd::from_borrowed_fd(self.server.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.timer.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Out of memory, for example: this must not become a busy loop, and must not end.
            Err(_) => drop(poll(&mut [], Some(&timespec(nanoseconds(AGAIN))))),
        }
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    let time = Duration::from_nanos(nanoseconds);
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
