//! The events of a turn, with progress notifications, until the turn ends or asks.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Envelope, Event, EventStream, Waiting};
use windlass_core::text::shorten;
use windlass_jsonrpc::Outbox;

use crate::ask::{Question, visible};

/// Time between two signs of life. Clients give up on a call after a minute without one.
const ALIVE: Duration = Duration::from_secs(10);
/// Maximum length of the text of a progress notification.
const MAX_NOTE: usize = 300;

/// Progress notifications of a request that asked for them.
pub(crate) struct Progress {
    target: Option<(Outbox, Value)>,
    sent: u64,
    note: String,
}

impl Progress {
    /// Reports to the client, if the parameters of its request carry a token.
    pub(crate) fn new(outbox: &Outbox, params: &Value) -> Self {
        let token = params.pointer("/_meta/progressToken").cloned();
        Self {
            target: token.map(|token| (outbox.clone(), token)),
            sent: 0,
            note: "started".to_owned(),
        }
    }

    pub(crate) fn none() -> Self {
        Self {
            target: None,
            sent: 0,
            note: String::new(),
        }
    }

    async fn say(&mut self, note: Option<String>) {
        if let Some(note) = note {
            self.note = visible(shorten(note.lines().next().unwrap_or_default(), MAX_NOTE).0);
        }
        let Some((outbox, token)) = &self.target else {
            return;
        };
        self.sent += 1;
        let params = json!({ "progressToken": token, "progress": self.sent, "message": self.note });
        // A client that is gone ends the request by itself.
        let _ = outbox.notify("notifications/progress", params).await;
    }
}

/// Next thing that happens to a turn.
#[derive(Debug)]
pub(crate) enum Step {
    /// The turn ended, with its last event.
    Ended(Event),
    /// The turn asks.
    Asks(Question),
    /// The question that was asked has been answered, here or elsewhere.
    Answered,
    /// There are no more events.
    Over,
    /// The client withdrew its request.
    Withdrawn,
}

/// Follows the events of a session.
pub(crate) struct Follower {
    events: EventStream,
    /// Number of the last event that is history: questions before it may be answered already.
    history: u64,
    pending: Vec<Question>,
    progress: Progress,
    cancel: CancellationToken,
    last: Option<Event>,
    /// Number of the last event that was seen.
    pub(crate) seen: u64,
}

impl Follower {
    /// Follows events. Those up to `history` have happened before.
    pub(crate) fn new(
        events: EventStream,
        history: u64,
        progress: Progress,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            events,
            history,
            pending: Vec::new(),
            progress,
            cancel,
            last: None,
            seen: 0,
        }
    }

    /// Waits for the next step. While `asked` waits for its answer, other questions are kept for later.
    pub(crate) async fn next(&mut self, asked: Option<&CallId>) -> Step {
        let mut alive = tokio::time::interval(ALIVE);
        loop {
            if asked.is_none() && self.seen >= self.history && !self.pending.is_empty() {
                return Step::Asks(self.pending.remove(0));
            }
            let envelope = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Step::Withdrawn,
                envelope = self.events.next() => envelope,
                _ = alive.tick() => {
                    self.progress.say(None).await;
                    continue;
                }
            };
            let Some(envelope) = envelope else {
                return self.last.take().map_or(Step::Over, Step::Ended);
            };
            if let Some(step) = self.take(envelope, asked).await {
                return step;
            }
        }
    }

    async fn take(&mut self, envelope: Envelope, asked: Option<&CallId>) -> Option<Step> {
        let Envelope { seq, event, .. } = envelope;
        self.seen = self.seen.max(seq);
        let is_history = seq <= self.history;
        let note = note(&event);
        if note.is_some() && !is_history {
            self.progress.say(note).await;
        }
        match &event {
            Event::Waiting(waiting) => {
                if let Waiting::PermissionAnswer { call_id, .. } = waiting {
                    return self.answered(call_id, asked);
                }
                self.pending.extend(Question::read(seq, waiting));
            }
            Event::ToolResult { call_id, .. } => return self.answered(call_id, asked),
            event if event.is_terminal() => {
                self.pending.clear();
                if !is_history {
                    return Some(Step::Ended(event.clone()));
                }
            }
            _ => {}
        }
        None
    }

    fn answered(&mut self, call: &CallId, asked: Option<&CallId>) -> Option<Step> {
        self.pending.retain(|question| question.call != *call);
        (asked == Some(call)).then_some(Step::Answered)
    }
}

/// Returns the text of a progress notification; `None` if the event is no news.
fn note(event: &Event) -> Option<String> {
    match event {
        Event::Start { model, .. } => Some(format!("asking {model}")),
        Event::StepStart { title, .. } => Some(title.clone()),
        Event::Text { text } => Some(text.clone()),
        Event::Retry { message, .. } => Some(format!("trying again: {message}")),
        Event::Warning { message } => Some(message.clone()),
        Event::Waiting(Waiting::PermissionRequest { tool, .. }) => {
            Some(format!("waiting for approval of {tool}"))
        }
        Event::Waiting(Waiting::Question { .. }) => Some("waiting for an answer".to_owned()),
        _ => None,
    }
}
