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
