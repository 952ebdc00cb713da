//! Which processes belong to a tree. Decides from a reading of the process table and touches nothing itself.

use std::collections::HashSet;

use super::table::{Evidence, Process};

/// The root of a tree whose first process has ended and was collected: its number may be anybody's.
pub(super) const GONE: i32 = -1;

/// How a tree can be recognised.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The process that was started; it leads its own group. Or [`GONE`].
    pub(super) root: i32,
    /// `NAME=value`, as it stands in the environment.
    pub(super) marker: Vec<u8>,
    /// The inode of the output pipe.
    pub(super) pipe: Option<u64>,
}

/// The process that looks, which is never part of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub(super) pid: i32,
    pub(super) session: i32,
}

/// The members found so far. What has been a member once stays one, whatever becomes of its parent.
pub(super) struct Members {
    root: i32,
    own: Own,
    /// When the root was started, if it was ever seen.
    since: Option<u64>,
    known: HashSet<(i32, u64)>,
    /// Sessions that members made.
    sessions: HashSet<i32>,
}

impl Members {
    pub(super) fn new(root: i32, own: Own) -> Self {
        Self {
            root,
            own,
            since: None,
            known: HashSet::new(),
            sessions: HashSet::new(),
        }
    }

    /// The members in this reading, ended ones included.
    ///
    /// `evidence` is asked only about processes that cannot be placed otherwise. With `claim_orphans`, processes that
    /// were handed to us, were started after the root and belong to nobody else are members too: they hid their
    /// origin, and no other call is there to own them.
    pub(super) fn find(
        &mut self,
        table: &[Process],
        claim_orphans: bool,
        evidence: impl Fn(&Process) -> Evidence,
    ) -> Vec<Process> {
        if self.since.is_none() {
            self.since = table
                .iter()
                .find(|process| process.pid == self.root)
                .map(|root| root.started);
        }
        let (mut inside, mut outside): (Vec<Process>, Vec<Process>) = (Vec::new(), Vec::new());
        for process in table
            .iter()
            .filter(|process| process.pid > 1 && process.pid != self.own.pid)
        {
            let place = if self.is_direct(process) {
                &mut inside
            } else {
                &mut outside
            };
            place.push(*process);
        }
        self.close(&mut inside, &mut outside);
        let (found, mut outside) = outside
            .into_iter()
            .partition(|process| self.shows(process, claim_orphans, &evidence));
        let mut found: Vec<Process> = found;
        inside.append(&mut found);
        self.close(&mut inside, &mut outside);
        inside
    }

    /// A member without a look at what it inherited.
    fn is_direct(&self, process: &Process) -> bool {
        process.pid == self.root
            || self.known.contains(&(process.pid, process.started))
            || (process.group == self.root && process.session == self.own.session)
    }

    fn shows(&self, process: &Process, claim_orphans: bool, evidence: impl Fn(&Process) -> Evidence) -> bool {
        if process.dead || self.since.is_some_and(|since| process.started < since) {
            return false;
        }
        match evidence(process) {
            Evidence::Ours => true,
            Evidence::OfAnotherCall => false,
            // Our direct children stay in our session; one that is ours and in another was adopted.
            Evidence::None => {
                claim_orphans
                    && self.since.is_some()
                    && process.parent == self.own.pid
                    && process.session != self.own.session
            }
        }
    }

    /// Moves everything that descends from a member, or shares a session or group made by one.
    fn close(&mut self, inside: &mut Vec<Process>, outside: &mut Vec<Process>) {
        let mut pids: HashSet<i32> = HashSet::new();
        let mut next = 0;
        loop {
            for process in inside.iter().skip(next) {
                pids.insert(process.pid);
                self.known.insert((process.pid, process.started));
                if process.session > 1 && process.session != self.own.session {
                    self.sessions.insert(process.session);
                }
            }
            next = inside.len();
            let belongs = |process: &Process| {
                pids.contains(&process.parent)
                    || pids.contains(&process.group)
                    || self.sessions.contains(&process.session)
            };
            let (mut moved, rest): (Vec<Process>, Vec<Process>) = outside.drain(..).partition(belongs);
            *outside = rest;
            if moved.is_empty() {
                return;
            }
            inside.append(&mut moved);
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
