//! All processes of a server, seen from its warden.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Signal, getpid};

use super::members::{Members, Own};
use super::table::{self, Evidence, Process};
use super::{Member, Search, signal_exactly};
use crate::process::GONE;

/// The server that a warden watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pid: i32,
    session: i32,
    started: u64,
}

impl Server {
    /// Returns the process with this number.
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let process = table::process(pid)?;
        Some(Self {
            pid,
            session: process.session,
            started: process.started,
        })
    }
}

/// The trees of a server: its descendants, processes with its mark, and what was there when it was last looked at.
pub(crate) struct ServerTrees {
    server: Server,
    /// `NAME=value`, as it appears in the environment.
    mark: Vec<u8>,
    has_ended: bool,
    remembered: HashSet<(i32, u64)>,
}

impl ServerTrees {
    pub(crate) fn new(server: Server, mark: Vec<u8>) -> Self {
        Self {
            server,
            mark,
            has_ended: false,
            remembered: HashSet::new(),
        }
    }

    /// Records that the server has ended: its number may belong to any process now.
    pub(crate) fn server_ended(&mut self) {
        self.has_ended = true;
    }

    /// Remembers the processes that run now, so that they are found after the end of the server.
    pub(crate) fn remember(&mut self) {
        let found = self.find(|_| false);
        self.remembered = found
            .iter()
            .map(|process| (process.pid, process.started))
            .collect();
    }

    fn find(&self, has_trace: impl Fn(&Process) -> bool) -> Vec<Process> {
        let Ok(mut table) = table::processes() else {
            return Vec::new();
        };
        let own = getpid().as_raw_nonzero().get();
        table.retain(|process| process.pid != own && process.pid != self.server.pid && !process.dead);
        // A new search each time: numbers of sessions are used again, and this process lives long.
        let mut members = Members::new(
            GONE,
            Own {
                pid: self.server.pid,
                session: self.server.session,
            },
        );
        members.find(&table, false, |process| {
            let is_ours = process.started >= self.server.started
                && (!self.has_ended && process.parent == self.server.pid
                    || self.remembered.contains(&(process.pid, process.started))
                    || has_trace(process));
            if is_ours { Evidence::Ours } else { Evidence::None }
        })
    }
}

impl Search for ServerTrees {
    fn running(&mut self) -> Vec<Member> {
        let mark = &self.mark;
        let has_mark = |process: &Process| {
            let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark)
        };
        let member = |process: &Process| Member {
            pid: process.pid,
            started: process.started,
        };
        self.find(has_mark).iter().map(member).collect()
    }

    fn signal(&self, member: Member, signal: Signal) {
        signal_exactly(member, signal);
    }
}
