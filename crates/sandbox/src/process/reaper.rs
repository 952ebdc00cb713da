//! What the program as a whole owes its children: kills under way, calls that run, and ended processes to collect.
//!
//! This state belongs to the process and cannot belong to less: the kernel hands orphans to a process.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions};
use tokio::sync::watch;

use super::background;
use super::kill;
use super::table::{self, Process};
use super::tree::Target;

/// After this many calls the ended processes that were handed to us are collected, beside the calls.
const CALLS_BETWEEN_COLLECTIONS: usize = 256;

static ADOPTING: AtomicBool = AtomicBool::new(false);
static LIVE: Mutex<Vec<Target>> = Mutex::new(Vec::new());
static STARTED: AtomicUsize = AtomicUsize::new(0);
static UNDER_WAY: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));
static HURRIES: Mutex<u64> = Mutex::new(0);
static HURRIED: Condvar = Condvar::new();

/// Asks the kernel to hand us the processes whose parents ended, so that no process of a call gets out of reach.
/// Called once, early in `main`. Where the system does not offer it, nothing happens.
///
/// From then on the program must start children in its own session only: an ended child in another session counts as
/// handed to us and is collected.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTING.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Ends what runs in the background, then waits until no call runs and every kill under way is done, at most this long.
/// Says whether all are.
pub async fn settle(limit: Duration) -> bool {
    background::end_each();
    let quiet = async {
        let mut under_way = UNDER_WAY.subscribe();
        loop {
            let _ = under_way.wait_for(|count| *count == 0).await;
            // A call that was canceled a moment ago runs until its kill begins.
            if Live::none() && *under_way.borrow() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let settled = tokio::time::timeout(limit, quiet).await.is_ok();
    collect();
    settled
}

/// Ends every call that runs and every kill under way, without patience: what has not ended gets KILL at once. Says
/// whether all of it is gone within `limit`. For a user who asks twice, just before the program exits: it does not count
/// on anybody else to do anything.
pub async fn end_all(limit: Duration) -> bool {
    background::end_each();
    let running = live().clone();
    for target in running {
        drop(kill::start(target, None));
    }
    let mut under_way = UNDER_WAY.subscribe();
    let ended = async {
        loop {
            *HURRIES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            HURRIED.notify_all();
            // A kill that begins only now has not heard of the hurry.
            let quiet = under_way.wait_for(|count| *count == 0);
            if tokio::time::timeout(Duration::from_millis(20), quiet)
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    tokio::time::timeout(limit, ended).await.is_ok()
}

/// A call that is being ended by somebody who does not wait for it.
pub(super) fn no_longer_live(target: &Target) {
    live().retain(|one| one.marker != target.marker);
}

fn live() -> MutexGuard<'static, Vec<Target>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that runs and is not being ended. While there is one, an orphan without a sign may be its own.
pub(super) struct Live(i32);

impl Live {
    pub(super) fn begin(target: &Target) -> Self {
        live().push(target.clone());
        let started = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        if started.is_multiple_of(CALLS_BETWEEN_COLLECTIONS) {
            drop(tokio::task::spawn_blocking(collect));
        }
        Self(target.root)
    }

    /// Whether no call runs.
    pub(super) fn none() -> bool {
        live().is_empty()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        live().retain(|target| target.root != self.0);
    }
}

/// A kill under way, from when it was asked for.
pub(super) struct UnderWay {
    hurries: u64,
}

impl UnderWay {
    pub(super) fn begin() -> Self {
        UNDER_WAY.send_modify(|count| *count += 1);
        Self {
            hurries: *HURRIES.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits this long, or until somebody is in a hurry. Says whether somebody is.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let guard = HURRIES.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = HURRIED.wait_timeout_while(guard, time, |hurries| *hurries == self.hurries);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *guard != self.hurries
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Collects the ended processes that were handed to us. Leaves our own children to those who started them.
pub(super) fn collect() {
    if !ADOPTING.load(Ordering::Relaxed) || STARTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let (Ok(processes), Some(own)) = (table::processes(), table::process(own)) else {
        return;
    };
    for process in processes.iter().filter(|process| is_adopted(process, &own)) {
        bury(process);
    }
}

/// Collects one ended process, if it is ours to collect.
pub(super) fn bury(process: &Process) {
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
