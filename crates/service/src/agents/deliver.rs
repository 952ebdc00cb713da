//! SUB-4: results on their way to the session above, each delivered exactly once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use windlass_api::{Event, Message, MessageId, Part, Role, SessionId};
use windlass_core::event::AgentEvent;
use windlass_core::log::{AgentQuery, AgentRow};
use windlass_core::message::{Fragment, FragmentSource};
use windlass_core::run::Inbox;

use super::Family;
use super::format::report;
use super::tools::DELIVERING;
use crate::Inner;
use crate::turn::Steering;

/// Messages that contain results, until they are recorded.
#[derive(Default)]
pub(crate) struct Deliveries(Mutex<HashMap<MessageId, Vec<SessionId>>>);

impl Deliveries {
    /// Notes that a message contains the results of these sub-agents.
    pub(crate) fn note(&self, message: &MessageId, agents: Vec<SessionId>) {
        self.lock().insert(message.clone(), agents);
    }

    /// Adds to events the marks of the results that they contain, to be stored in the same write.
    pub(crate) fn marked(&self, events: Vec<Event>) -> Vec<Event> {
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            let agents = match &event {
                Event::Message { message } => self.lock().remove(&message.id).unwrap_or_default(),
                Event::ToolResult { name, details, .. } if DELIVERING.contains(&name.as_str()) => {
                    delivered(details.as_ref())
                }
                _ => Vec::new(),
            };
            all.push(event);
            if !agents.is_empty() {
                all.push(AgentEvent::AgentDelivered { agents }.into_event());
            }
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, Vec<SessionId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the sub-agents whose results a tool returned, from its details.
fn delivered(details: Option<&Value>) -> Vec<SessionId> {
    let list = details.and_then(|details| details.get("delivered")?.as_array());
    list.into_iter()
        .flatten()
        .filter_map(|id| id.as_str().map(SessionId::from))
        .collect()
}

/// Returns a message with the results that are ready, and the sub-agents they come from; `None` if there are none.
pub(crate) async fn results_message(inner: &Inner, session: &SessionId) -> Option<(Message, Vec<SessionId>)> {
    let query = AgentQuery::Undelivered(session.clone());
    let ready = inner.store.agents(&query).await.unwrap_or_default();
    if ready.is_empty() {
        return None;
    }
    let part = |row: &AgentRow| {
        let text = report(row);
        Part::Context(Fragment::new(FragmentSource::Child, text).labeled(row.title()))
    };
    let parts = ready.iter().map(part).collect();
    let message = Message::new(session, Role::User, parts, inner.clock.now());
    Some((message, ready.into_iter().map(|row| row.session).collect()))
}

/// Messages of the user and results of sub-agents, for the running turn.
pub(crate) struct AgentInbox {
    steering: Steering,
    session: SessionId,
    family: Family,
    inner: Arc<Inner>,
    deliveries: Arc<Deliveries>,
}

impl AgentInbox {
    pub(crate) fn new(
        inner: &Arc<Inner>,
        session: &SessionId,
        (steering, deliveries): (&Steering, &Arc<Deliveries>),
        family: &Family,
    ) -> Self {
        family.begin_turn();
        Self {
            steering: steering.clone(),
            session: session.clone(),
            family: family.clone(),
            inner: Arc::clone(inner),
            deliveries: Arc::clone(deliveries),
        }
    }
}

#[async_trait]
impl Inbox for AgentInbox {
    async fn take(&self) -> Vec<Message> {
        let mut messages = self.steering.take().await;
        if !self.family.takes_results() {
            return messages;
        }
        if let Some((message, agents)) = results_message(&self.inner, &self.session).await {
            self.deliveries.note(&message.id, agents);
            messages.push(message);
        }
        messages
    }
}
