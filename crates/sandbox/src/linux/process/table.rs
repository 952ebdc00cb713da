//! The process table, read from `/proc`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::process::MARKER;

/// The facts about a process that decide whether it belongs to a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Start time in clock ticks since boot. Together with the pid it identifies a process for good.
    pub(super) started: u64,
    /// True if the process has ended and waits to be collected.
    pub(super) dead: bool,
}

/// The owner of a process, judged by what it inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Carries the marker or holds the pipe.
    Ours,
    /// Carries the marker of another call.
    OfAnotherCall,
    /// Shows no trace of any call.
    None,
}

/// Returns all processes of the machine.
///
/// # Errors
/// If there is no readable `/proc`.
pub(super) fn processes() -> io::Result<Vec<Process>> {
    let mut list = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        // A process may end while the table is read; then it is left out.
        if let Some(process) = pid.and_then(process) {
            list.push(process);
        }
    }
    if list.is_empty() {
        Err(io::ErrorKind::Unsupported.into())
    } else {
        Ok(list)
    }
}

/// Returns one process, if it exists.
pub(super) fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// Parses a `stat` file. The name in parentheses may contain anything, including blanks and parentheses, so
/// the fields start after the last parenthesis.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(Process {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

/// Looks for traces of the call with this marker (`NAME=value`) and this output pipe in a process.
pub(super) fn evidence(process: &Process, own_pid: i32, marker: &[u8], pipe: Option<u64>) -> Evidence {
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let mut found = Evidence::None;
    for variable in environment.split(|byte| *byte == 0) {
        if variable == marker {
            return Evidence::Ours;
        }
        if variable
            .strip_prefix(MARKER.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&b'='))
        {
            found = Evidence::OfAnotherCall;
        }
    }
    match pipe {
        Some(inode) if holds_pipe(process, own_pid, inode) => Evidence::Ours,
        _ => found,
    }
}

fn holds_pipe(process: &Process, own_pid: i32, inode: u64) -> bool {
    let folder = format!("/proc/{}", process.pid);
    // Between fork and exec a new child of ours holds all of our descriptors. It is not part of this tree.
    if process.parent == own_pid && same_program(&folder) {
        return false;
    }
    let Ok(descriptors) = fs::read_dir(format!("{folder}/fd")) else {
        return false;
    };
    let wanted = format!("pipe:[{inode}]");
    descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target.as_os_str() == wanted.as_str())
}

fn same_program(folder: &str) -> bool {
    let identity = |path: &str| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    identity(&format!("{folder}/exe")) == identity("/proc/self/exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let fields = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 1";
        for name in ["sh", "a b", "a) R 1 (b", ")"] {
            let process = parse(3, &format!("3 ({name}) {fields}")).expect("a process");
            assert_eq!(
                process,
                Process {
                    pid: 3,
                    parent: 7,
                    group: 8,
                    session: 9,
                    started: 4711,
                    dead: false
                }
            );
        }
        assert_eq!(parse(3, "3 (sh) S 7"), None);
        assert!(
            parse(3, &format!("3 (sh) {}", fields.replace('S', "Z"))).is_some_and(|process| process.dead)
        );
    }
}
