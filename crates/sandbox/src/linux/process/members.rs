//! Membership in a tree, decided from a snapshot of the process table. Nothing here reads or signals a
//! process.

use std::collections::HashSet;

use super::table::{Evidence, Process};

/// Our own process, which is never part of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub(super) pid: i32,
    pub(super) session: i32,
}

/// The members found so far. A process that was a member once remains one, whatever happens to its parent.
pub(super) struct Members {
    root: i32,
    own: Own,
    /// Start time of the root, if it was ever seen.
    since: Option<u64>,
    known: HashSet<(i32, u64)>,
    /// Sessions that members created.
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

    /// Returns the members in this snapshot, including ended ones.
    ///
    /// `evidence` is called only for processes that cannot be assigned otherwise. With `claim_orphans`,
    /// processes that were handed to us, were started after the root and belong to no other call are members,
    /// too: they hid their origin, and there is no other call that could own them.
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

    /// Returns true for a member that is recognized without looking at what it inherited.
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
            // Our direct children stay in our session; a child in another session was adopted.
            Evidence::None => {
                claim_orphans
                    && self.since.is_some()
                    && process.parent == self.own.pid
                    && process.session != self.own.session
            }
        }
    }

    /// Moves every process that descends from a member, or shares a session or group that a member created.
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
#[path = "members_tests.rs"]
mod tests;
