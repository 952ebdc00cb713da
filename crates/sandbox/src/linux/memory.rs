//! The memory of this machine, and of the processes of one command.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// Time before the first look at the memory of a command, and between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Returns the memory that the processes of this machine share, in bytes: all of it, or the limit of the
/// control group that this process is in.
pub(crate) fn machine_memory() -> Option<u64> {
    static MEMORY: OnceLock<Option<u64>> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let total = field("/proc/meminfo", "MemTotal:")?;
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = groups.lines().filter_map(group_limit);
        Some(limits.fold(total, u64::min))
    })
}

/// Returns the lowest memory limit of a control group and those above it. `line` is a line of
/// `/proc/self/cgroup`.
fn group_limit(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (kinds, group) = (fields.next()?, fields.next()?);
    let (root, file) = match kinds {
        "" => ("/sys/fs/cgroup", "memory.max"),
        kinds if kinds.split(',').any(|kind| kind == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let group = Path::new(group.trim_start_matches('/'));
    let limit = |group: &Path| {
        let text = fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
        text.trim().parse().ok()
    };
    group.ancestors().filter_map(limit).min()
}

/// Compares the memory of a command with its limit from time to time.
pub(super) struct MemoryWatch {
    pub(super) limit: u64,
    next: Instant,
}

impl MemoryWatch {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            next: Instant::now() + INTERVAL,
        }
    }

    /// Returns the time until the next look.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Returns the memory of these processes if it is time for a look, and it is over the limit.
    pub(super) fn exceeded(&mut self, members: impl FnOnce() -> Vec<Pid>) -> Option<u64> {
        let started = Instant::now();
        if started < self.next {
            return None;
        }
        let members = members();
        let mut used: u64 = members.iter().map(|pid| resident(*pid)).sum();
        // Memory that several processes share was counted for each of them. The exact amount takes longer.
        if used > self.limit {
            used = members.iter().map(|pid| proportional(*pid)).sum();
        }
        let pause = match used > self.limit / 2 {
            true => INTERVAL / 10,
            false => INTERVAL,
        };
        self.next = Instant::now() + pause.max(started.elapsed() * 10);
        (used > self.limit).then_some(used)
    }
}

/// Returns the memory of a process, in bytes, including what it shares with others.
fn resident(pid: Pid) -> u64 {
    field(format!("/proc/{pid}/status"), "VmRSS:").unwrap_or_default()
}

/// Returns the memory of a process, in bytes, with its part of what it shares with others.
fn proportional(pid: Pid) -> u64 {
    field(format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or_else(|| resident(pid))
}

/// Reads a size from a table of the kernel, in bytes.
fn field(table: impl AsRef<Path>, name: &str) -> Option<u64> {
    let text = fs::read_to_string(table).ok()?;
    let size = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = size.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_known() {
        let own = rustix::process::getpid();
        assert!(resident(own) > 100_000, "{}", resident(own));
        assert!(proportional(own) > 100_000 && proportional(own) <= resident(own) * 2);
        let machine = machine_memory().expect("known");
        assert!(machine > resident(own), "{machine}");
    }

    #[test]
    fn other_groups_have_no_limit() {
        for line in ["", "0", "4:cpu:/a", "5:memory,cpu", "0::/no/such/group/at/all"] {
            let root = group_limit("0::/");
            assert!(
                group_limit(line).is_none_or(|limit| Some(limit) == root),
                "{line}"
            );
        }
    }

    #[test]
    fn looks_are_rare() {
        let mut watch = MemoryWatch::new(1);
        assert_eq!(watch.exceeded(Vec::new), None);
        assert!(watch.pause() > INTERVAL / 2);
        watch.next = Instant::now();
        let used = watch.exceeded(|| vec![rustix::process::getpid()]);
        assert!(used.is_some_and(|used| used > 1), "{used:?}");
    }
}
