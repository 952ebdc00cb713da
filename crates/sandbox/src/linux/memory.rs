//! The memory of this machine, and of the processes of one command.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::private::SHARED_MEMORY;

/// Time before the first look at the memory of a command, and between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of open files of a process that are looked at.
const MAX_FILES: usize = 4096;

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
    limit: u64,
    next: Instant,
    before: Machine,
}

/// Memory that makes a command end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// The command used this much, and may use the second amount.
    OfCommand(u64, u64),
    /// The machine has nearly none left, and this much was used up since the command started.
    OfMachine(u64),
}

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Copy)]
struct Machine {
    total: u64,
    available: u64,
    /// Files in memory, whether a process has mapped them or not.
    files: u64,
    /// Those of this sandbox that have a name: in its `/dev/shm`, and System V segments.
    named: u64,
}

impl Machine {
    fn now() -> Self {
        let table = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let size = |name| in_table(&table, name).unwrap_or_default();
        Self {
            total: size("MemTotal:"),
            available: size("MemAvailable:"),
            files: size("Shmem:"),
            named: in_folder(Path::new(SHARED_MEMORY)) + in_segments(),
        }
    }
}

impl MemoryWatch {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            next: Instant::now() + INTERVAL,
            before: Machine::now(),
        }
    }

    /// Returns the time until the next look.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Returns the memory of these processes if it is time for a look, and it is too much.
    pub(super) fn exceeded(&mut self, members: impl FnOnce() -> Vec<Pid>) -> Option<Excess> {
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
        let now = Machine::now();
        used += self.unmapped(&now, &members);
        let pause = match used > self.limit / 2 {
            true => INTERVAL / 10,
            false => INTERVAL,
        };
        self.next = Instant::now() + pause.max(started.elapsed() * 10);
        let taken = self.before.available.saturating_sub(now.available);
        match used > self.limit {
            true => Some(Excess::OfCommand(used, self.limit)),
            // Buffers of sockets and pipes belong to no process.
            false if now.available < now.total / 16 && taken > now.total / 4 => {
                Some(Excess::OfMachine(taken))
            }
            false => None,
        }
    }

    /// Returns the memory in files that only exist in memory, without what processes have mapped.
    fn unmapped(&self, now: &Machine, members: &[Pid]) -> u64 {
        let more = now.files.saturating_sub(self.before.files);
        if more <= self.limit / 4 {
            return 0;
        }
        let named = now.named.saturating_sub(self.before.named);
        // A process that hides its files may hold all of it.
        let files = open_in_memory(members).map_or(more, |open| more.min(named + open));
        let mapped: u64 = members
            .iter()
            .filter_map(|pid| field(format!("/proc/{pid}/smaps_rollup"), "Pss_Shmem:"))
            .sum();
        files.saturating_sub(mapped)
    }
}

/// Returns the size of the files in a folder that is kept in memory.
fn in_folder(folder: &Path) -> u64 {
    let found = rustix::fs::statvfs(folder);
    found.map_or(0, |found| {
        found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize
    })
}

/// Returns the size of the System V segments in memory.
fn in_segments() -> u64 {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let resident = |line: &str| line.split_whitespace().nth(14)?.parse::<u64>().ok();
    table.lines().filter_map(resident).sum()
}

/// Returns the size of the files without a name that these processes have open; `None` if one hides its files.
fn open_in_memory(members: &[Pid]) -> Option<u64> {
    let mut known = HashMap::new();
    for pid in members {
        let folder = format!("/proc/{pid}/fd");
        let Ok(files) = fs::read_dir(&folder) else {
            match Path::new(&folder).exists() {
                true => return None,
                false => continue,
            }
        };
        for file in files.flatten().take(MAX_FILES) {
            match fs::read_link(file.path()) {
                Ok(name) if is_memfd(&name) => {
                    if let Ok(found) = fs::metadata(file.path()) {
                        known.insert((found.dev(), found.ino()), found.blocks() * 512);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
                Ok(_) | Err(_) => {}
            }
        }
    }
    Some(known.values().sum())
}

fn is_memfd(name: &Path) -> bool {
    name.as_os_str().as_bytes().starts_with(b"/memfd:")
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
    in_table(&fs::read_to_string(table).ok()?, name)
}

fn in_table(table: &str, name: &str) -> Option<u64> {
    let size = table.lines().find_map(|line| line.strip_prefix(name))?;
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
        assert!(
            matches!(used, Some(Excess::OfCommand(used, 1)) if used > 1),
            "{used:?}"
        );
    }
}
