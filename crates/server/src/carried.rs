//! SRV-2: answers to questions that outlived the process that asked them.
//!
//! The turn that asked is gone, so an answer starts a new one, in which the model goes on. When the same call is asked
//! about again, the answer that a person gave to it is used: the same tool with the same effect, and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_api::{Answer, Backend, CallId, Envelope, Event, SessionId, UserReply, Waiting};

use crate::app::lock;
use crate::questions::OpenQuestion;

/// Attempts to pass on an answer: the call may not wait yet when its request is seen.
const ATTEMPTS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(20);

/// The effect that a person saw and allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    tool: String,
    subjects: Vec<String>,
    preview: Option<String>,
}

impl Shown {
    fn of(event: &Event) -> Option<(Self, &CallId)> {
        match event {
            Event::Waiting(Waiting::PermissionRequest {
                call_id,
                tool,
                subjects,
                preview,
                ..
            }) => {
                let shown = Self {
                    tool: tool.clone(),
                    subjects: subjects.clone(),
                    preview: preview.clone(),
                };
                Some((shown, call_id))
            }
            _ => None,
        }
    }
}

/// Answers that wait for their call to be asked about again.
#[derive(Default)]
pub(crate) struct Carried(Mutex<HashMap<SessionId, (Shown, Answer)>>);

impl Carried {
    /// Keeps an answer for the session's next turn. Returns the text that continues the work.
    pub(crate) fn keep(&self, session: &SessionId, question: &OpenQuestion, reply: UserReply) -> Option<String> {
        match reply {
            UserReply::Text(text) => {
                let asked = question.question().unwrap_or_default();
                Some(format!("My answer to your question “{asked}”: {text}"))
            }
            UserReply::Permission(Answer::No) => None,
            UserReply::Permission(Answer::NoBecause(note)) => Some(note),
            UserReply::Permission(answer) => {
                let (shown, _) = Shown::of(&question.request)?;
                let what = match shown.subjects.as_slice() {
                    [] => shown.tool.clone(),
                    subjects => format!("{} {}", shown.tool, subjects.join(", ")),
                };
                lock(&self.0).insert(session.clone(), (shown, answer));
                Some(format!(
                    "Go on. The program was stopped while it waited for my approval, which I give now: {what}"
                ))
            }
        }
    }

    /// Answers a request that a person has answered before.
    pub(crate) fn hear(&self, backend: &Arc<dyn Backend>, envelope: &Envelope) {
        let session = &envelope.session;
        if envelope.event.is_terminal() {
            lock(&self.0).remove(session);
            return;
        }
        let Some((shown, call)) = Shown::of(&envelope.event) else {
            return;
        };
        let mut carried = lock(&self.0);
        if carried.get(session).is_none_or(|(before, _)| *before != shown) {
            return;
        }
        let Some((_, answer)) = carried.remove(session) else {
            return;
        };
        drop(carried);
        let (backend, session, call) = (Arc::clone(backend), session.clone(), call.clone());
        tokio::spawn(async move {
            for _ in 0..ATTEMPTS {
                let reply = UserReply::Permission(answer.clone());
                if backend.reply(&session, &call, reply).await {
                    return;
                }
                tokio::time::sleep(BETWEEN).await;
            }
        });
    }
}
