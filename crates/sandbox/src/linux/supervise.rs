//! The supervisor of one command: a copy of the launcher that starts the command, and that the kernel makes
//! the parent of every process the command leaves behind. So the processes of a command are exactly the
//! descendants of its supervisor, whatever session or group they move to.
//!
//! The supervisor ends with its last descendant. If nobody listens any more, it ends them all.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open};

use super::memory::{Excess, MemoryWatch};
use super::request::{self, Request};
use super::unreachable::Unreachable;
use super::wire::{self, KILL, Report, TERMINATE};
use windlass_core::text::size;

/// Time that a process gets to exit after TERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two searches for processes to end.
const PAUSE: Duration = Duration::from_millis(8);
/// Number of KILL rounds after which the launcher has to end the whole namespace.
const ROUNDS: usize = 50;
/// Pause between two looks at processes that have ended without a notification.
const COLLECT: Duration = Duration::from_secs(5);

/// Pause between two looks at attempts to reach the network.
const LOOK: Duration = Duration::from_secs(1);

/// Exit code if the program was found but cannot be run.
const CANNOT_RUN: i32 = 126;
/// Exit code if the program was not found.
const NOT_FOUND: i32 = 127;

/// The files of a request: the request itself, the connection to the caller, and the command's streams.
pub(super) struct Files {
    pub(super) request: OwnedFd,
    pub(super) caller: OwnedFd,
    pub(super) streams: [OwnedFd; 3],
    /// True if there is no network to reach anything.
    pub(super) offline: bool,
    /// Maximum memory of the command with everything it starts, in bytes.
    pub(super) memory: Option<u64>,
}

/// Prepares this process to supervise a command. Best effort: a new session has no controlling terminal, and
/// orphans come to this process.
pub(super) fn prepare() {
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// Starts the command and supervises it until the last of its processes has ended. Never returns.
pub(super) fn run(files: Files) -> ! {
    let Files {
        request,
        caller,
        streams,
        offline,
        memory,
    } = files;
    let decoded = wire::read_whole(&request)
        .ok()
        .and_then(|bytes| request::decode(&bytes));
    drop(request);
    let Some(decoded) = decoded else { exit(1) };
    let mut supervisor = match start(&decoded, streams) {
        Ok((main, errors)) => Supervisor {
            errors,
            memory: memory.map(MemoryWatch::new),
            ..Supervisor::new(caller, Some(main))
        },
        Err(code) => {
            let mut supervisor = Supervisor::new(caller, None);
            supervisor.report(Report::Ended(code << 8));
            supervisor
        }
    };
    // After the start, which it would delay: a program takes longer to reach for the network.
    supervisor.unreachable = offline.then(Unreachable::now);
    supervisor.watch();
    exit(0)
}

/// Starts the program, and returns it with its standard error. On failure, says why there, and returns the exit
/// code of a shell.
fn start(request: &Request, [input, output, errors]: [OwnedFd; 3]) -> Result<(Pid, Option<fs::File>), i32> {
    let mut report = errors.try_clone().map(fs::File::from).ok();
    let mut command = Command::new(&request.program);
    command
        .args(&request.arguments)
        .current_dir(&request.cwd)
        .env_clear()
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors))
        .process_group(0);
    for variable in &request.env {
        let bytes = variable.as_bytes();
        let middle = bytes.iter().position(|byte| *byte == b'=').unwrap_or_default();
        let (name, value) = bytes.split_at(middle);
        command.env(
            std::ffi::OsStr::from_bytes(name),
            std::ffi::OsStr::from_bytes(value.get(1..).unwrap_or_default()),
        );
    }
    let started = command.spawn();
    drop(command);
    match started {
        Ok(child) => {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            Ok((pid.unwrap_or_else(getpid), report))
        }
        // The sandbox is full of processes that a command has left. Without a report, all of them are ended.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => exit(1),
        Err(error) => {
            let (code, what) = match error.kind() {
                _ if !Path::new(&request.cwd).is_dir() => (CANNOT_RUN, &request.cwd),
                io::ErrorKind::NotFound => (NOT_FOUND, &request.program),
                _ => (CANNOT_RUN, &request.program),
            };
            if let Some(report) = &mut report {
                let _ = writeln!(report, "windlass: {}: {error}", Path::new(what).display());
            }
            Err(code)
        }
    }
}

struct Supervisor {
    /// `None` once the caller has gone away.
    caller: Option<OwnedFd>,
    /// The command itself, while it runs.
    main: Option<(Pid, Option<OwnedFd>)>,
    ending: Option<Ending>,
    /// `None` if there is a network, or an attempt was reported.
    unreachable: Option<Unreachable>,
    memory: Option<MemoryWatch>,
    /// Standard error of the command, while it runs. Afterwards its pipe has to close.
    errors: Option<fs::File>,
}

/// The end of all processes, once it was requested.
struct Ending {
    /// Time from which on KILL is sent.
    kill_at: Instant,
    /// Processes that have received TERM.
    asked: Vec<Pid>,
    rounds: usize,
}

impl Supervisor {
    fn new(caller: OwnedFd, main: Option<Pid>) -> Self {
        let handle = |pid| (pid, pidfd_open(pid, PidfdFlags::empty()).ok());
        Self {
            caller: Some(caller),
            main: main.map(handle),
            ending: None,
            unreachable: None,
            memory: None,
            errors: None,
        }
    }

    fn watch(mut self) {
        loop {
            if self.collect() {
                self.report(Report::Gone);
                return;
            }
            self.check_memory();
            if let Some(ending) = &mut self.ending {
                ending.step();
                if ending.rounds == ROUNDS {
                    self.report(Report::Stuck);
                }
            }
            self.wait();
        }
    }

    /// Collects the processes that have ended. Returns true if none is left.
    fn collect(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.main.as_ref().is_some_and(|(main, _)| *main == pid) {
                        self.main = None;
                        self.errors = None;
                        if status.as_raw() != 0 {
                            self.check_network();
                        }
                        self.report(Report::Ended(status.as_raw()));
                    }
                }
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Waits until something may have changed.
    fn wait(&mut self) {
        let handles: Vec<OwnedFd> = match &self.main {
            Some(_) => Vec::new(),
            None => children()
                .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
                .collect(),
        };
        let main = self.main.as_ref().and_then(|(_, handle)| handle.as_ref());
        let mut ready: Vec<PollFd<'_>> = main
            .into_iter()
            .chain(&handles)
            .map(|handle| PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN))
            .collect();
        let limit = match &self.ending {
            Some(_) => PAUSE,
            None if ready.is_empty() => PAUSE * 4,
            None if self.unreachable.is_some() && self.main.is_some() => LOOK,
            None => COLLECT,
        };
        let look = self.memory.as_ref().map_or(limit, MemoryWatch::pause);
        if let Some(caller) = &self.caller {
            ready.push(PollFd::from_borrowed_fd(caller.as_fd(), PollFlags::IN));
        }
        let is_quiet = poll(&mut ready, Some(&timespec(limit.min(look)))) == Ok(0);
        let asked = self.caller.is_some() && ready.last().is_some_and(|caller| !caller.revents().is_empty());
        if asked {
            self.listen();
        }
        if is_quiet && self.main.is_some() {
            self.check_network();
        }
    }

    /// Ends the command if it uses more memory than it may, and says so in its output.
    fn check_memory(&mut self) {
        let Some(memory) = self.memory.as_mut().filter(|_| self.ending.is_none()) else {
            return;
        };
        let Some(excess) = memory.exceeded(descendants) else {
            return;
        };
        self.end(Duration::ZERO);
        // It must not continue while its output is stuck.
        self.ending.iter_mut().for_each(Ending::step);
        let Some(errors) = &mut self.errors else { return };
        let mut room = [PollFd::from_borrowed_fd(errors.as_fd(), PollFlags::OUT)];
        if poll(&mut room, Some(&timespec(PATIENCE))) == Ok(1) {
            let why = match excess {
                Excess::OfCommand(used, limit) => format!(
                    "the command used {} of memory, with everything it started, and may use {}; the setting \
                     security.max_memory_mb changes that",
                    size(used),
                    size(limit)
                ),
                Excess::OfMachine(used) => format!(
                    "this machine was about to run out of memory, of which {} were used up since the command started",
                    size(used)
                ),
            };
            let _ = writeln!(errors, "\n[killed: {why}]");
        }
    }

    /// Reports once that a process tried to reach another machine.
    fn check_network(&mut self) {
        if self.unreachable.as_ref().is_some_and(Unreachable::tried) {
            self.unreachable = None;
            self.report(Report::NoNetwork);
        }
    }

    fn listen(&mut self) {
        let Some(caller) = &self.caller else { return };
        let mut byte = [0];
        match rustix::io::read(caller, &mut byte) {
            Ok(1) if byte == [KILL] => self.end(Duration::ZERO),
            Ok(1) if byte == [TERMINATE] => self.end(PATIENCE),
            Ok(1) | Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => {
                self.caller = None;
                self.end(PATIENCE);
            }
        }
    }

    fn end(&mut self, patience: Duration) {
        let kill_at = Instant::now() + patience;
        match &mut self.ending {
            Some(ending) => ending.kill_at = ending.kill_at.min(kill_at),
            None => {
                self.ending = Some(Ending {
                    kill_at,
                    asked: Vec::new(),
                    rounds: 0,
                });
            }
        }
    }

    fn report(&mut self, report: Report) {
        let Some(caller) = &self.caller else { return };
        // If the caller has gone away, the next read notices it.
        let _ = rustix::net::send(caller, &report.encode(), rustix::net::SendFlags::NOSIGNAL);
    }
}

impl Ending {
    fn step(&mut self) {
        let members = descendants();
        if Instant::now() < self.kill_at {
            for pid in members {
                if !self.asked.contains(&pid) {
                    self.asked.push(pid);
                    let _ = rustix::process::kill_process(pid, Signal::TERM);
                }
            }
            return;
        }
        self.rounds += 1;
        for pid in members {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Ends every descendant of this process at once. Gives up on processes that start new ones faster.
pub(super) fn kill_all() {
    for _ in 0..ROUNDS {
        let members = descendants();
        if members.is_empty() {
            return;
        }
        for pid in members {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let _ = poll(&mut [], Some(&timespec(PAUSE)));
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(1),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// Returns the direct children of this process.
fn children() -> impl Iterator<Item = Pid> {
    let own = getpid().as_raw_nonzero().get();
    parents()
        .into_iter()
        .filter(move |(_, parent)| *parent == own)
        .filter_map(|(pid, _)| Pid::from_raw(pid))
}

/// Returns all descendants of this process. A process cannot leave this tree: whoever loses its parent
/// becomes a child of this process.
fn descendants() -> Vec<Pid> {
    let table = parents();
    let mut known = vec![getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = known.get(next).copied() {
        let children = table.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid);
        known.extend(children);
        next += 1;
    }
    known.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Returns every process with its parent.
fn parents() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let parent = |pid: i32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program, in parentheses, may contain anything.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
        Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
    };
    entries.flatten().filter_map(number).filter_map(parent).collect()
}
