//! Results of sub-agents, as the session's task sees them.

use std::sync::Arc;

use windlass_api::Event;
use windlass_core::run::Inbox;

use super::{Activity, SessionActor, Stay, not_stored};
use crate::agents::{AgentInbox, results_message};

impl SessionActor {
    /// Returns the inbox of a turn: messages of the user, and results of sub-agents.
    pub(super) fn inbox(&self) -> Arc<dyn Inbox> {
        let sink = &self.sink;
        let from = (sink.steering(), sink.deliveries());
        Arc::new(AgentInbox::new(
            &self.inner,
            &self.info.id,
            from,
            &self.handle.family,
        ))
    }

    /// Starts a turn with the results that are ready.
    pub(super) async fn woken(&mut self) -> Activity {
        let Some((message, agents)) = results_message(&self.inner, &self.info.id).await else {
            return Activity::Idle;
        };
        let message = Arc::new(message);
        self.sink.deliveries().note(&message.id, agents);
        let stop = self.handle.begin();
        if let Err(error) = self.take(&message, Vec::new()).await {
            self.sink.tell_only(not_stored(&error));
            self.stay = Stay::Closing;
            return Activity::Idle;
        }
        self.turn(&message, stop).await
    }

    /// Records the end of a turn. The end of a sub-agent's run goes with it, unless a message came too late for this
    /// turn: it starts the next turn of the same run.
    pub(super) async fn end_turn(&mut self, mut events: Vec<Event>) {
        let goes_on = self.may_continue();
        self.handle.family.close(&self.history, &mut events, goes_on);
        self.end(events).await;
    }
}
