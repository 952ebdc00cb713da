//! Ending a tree: TERM, two seconds to exit, then KILL until nothing is left.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::Child;
use tokio::sync::oneshot;

use super::group::signal_group;
use super::reaper::{self, UnderWay};
use super::target::Target;
use crate::backend::{self, Supervised};

/// Time that a process gets to exit after TERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// First pause between two searches; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of KILL rounds. Some processes the kernel does not end.
const KILL_ROUNDS: usize = 100;
const KILL_PAUSE: Duration = Duration::from_millis(8);
/// Reading the process table takes time: a search that finds nothing may have missed a process that was just
/// changing parents. Two searches in a row do not miss it.
const EMPTY_SEARCHES: usize = 2;

/// One running process of a tree, or a whole process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    /// Start time. Together with the number it identifies a process for good.
    pub(crate) started: u64,
}

/// Finds and signals the processes of one tree.
pub(crate) trait Search {
    /// Returns the members that run now. Collects those that have ended, if that is up to us.
    fn running(&mut self) -> Vec<Member>;

    /// Sends a signal to a member. Does nothing if the member has ended or may not be signalled.
    fn signal(&self, member: Member, signal: Signal);
}

/// A kill in progress. It continues if this value is dropped.
pub struct Kill(Inner);

enum Inner {
    /// In a sandbox.
    Confined(Supervised),
    /// Without a sandbox: closed at the end.
    Direct(oneshot::Receiver<()>),
}

impl Kill {
    /// Starts to end a command in a sandbox.
    pub(super) fn confined(command: &Supervised) -> Self {
        command.terminate();
        Self(Inner::Confined(command.clone()))
    }

    /// Returns when the tree has ended.
    pub async fn finished(self) {
        match self.0 {
            Inner::Confined(command) => command.gone().await,
            // The sender is dropped when the kill ends, for whatever reason.
            Inner::Direct(done) => drop(done.await),
        }
    }
}

/// Starts to end a tree, on a separate thread, so that the kill continues if the runtime is busy or shuts
/// down. `child` is collected at the end.
pub(super) fn start(target: Target, mut child: Option<Child>) -> Kill {
    let (sender, done) = oneshot::channel();
    let under_way = UnderWay::begin();
    let root = target.root;
    let work = move || {
        end(
            &mut *backend::process::search(&target, child.as_mut()),
            &under_way,
        );
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
        // Out of threads. Without repeated searches only the group can be ended, and only at once.
        signal_group(root, Signal::KILL);
    }
    Kill(Inner::Direct(done))
}

/// Collects a process that was ended; the kernel needs a moment to report it.
fn collect(mut child: Child) {
    for _ in 0..KILL_ROUNDS {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(KILL_PAUSE);
    }
}

fn end(tree: &mut dyn Search, under_way: &UnderWay) {
    if !terminate(tree, under_way) {
        kill(tree);
    }
}

/// Sends TERM to each member once. Returns true if nothing is left.
fn terminate(tree: &mut dyn Search, under_way: &UnderWay) -> bool {
    let patience_ends = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    let mut empty = 0;
    let mut asked: Vec<Member> = Vec::new();
    loop {
        let running = tree.running();
        empty = if running.is_empty() { empty + 1 } else { 0 };
        if empty == EMPTY_SEARCHES {
            return true;
        }
        for member in running {
            if !asked.contains(&member) {
                asked.push(member);
                tree.signal(member, Signal::TERM);
            }
        }
        let left = patience_ends.saturating_duration_since(Instant::now());
        if left.is_zero() || under_way.pause(pause.min(left)) {
            return false;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Sends KILL to all that is left, repeatedly: a process may have started another before it ended.
pub(crate) fn kill(tree: &mut dyn Search) {
    let mut empty = 0;
    for _ in 0..KILL_ROUNDS {
        let running = tree.running();
        empty = if running.is_empty() { empty + 1 } else { 0 };
        if empty == EMPTY_SEARCHES {
            return;
        }
        for member in running {
            tree.signal(member, Signal::KILL);
        }
        thread::sleep(KILL_PAUSE);
    }
}
