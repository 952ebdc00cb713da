//! Process trees by the process table: every process of a tree is found, wherever it went.

mod members;
mod server_trees;
mod table;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};
use tokio::process::Child;

use self::members::{Members, Own};
pub(crate) use self::server_trees::{Server, ServerTrees};
use self::table::Process;
use crate::process::reaper::Live;
use crate::process::{Group, Member, Search, Target};

static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Becomes the parent of orphans among our descendants.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTING.store(true, Ordering::Relaxed);
    Ok(())
}

/// Collects the adopted processes that have ended.
pub(crate) fn collect() {
    if !ADOPTING.load(Ordering::Relaxed) {
        return;
    }
    let (Ok(processes), Some(own)) = (table::processes(), own()) else {
        return;
    };
    for process in processes.iter().filter(|process| is_adopted(process, &own)) {
        bury(process);
    }
}

/// Prepares the search for the processes of a tree. Without a process table the group is all that is known.
pub(crate) fn search<'a>(target: &'a Target, child: Option<&'a mut Child>) -> Box<dyn Search + 'a> {
    let Some(own) = own() else {
        return Box::new(Group::new(target.root, child));
    };
    let members = Members::new(
        target.root,
        Own {
            pid: own.pid,
            session: own.session,
        },
    );
    Box::new(TableSearch { target, own, members })
}

struct TableSearch<'a> {
    target: &'a Target,
    own: Process,
    members: Members,
}

impl Search for TableSearch<'_> {
    fn running(&mut self) -> Vec<Member> {
        let Ok(table) = table::processes() else {
            return Vec::new();
        };
        let (target, own) = (self.target, self.own);
        let members = self.members.find(&table, Live::none(), |process| {
            table::evidence(process, own.pid, &target.marker, target.pipe)
        });
        let (dead, alive): (Vec<Process>, Vec<Process>) =
            members.into_iter().partition(|process| process.dead);
        // The root is collected by the task that waits for it.
        for process in dead
            .iter()
            .filter(|process| process.parent == own.pid && process.pid != target.root)
        {
            bury(process);
        }
        let member = |process: &Process| Member {
            pid: process.pid,
            started: process.started,
        };
        alive.iter().map(member).collect()
    }

    fn signal(&self, member: Member, signal: Signal) {
        signal_exactly(member, signal);
    }
}

/// Signals exactly this process: its number may belong to another one by now.
fn signal_exactly(member: Member, signal: Signal) {
    let Some(pid) = Pid::from_raw(member.pid) else {
        return;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // The handle names the process that has the number now, and keeps naming that process.
        Ok(handle) if table::process(member.pid).is_some_and(|now| now.started == member.started) => {
            let _ = pidfd_send_signal(&handle, signal);
        }
        Err(rustix::io::Errno::NOSYS) => {
            let _ = rustix::process::kill_process(pid, signal);
        }
        Ok(_) | Err(_) => {}
    }
}

fn own() -> Option<Process> {
    table::process(rustix::process::getpid().as_raw_nonzero().get())
}

/// Collects one ended process, if that is up to us.
fn bury(process: &Process) {
    if let (true, Some(pid)) = (process.dead, Pid::from_raw(process.pid)) {
        // It may have been collected meanwhile, or not be our child; both are fine.
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// A child that we started is in our session, and in our group or at the head of its own.
fn is_adopted(process: &Process, own: &Process) -> bool {
    let started_here =
        process.session == own.session && (process.group == own.group || process.group == process.pid);
    process.parent == own.pid && !started_here
}
