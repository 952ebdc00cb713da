//! The user, as a running call can reach them.

use std::sync::Arc;

use crate::event::{Event, EventSink, Waiting};
use crate::id::CallId;
use crate::permission::{Approver, Question};

/// Whoever can answer a question of a running call.
#[derive(Clone)]
pub struct Person(Option<Arc<Line>>);

struct Line {
    call: CallId,
    events: Arc<dyn EventSink>,
    approver: Arc<dyn Approver>,
}

impl Person {
    /// Nobody.
    pub fn nobody() -> Self {
        Self(None)
    }

    pub(crate) fn new(call: CallId, events: Arc<dyn EventSink>, approver: Arc<dyn Approver>) -> Self {
        Self(Some(Arc::new(Line {
            call,
            events,
            approver,
        })))
    }

    /// Asks, and waits for the answer however long it takes. `None` when nobody is there.
    pub async fn ask(&self, question: &Question) -> Option<String> {
        let line = self.0.as_ref()?;
        let event = Event::Waiting(Waiting::Question {
            call_id: line.call.clone(),
            text: question.text.clone(),
            options: question.options.clone(),
        });
        line.events.record(event).await.ok()?;
        line.approver.answer(&line.call, question).await
    }
}
