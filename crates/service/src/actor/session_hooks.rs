//! LOOP-18: hooks at the start and the end of a live session. They run in a task of their own, so that one
//! that panics does not take the session with it.

use std::sync::Arc;

use tokio::task::JoinError;
use windlass_core::hook::{Hooks, SessionClosing, SessionOpening};

use super::{Activity, Running, SessionActor, Stay};

impl SessionActor {
    /// Starts the hooks of a session that was opened.
    pub(super) fn opening(&self, hooks: &Hooks, opening: SessionOpening) -> Activity {
        if !hooks.follow_sessions() {
            return Activity::Idle;
        }
        let stop = self.handle.begin();
        // The service may have been closed before the hooks could be stopped.
        if self.inner.closing.is_cancelled() {
            stop.token.cancel();
        }
        let (hooks, info, cancel) = (hooks.clone(), self.info.clone(), stop.token.clone());
        let clock = Arc::clone(&self.inner.clock);
        let task = tokio::spawn(async move { hooks.session_started(&*clock, &info, opening, &cancel).await });
        Activity::Opening(Running { task, stop })
    }

    /// Reports hooks that failed.
    pub(super) async fn report(&self, warnings: Result<Vec<String>, JoinError>) {
        let crashed = |error| vec![format!("a hook failed with an internal error: {error}")];
        self.warn(&warnings.unwrap_or_else(crashed)).await;
    }

    /// Runs the hooks of a session that is about to be closed.
    pub(super) async fn closing(&self, hooks: Hooks, closing: SessionClosing) {
        if !hooks.follow_sessions() {
            return;
        }
        self.renew();
        // Hooks see the session as it is now.
        self.sink.settle().await;
        let stored = self.inner.store.get(&self.info.id).await.ok().flatten();
        let info = stored.unwrap_or_else(|| self.info.clone());
        let clock = Arc::clone(&self.inner.clock);
        let ended = tokio::spawn(async move { hooks.session_ended(&*clock, &info, closing).await });
        self.report(ended.await).await;
    }

    /// Returns the reason a session is closed before it was idle for a while.
    pub(super) fn reason(&self) -> SessionClosing {
        match self.stay {
            Stay::Left => SessionClosing::Ended,
            _ if self.inner.closing.is_cancelled() => SessionClosing::Shutdown,
            _ => SessionClosing::Failed,
        }
    }
}
