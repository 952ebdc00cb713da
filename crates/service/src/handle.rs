//! State of a session in this process outside its task: pending replies, the means to stop it, and its
//! environment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::agents::Family;
use crate::environment::SessionEnv;
use crate::replies::Replies;

/// Handle of a session. It outlives the session's task: a session that is opened again keeps its environment,
/// so that the mode set by the user, grants for the session and background commands are still there.
#[derive(Clone, Default)]
pub(crate) struct SessionHandle {
    pub(crate) replies: Replies,
    running: Arc<Mutex<Option<CancellationToken>>>,
    pub(crate) stops: Stops,
    env: Arc<Mutex<Option<Box<dyn SessionEnv>>>>,
    /// Agents above and below the session.
    pub(crate) family: Family,
}

/// Counts how often work of a session was stopped. An input that was sent before the last stop does not start
/// without a further request.
#[derive(Clone, Default)]
pub(crate) struct Stops(Arc<AtomicU64>);

impl Stops {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Work that can be stopped from outside, until this value is dropped.
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
    /// Registers new work. It can be stopped immediately, whatever the session's task waits for.
    pub(crate) fn begin(&self) -> Stoppable {
        let token = CancellationToken::new();
        *lock(&self.running) = Some(token.clone());
        Stoppable {
            token,
            running: Arc::clone(&self.running),
        }
    }

    /// Stops the running work. Returns true if there was any.
    pub(crate) fn stop(&self) -> bool {
        let running = lock(&self.running);
        if running.is_some() {
            self.stops.0.fetch_add(1, Ordering::SeqCst);
        }
        running.iter().for_each(CancellationToken::cancel);
        running.is_some()
    }

    /// Stores the environment of a session that is no longer live.
    pub(crate) fn park(&self, env: Box<dyn SessionEnv>) {
        *lock(&self.env) = Some(env);
    }

    /// Takes the stored environment.
    pub(crate) fn parked(&self) -> Option<Box<dyn SessionEnv>> {
        lock(&self.env).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
