//! Access to the user for a running call.

use std::sync::Arc;

use crate::event::{Event, EventSink, Waiting};
use crate::id::CallId;
use crate::permission::{Approver, Question};

/// The user who can answer questions of a running call, if there is one.
#[derive(Clone)]
pub struct Person(Option<Arc<Line>>);

struct Line {
    call: CallId,
    events: Arc<dyn EventSink>,
    approver: Arc<dyn Approver>,
}

impl Person {
    /// Returns a person who is never available.
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

    /// Asks a question and waits for the answer without a timeout. `None` if no user is available.
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
