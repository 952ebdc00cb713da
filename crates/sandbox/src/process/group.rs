//! A tree as its process group, for systems where the process table cannot be read.

use rustix::process::{Pid, Signal};
use tokio::process::Child;

use super::{Member, Search};

/// The process group of a tree. Processes that have left the group are out of reach.
pub(crate) struct Group<'a> {
    root: i32,
    child: Option<&'a mut Child>,
    /// Set once the group has ended. Its number may go to another group from then on.
    ended: bool,
}

impl<'a> Group<'a> {
    /// Names the group that `root` leads. `child` is that process, if it has to be collected here.
    pub(crate) fn new(root: i32, child: Option<&'a mut Child>) -> Self {
        Self {
            root,
            child,
            ended: false,
        }
    }
}

impl Search for Group<'_> {
    fn running(&mut self) -> Vec<Member> {
        // A process that has ended keeps its group alive until it is collected.
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
        let exists = |group| rustix::process::test_kill_process_group(group).is_ok();
        self.ended = self.ended || !group(self.root).is_some_and(exists);
        let member = Member {
            pid: self.root,
            started: 0,
        };
        if self.ended { Vec::new() } else { vec![member] }
    }

    fn signal(&self, member: Member, signal: Signal) {
        signal_group(member.pid, signal);
    }
}

/// Sends a signal to every process of a group.
pub(crate) fn signal_group(root: i32, signal: Signal) {
    if let Some(group) = group(root) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Group 0 would be our own, and a tree whose root is gone has no group that we know.
fn group(root: i32) -> Option<Pid> {
    Some(root).filter(|root| *root > 0).and_then(Pid::from_raw)
}
