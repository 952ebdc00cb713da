//! SRV-2: questions and permission requests that wait for a person. They are read from the record, so every client
//! sees them, and a restart loses none.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_api::{CallId, Entry, Event, FailureKind, SessionEvent, SessionId, Timestamp, Waiting};

use windlass_core::log::{LogError, Preferences};

use crate::app::lock;

/// Entries at the end of a record in which open questions are looked for.
pub(crate) const TAIL: usize = 500;
/// Answers whose sender is remembered.
const REMEMBERED: usize = 1_000;

/// A question or permission request without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct OpenQuestion {
    /// Id of the call, for the answer.
    pub(crate) call: CallId,
    /// The event that asked: `permission_request` or `question`.
    pub(crate) request: Event,
    /// Number of the entry that asked.
    pub(crate) seq: u64,
    /// Time of the question, in milliseconds since 1970.
    pub(crate) asked_at: Timestamp,
    /// True if the program was stopped while it waited. An answer then continues the work in a new turn.
    pub(crate) is_interrupted: bool,
}

impl OpenQuestion {
    /// Returns the text of a plain question; `None` for a permission request.
    pub(crate) fn question(&self) -> Option<&str> {
        match &self.request {
            Event::Waiting(Waiting::Question { text, .. }) => Some(text),
            _ => None,
        }
    }
}

/// Returns the questions without an answer in the last entries of a record, oldest first.
pub(crate) fn open_questions(entries: &[Entry]) -> Vec<OpenQuestion> {
    let mut open: Vec<OpenQuestion> = Vec::new();
    // Results that only report the interruption arrive before the end of the turn.
    let mut closed_by_results: Vec<OpenQuestion> = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::Waiting(
                Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. },
            ) => {
                open.retain(|question| question.call != *call_id);
                open.push(OpenQuestion {
                    call: call_id.clone(),
                    request: entry.event.clone(),
                    seq: entry.seq,
                    asked_at: entry.time,
                    is_interrupted: false,
                });
            }
            Event::Waiting(Waiting::PermissionAnswer { call_id, .. }) => {
                open.retain(|question| question.call != *call_id);
            }
            Event::ToolResult { call_id, .. } => {
                let (done, rest) = open.into_iter().partition(|question| question.call == *call_id);
                open = rest;
                let done: Vec<OpenQuestion> = done;
                closed_by_results.extend(done);
            }
            Event::Start { .. } => {
                closed_by_results.clear();
                // What a sub-agent asks does not end with the turn of the session above it.
                open.retain(|question| !question.is_interrupted && is_of_agent(question));
            }
            Event::Failed {
                reason: FailureKind::Interrupted,
                ..
            } => {
                open.append(&mut closed_by_results);
                open.iter_mut()
                    .for_each(|question| question.is_interrupted = true);
            }
            // The next owner asks again.
            Event::Session(SessionEvent::Moved { .. }) => {
                closed_by_results.clear();
                open.clear();
            }
            event if event.is_terminal() => {
                closed_by_results.clear();
                open.retain(is_of_agent);
            }
            _ => {}
        }
    }
    open.sort_by_key(|question| question.seq);
    open
}

/// Scope of the store's small values under which refused questions of a session are kept.
fn refused_scope(session: &SessionId) -> String {
    format!("server.refused:{session}")
}

/// Records that a person refused a question whose turn was interrupted: nothing in the record says so.
pub(crate) async fn refuse(
    store: &(impl Preferences + ?Sized),
    session: &SessionId,
    question: &OpenQuestion,
) -> Result<(), LogError> {
    let name = question.seq.to_string();
    store
        .set_preference(&refused_scope(session), &name, Some("no"))
        .await
}

/// Removes the questions that a person refused after their turn was interrupted.
pub(crate) async fn without_refused(
    store: &(impl Preferences + ?Sized),
    session: &SessionId,
    mut questions: Vec<OpenQuestion>,
) -> Vec<OpenQuestion> {
    if questions.iter().any(|question| question.is_interrupted) {
        let refused = store
            .preferences(&refused_scope(session))
            .await
            .unwrap_or_default();
        questions.retain(|question| !refused.iter().any(|(name, _)| *name == question.seq.to_string()));
    }
    questions
}

fn is_of_agent(question: &OpenQuestion) -> bool {
    question.call.as_str().starts_with("agent-")
}

/// Returns true if a record has ever asked under this call id.
pub(crate) fn was_asked(entries: &[Entry], call: &CallId) -> bool {
    entries.iter().any(|entry| {
        matches!(
            &entry.event,
            Event::Waiting(Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. })
                if call_id == call
        )
    })
}

/// Clients that answered questions. The newest answers are remembered.
#[derive(Default)]
pub(crate) struct Answers(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    by: HashMap<(SessionId, CallId), String>,
    order: VecDeque<(SessionId, CallId)>,
}

impl Answered {
    fn add(&mut self, session: &SessionId, call: &CallId, by: &str) {
        let key = (session.clone(), call.clone());
        if self.by.insert(key.clone(), by.to_owned()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(old) = self.order.pop_front()
        {
            self.by.remove(&old);
        }
    }
}

impl Answers {
    /// Remembers who answers, unless somebody has: of two clients that answer at once, one is first.
    pub(crate) fn claim(&self, session: &SessionId, call: &CallId, by: &str) -> bool {
        let mut answered = lock(&self.0);
        let is_first = !answered.by.contains_key(&(session.clone(), call.clone()));
        if is_first {
            answered.add(session, call, by);
        }
        is_first
    }

    /// Forgets an answer that was not taken.
    pub(crate) fn forget(&self, session: &SessionId, call: &CallId) {
        let key = (session.clone(), call.clone());
        let mut answered = lock(&self.0);
        answered.by.remove(&key);
        answered.order.retain(|known| *known != key);
    }

    pub(crate) fn remember(&self, session: &SessionId, call: &CallId, by: &str) {
        lock(&self.0).add(session, call, by);
    }

    pub(crate) fn by(&self, session: &SessionId, call: &CallId) -> Option<String> {
        lock(&self.0).by.get(&(session.clone(), call.clone())).cloned()
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
