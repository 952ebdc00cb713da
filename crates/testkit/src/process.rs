//! The process table, for tests that must leave nothing behind.

use std::fs;

/// Returns the ids of running processes whose command line contains `text`, except our own.
pub fn processes_with(text: &str) -> Vec<u32> {
    let entries = super::must(fs::read_dir("/proc"), "read the process table");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let carries = |pid: &u32| {
        let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else {
            return false;
        };
        String::from_utf8_lossy(&command).contains(text)
    };
    pids.filter(|pid| *pid != std::process::id())
        .filter(carries)
        .collect()
}

/// A process that was seen: its number, and when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Number.
    pub pid: u32,
    started: u64,
}

impl Process {
    /// Returns true until it has ended. One that nobody has collected has ended.
    pub fn runs(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.process == self && !stat.has_ended)
    }
}

struct Stat {
    process: Process,
    parent: u32,
    has_ended: bool,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let started = fields.get(19)?.parse().ok()?;
    Some(Stat {
        process: Process { pid, started },
        parent: fields.get(1)?.parse().ok()?,
        has_ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Returns the running processes below one, at any depth.
pub fn descendants(pid: u32) -> Vec<Process> {
    let entries = super::must(fs::read_dir("/proc"), "read the process table");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let table: Vec<Stat> = pids.filter_map(stat).filter(|stat| !stat.has_ended).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for child in table.iter().filter(|stat| stat.parent == parent) {
            found.push(child.process);
            parents.push(child.process.pid);
        }
    }
    found
}
