//! GOAL-5: work towards goals whose process ended without saying so.

use std::sync::Arc;

use windlass_api::{GoalState, GoalStop, SessionId};
use windlass_core::log::{Batch, LogError};

use crate::Service;
use crate::goal::state;

impl Service {
    /// Finds active work of sessions that no process holds, in the background, and records that it is paused.
    /// Called once, when a program starts.
    pub fn mark_orphans(&self) {
        let service = self.clone();
        self.inner.tasks.spawn(async move {
            let active = service.inner.store.goals(true).await.unwrap_or_default();
            for goal in active {
                // A session that is opened meanwhile marks its own work.
                let _ = service.mark_orphan(&goal.session).await;
            }
        });
    }

    async fn mark_orphan(&self, session: &SessionId) -> Result<(), LogError> {
        let _opening = self.inner.opening.lock().await;
        let (store, now) = (Arc::clone(&self.inner.store), self.inner.clock.now());
        // A lease of this process would be taken from itself.
        if self.known(session).is_some() || store.holder(session).await?.is_some() {
            return Ok(());
        }
        let opened = store.open(session, &self.inner.owner).await?;
        let event = state(
            GoalState::Paused,
            Some(GoalStop::ProcessEnded),
            "the process ended",
            now,
        );
        let batch = Batch {
            first_seq: opened.info.last_seq + 1,
            events: vec![event],
            time: now,
            ..Batch::default()
        };
        let marked = store.append(&opened.lease, batch).await;
        store.release(&opened.lease).await?;
        marked
    }
}
