//! The program's duties towards its child processes: kills in progress, running calls, and ended processes to
//! collect.
//!
//! This state belongs to the process and cannot have a smaller scope: the kernel hands orphans to a process.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::background;
use super::kill;
use super::target::Target;
use crate::backend;

/// Number of calls after which adopted processes that have ended are collected, in the background.
const CALLS_BETWEEN_COLLECTIONS: usize = 256;

static LIVE: Mutex<Vec<Target>> = Mutex::new(Vec::new());
static STARTED: AtomicUsize = AtomicUsize::new(0);
static UNDER_WAY: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));
static HURRIES: Mutex<u64> = Mutex::new(0);
static HURRIED: Condvar = Condvar::new();

/// Asks the kernel to hand us processes whose parents have ended, so that no process of a call gets out of
/// reach. Call once, early in `main`. Does nothing where the system does not offer this.
///
/// From then on the program must start children in its own session only: an ended child in another session
/// counts as adopted and is collected.
///
/// # Errors
/// If the kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    backend::process::adopt_orphans()
}

/// Ends everything in the background, then waits up to `limit` until no call runs, every kill is done and no
/// sandbox is being built.
/// Returns true if that happened in time.
pub async fn settle(limit: Duration) -> bool {
    background::end_each();
    let quiet = async {
        let mut under_way = UNDER_WAY.subscribe();
        loop {
            let _ = under_way.wait_for(|count| *count == 0).await;
            // A call that was canceled a moment ago runs until its kill starts.
            if Live::none() && *under_way.borrow() == 0 && backend::none_left() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let settled = tokio::time::timeout(limit, quiet).await.is_ok();
    // Their processes are gone, and now their mounts.
    backend::end_launchers();
    collect();
    settled
}

/// Ends every running call and every kill in progress without waiting: processes that still run get KILL at
/// once. Returns true if all of them ended within `limit`. For a user who asks twice, just before the program
/// exits; it does not rely on any other task to make progress.
pub async fn end_all(limit: Duration) -> bool {
    background::end_each();
    backend::kill_all();
    let running = live().clone();
    for target in running {
        drop(kill::start(target, None));
    }
    let mut under_way = UNDER_WAY.subscribe();
    let ended = async {
        loop {
            *HURRIES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            HURRIED.notify_all();
            // A kill that starts only now has not seen the hurry.
            let quiet = under_way.wait_for(|count| *count == 0);
            let quiet = tokio::time::timeout(Duration::from_millis(20), quiet).await;
            if quiet.is_ok() && backend::none_left() {
                return;
            }
        }
    };
    let ended = tokio::time::timeout(limit, ended).await.is_ok();
    backend::end_launchers();
    ended
}

/// Removes a call from the running ones, because it is being ended by a caller that does not wait for it.
pub(super) fn no_longer_live(target: &Target) {
    live().retain(|one| one.marker != target.marker);
}

fn live() -> MutexGuard<'static, Vec<Target>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running call that is not being ended. While there is one, an orphan without a trace may belong to it.
pub(crate) struct Live(i32);

impl Live {
    pub(super) fn begin(target: &Target) -> Self {
        live().push(target.clone());
        let started = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        if started.is_multiple_of(CALLS_BETWEEN_COLLECTIONS) {
            drop(tokio::task::spawn_blocking(collect));
        }
        Self(target.root)
    }

    /// Returns true if no call runs.
    pub(crate) fn none() -> bool {
        live().is_empty()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        live().retain(|target| target.root != self.0);
    }
}

/// Work that the program waits for before it exits, such as a kill, from the moment it was requested.
pub(crate) struct UnderWay {
    hurries: u64,
}

impl UnderWay {
    pub(crate) fn begin() -> Self {
        UNDER_WAY.send_modify(|count| *count += 1);
        Self {
            hurries: *HURRIES.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits for `time`, or until [`end_all`] is called. Returns true if it was.
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

/// Collects the adopted processes that have ended. Our own children are left to those who started them.
pub(super) fn collect() {
    if STARTED.load(Ordering::Relaxed) > 0 {
        backend::process::collect();
    }
}
