//! SRV-2: answers to questions that outlived the process that asked them.
//!
//! The turn that asked is gone, so an answer starts a new one, in which the model goes on. When the same call is asked
//! about again, the answer that a person gave to it is used: the same tool with the same effect, and nothing else.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use windlass_api::{Answer, CallId, Envelope, Event, SessionId, UserReply, Waiting};

use crate::app::{ServerPorts, lock};
use crate::questions::OpenQuestion;

/// Attempts to pass on an answer: the call may not wait yet when its request is seen.
const ATTEMPTS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(20);

/// The request that a person saw and allowed, without the id of its call. A request that differs in anything, such as
/// a reason that names more access, is asked about again.
#[derive(Debug, Clone, PartialEq)]
struct Shown(Event);

impl Shown {
    fn of(event: &Event) -> Option<(Self, CallId)> {
        let mut shown = event.clone();
        match &mut shown {
            Event::Waiting(Waiting::PermissionRequest { call_id, .. }) => {
                let call = std::mem::replace(call_id, CallId::from(String::new()));
                Some((Self(shown), call))
            }
            _ => None,
        }
    }

    /// Returns the tool and what it is about.
    fn text(&self) -> String {
        match &self.0 {
            Event::Waiting(Waiting::PermissionRequest { tool, subjects, .. }) if subjects.is_empty() => {
                tool.clone()
            }
            Event::Waiting(Waiting::PermissionRequest { tool, subjects, .. }) => {
                format!("{tool} {}", subjects.join(", "))
            }
            _ => String::new(),
        }
    }
}

/// Answers that wait for their call to be asked about again.
#[derive(Default)]
pub(crate) struct Carried(Mutex<HashMap<SessionId, (Shown, Answer)>>);

impl Carried {
    /// Keeps an answer for the session's next turn. Returns the text that continues the work.
    pub(crate) fn keep(
        &self,
        session: &SessionId,
        question: &OpenQuestion,
        reply: UserReply,
    ) -> Option<String> {
        match reply {
            UserReply::Text(text) => {
                let asked = question.question().unwrap_or_default();
                Some(format!("My answer to your question “{asked}”: {text}"))
            }
            UserReply::Permission(Answer::No) => None,
            UserReply::Permission(Answer::NoBecause(note)) => Some(note),
            UserReply::Permission(answer) => {
                let (shown, _) = Shown::of(&question.request)?;
                let what = shown.text();
                lock(&self.0).insert(session.clone(), (shown, answer));
                Some(format!(
                    "Go on. The program was stopped while it waited for my approval, which I give now: {what}"
                ))
            }
        }
    }

    /// Answers a request that a person has answered before.
    pub(crate) fn hear(&self, ports: &ServerPorts, envelope: &Envelope) {
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
        reply_soon(ports, session, &call, UserReply::Permission(answer));
    }
}

/// Answers a call as soon as it waits for the answer.
pub(crate) fn reply_soon(ports: &ServerPorts, session: &SessionId, call: &CallId, reply: UserReply) {
    let (ports, session, call) = (ports.clone(), session.clone(), call.clone());
    tokio::spawn(async move {
        for _ in 0..ATTEMPTS {
            if ports.backend.reply(&session, &call, reply.clone()).await {
                return;
            }
            ports.clock.sleep(BETWEEN).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use windlass_core::tool::Category;

    use super::*;

    /// SRV-2, SAFE-6: an answer is carried to the same request only: another call id is the same, more access is not.
    #[test]
    fn only_the_same_request_is_answered() {
        let request = |call: &str, reason: &str| {
            Event::Waiting(Waiting::PermissionRequest {
                call_id: CallId::from(call.to_owned()),
                tool: "bash".to_owned(),
                category: Category::Admin,
                subjects: vec!["make".to_owned()],
                reasons: vec![reason.to_owned()],
                preview: Some("$ make".to_owned()),
                once_only: false,
                agent: None,
            })
        };
        let shown = |event: &Event| Shown::of(event).map(|(shown, _)| shown);
        let first = shown(&request("a", "it writes"));
        assert_eq!(first, shown(&request("b", "it writes")));
        assert_ne!(first, shown(&request("b", "it reaches the network")));
        assert_eq!(first.map(|shown| shown.text()), Some("bash make".to_owned()));
    }
}
