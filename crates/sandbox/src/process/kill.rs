//! Ending a tree: TERM, two seconds of patience, then KILL until nothing is left.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::process::Child;
use tokio::sync::oneshot;

use super::reaper::{self, Live, UnderWay};
use super::table::{self, Process};
use super::tree::{Members, Own, Target};

/// How long a process may take to end after TERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first pause between two looks; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// KILL rounds before we give up on what the kernel will not end.
const KILL_ROUNDS: usize = 100;
const KILL_PAUSE: Duration = Duration::from_millis(8);
/// A reading of the table is not one moment in time: one that finds nothing may have missed a process that was just
/// changing parents. Two in a row do not.
const EMPTY_READINGS: usize = 2;

/// A kill that has begun. It goes on when this is dropped.
pub struct Kill {
    done: oneshot::Receiver<()>,
}

impl Kill {
    /// Returns when the tree has ended.
    pub async fn finished(self) {
        // The sender is dropped when the kill ends, however it ends.
        drop(self.done.await);
    }
}

/// Begins to end a tree, on a thread of its own, so that it goes on when the runtime is busy or shuts down. `child` is
/// collected at the end.
pub(super) fn start(target: Target, child: Option<Child>) -> Kill {
    let (sender, done) = oneshot::channel();
    let under_way = UnderWay::begin();
    let root = target.root;
    let work = move || {
        end(&target, &under_way);
        if let Some(child) = child {
            collect(child);
        }
        reaper::collect();
        drop(under_way);
        drop(sender);
    };
    if thread::Builder::new()
        .name("windlass-kill".to_owned())
        .spawn(work)
        .is_err()
    {
        // Out of threads. Without a second look only the group can be ended, and only at once.
        signal_group(root, Signal::KILL);
    }
    Kill { done }
}

/// The process was ended; the kernel needs a moment to say so.
fn collect(mut child: Child) {
    for _ in 0..KILL_ROUNDS {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(KILL_PAUSE);
    }
}

fn end(target: &Target, under_way: &UnderWay) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(own) = table::process(own) else {
        return end_group(target.root, under_way);
    };
    let mut hunt = Hunt {
        members: Members::new(
            target.root,
            Own {
                pid: own.pid,
                session: own.session,
            },
        ),
        target,
        own,
        asked: Vec::new(),
    };
    if !hunt.ask(under_way) {
        hunt.force();
    }
}

struct Hunt<'a> {
    target: &'a Target,
    own: Process,
    members: Members,
    /// Those that got TERM.
    asked: Vec<(i32, u64)>,
}

impl Hunt<'_> {
    /// TERM to each member once. True when nothing is left.
    fn ask(&mut self, under_way: &UnderWay) -> bool {
        let patience_ends = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        let mut empty = 0;
        loop {
            let alive = self.alive();
            empty = if alive.is_empty() { empty + 1 } else { 0 };
            if empty == EMPTY_READINGS {
                return true;
            }
            for process in alive {
                if !self.asked.contains(&(process.pid, process.started)) {
                    self.asked.push((process.pid, process.started));
                    signal(&process, Signal::TERM);
                }
            }
            let left = patience_ends.saturating_duration_since(Instant::now());
            if left.is_zero() || under_way.pause(pause.min(left)) {
                return false;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// KILL to all that is left, again and again: a process may have started another before it ended.
    fn force(&mut self) {
        let mut empty = 0;
        for _ in 0..KILL_ROUNDS {
            let alive = self.alive();
            empty = if alive.is_empty() { empty + 1 } else { 0 };
            if empty == EMPTY_READINGS {
                return;
            }
            for process in alive {
                signal(&process, Signal::KILL);
            }
            thread::sleep(KILL_PAUSE);
        }
    }

    /// The members that run. Those that ended and are ours to collect are collected.
    fn alive(&mut self) -> Vec<Process> {
        let Ok(table) = table::processes() else {
            return Vec::new();
        };
        let (target, own) = (self.target, self.own);
        let members = self.members.find(&table, Live::none(), |process| {
            table::evidence(process, own.pid, &target.marker, target.pipe)
        });
        let (dead, alive): (Vec<Process>, Vec<Process>) =
            members.into_iter().partition(|process| process.dead);
        // The root is collected by whoever waits for it.
        for process in dead
            .iter()
            .filter(|process| process.parent == own.pid && process.pid != target.root)
        {
            reaper::bury(process);
        }
        alive
    }
}

/// Sends a signal to exactly this process: its number may belong to another one by now. One that has ended, or that
/// is not ours to signal, is left alone.
#[cfg(target_os = "linux")]
fn signal(process: &Process, signal: Signal) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // The handle names whoever has the number now, and keeps naming that one.
        Ok(handle) if table::process(process.pid).is_some_and(|now| now.started == process.started) => {
            let _ = pidfd_send_signal(&handle, signal);
        }
        Err(rustix::io::Errno::NOSYS) => {
            let _ = rustix::process::kill_process(pid, signal);
        }
        Ok(_) | Err(_) => {}
    }
}

#[cfg(not(target_os = "linux"))]
fn signal(process: &Process, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Without a process table the group is all we know.
fn end_group(root: i32, under_way: &UnderWay) {
    signal_group(root, Signal::TERM);
    let patience_ends = Instant::now() + PATIENCE;
    let group = Some(root).filter(|root| *root > 0).and_then(Pid::from_raw);
    let is_there = || group.is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok());
    while is_there() && Instant::now() < patience_ends {
        if under_way.pause(LONGEST_PAUSE) {
            break;
        }
    }
    signal_group(root, Signal::KILL);
}

fn signal_group(root: i32, signal: Signal) {
    // Group 0 would be our own, and one that is gone may be anybody's.
    if root > 0
        && let Some(pid) = Pid::from_raw(root)
    {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}
