//! The process table, for tests that must leave nothing behind.

use std::fs;

/// The ids of living processes whose command line contains `text`. Our own is left out.
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
