//! Starts processes and measures their cost from outside.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::clock::now;

/// Cost of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Time at which it was started, on the clock of [`now`].
    pub(crate) begun: u64,
    /// Time at which it ended.
    pub(crate) ended: u64,
    /// Processor time in seconds, of the process and the children it waited for.
    pub(crate) cpu: f64,
    /// Peak memory in kilobytes; 0 if it was not watched.
    pub(crate) peak: u64,
}

/// Selects whether a process's memory is read while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Watched,
    Ignored,
}

/// Interval between memory readings. The kernel keeps the peak, so only a peak in the last moment is missed.
const PERIOD: Duration = Duration::from_millis(20);

/// Runs a program to its end. A failing program is an error.
pub(crate) fn run(command: &mut Command, memory: Memory) -> Result<Cost> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begun = now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let (pid, over) = (child.id(), AtomicBool::new(false));
    let (ended, peak) = thread::scope(|scope| {
        let watch = (memory == Memory::Watched).then(|| scope.spawn(|| watch(pid, &over)));
        let ended = wait_unreaped(&child).map(|()| now());
        over.store(true, Ordering::Relaxed);
        (
            ended,
            watch.and_then(|watch| watch.join().ok()).unwrap_or_default(),
        )
    });
    // A zombie still has its usage.
    let cpu = cpu_seconds(child.id());
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(Cost {
        begun,
        ended: ended?,
        cpu: cpu?,
        peak,
    })
}

fn wait_unreaped(child: &Child) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process without an id")?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    Ok(())
}

fn watch(pid: u32, over: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !over.load(Ordering::Relaxed) {
        peak = peak_memory(pid).unwrap_or_default().max(peak);
        thread::sleep(PERIOD);
    }
    peak
}

/// Returns the peak memory of a process so far, in kilobytes.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")
}

/// Returns the current memory of a process, in kilobytes.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    status(pid, "VmRSS:")
}

fn status(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns a process and all its running descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&pid) = tree.get(at) {
        tree.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == pid)
                .map(|(child, _)| child),
        );
        at += 1;
    }
    tree
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the processor time in seconds of a process, of the children it waited for and of its running
/// descendants.
pub(crate) fn tree_cpu(root: u32) -> f64 {
    tree(root)
        .into_iter()
        .filter_map(|pid| cpu_seconds(pid).ok())
        .sum()
}

/// Returns the processor time of the running processes of a tree, to the microsecond: for durations so short
/// that the ticks of the process table would be too coarse.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn tree_run_time(root: u32) -> f64 {
    let of_task = |path: std::path::PathBuf| -> Option<u64> {
        let told = fs::read_to_string(path.join("schedstat")).ok()?;
        told.split_ascii_whitespace().next()?.parse().ok()
    };
    let tasks = tree(root)
        .into_iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
        .flatten()
        .filter_map(Result::ok);
    let nanoseconds: u64 = tasks.filter_map(|task| of_task(task.path())).sum();
    nanoseconds as f64 / 1e9
}

/// Returns the current memory of a process and its descendants, in kilobytes.
pub(crate) fn tree_memory(root: u32) -> u64 {
    tree(root).into_iter().filter_map(memory).sum()
}

/// Returns user and system time of a process and of the children it waited for.
#[allow(clippy::cast_precision_loss)]
fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("cannot parse the process table")?;
    let ticks = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}
