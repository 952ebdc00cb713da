//! What a session has in this process beside its task: how to answer and to stop it, and what it works with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::environment::SessionEnv;
use crate::replies::Replies;

/// Outlives the session's task: one that is opened again goes on with the same bench, so that the mode that was set by
/// hand, answers for the session and commands in the background are still there.
#[derive(Clone, Default)]
pub(crate) struct SessionHandle {
    pub(crate) replies: Replies,
    running: Arc<Mutex<Option<CancellationToken>>>,
    stops: Arc<AtomicU64>,
    env: Arc<Mutex<Option<Box<dyn SessionEnv>>>>,
}

/// Something that can be stopped from outside, until this is dropped.
pub(crate) struct Stoppable {
    pub(crate) token: CancellationToken,
    running: Arc<Mutex<Option<CancellationToken>>>,
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        *lock(&self.running) = None;
    }
}

impl SessionHandle {
    /// Something begins. It can be stopped at once, whatever the session's task waits for.
    pub(crate) fn begin(&self) -> Stoppable {
        let token = CancellationToken::new();
        *lock(&self.running) = Some(token.clone());
        Stoppable {
            token,
            running: Arc::clone(&self.running),
        }
    }

    /// Stops what runs. Whether something did.
    pub(crate) fn stop(&self) -> bool {
        let running = lock(&self.running);
        if running.is_some() {
            self.stops.fetch_add(1, Ordering::SeqCst);
        }
        running.iter().for_each(CancellationToken::cancel);
        running.is_some()
    }

    /// How often something was stopped. What was said before the last time does not begin by itself.
    pub(crate) fn stops(&self) -> u64 {
        self.stops.load(Ordering::SeqCst)
    }

    /// Keeps the bench of a session that is no longer live.
    pub(crate) fn park(&self, env: Box<dyn SessionEnv>) {
        *lock(&self.env) = Some(env);
    }

    /// The bench that was kept.
    pub(crate) fn parked(&self) -> Option<Box<dyn SessionEnv>> {
        lock(&self.env).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
