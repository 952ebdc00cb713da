//! SRV-2: answers to questions that outlived the process that asked them.
//!
//! The turn that asked is gone, so an answer starts a new one, in which the model continues. When the same call is asked
//! about again, the answer that a person gave to it is used: the same tool with the same effect, and nothing else.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use windlass_api::{Answer, CallId, Envelope, Event, SessionId, UserReply, Waiting};

use crate::app::{ServerPorts, lock};
use crate::questions::OpenQuestion;

/// Attempts to pass on an answer: the call may not wait yet when its request is seen, on a busy machine for long.
const ATTEMPTS: u32 = 1500;
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

/// An answer that waits for its call to be asked about again.
struct KeptAnswer {
    shown: Shown,
    answer: Answer,
    /// Number of the entry that asked. The turn that uses the answer starts after it.
    asked: u64,
    /// True once that turn has started; until then, the end of the interrupted turn may still come in.
    is_started: bool,
}

/// The answers of all sessions, at most one each.
#[derive(Default)]
pub(crate) struct Carried(Mutex<HashMap<SessionId, KeptAnswer>>);

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
                let kept = KeptAnswer {
                    shown,
                    answer,
                    asked: question.seq,
                    is_started: false,
                };
                lock(&self.0).insert(session.clone(), kept);
                Some(format!(
                    "Continue. Windlass stopped while it waited for my approval, which I give now: {what}"
                ))
            }
        }
    }

    /// Returns true if an answer is kept for the session, so that its events must be followed.
    pub(crate) fn waits(&self, session: &SessionId) -> bool {
        lock(&self.0).contains_key(session)
    }

    /// Drops the answer for a session whose turn cannot start.
    pub(crate) fn forget(&self, session: &SessionId) {
        lock(&self.0).remove(session);
    }

    /// Answers a request that a person has answered before.
    pub(crate) fn hear(&self, ports: &ServerPorts, envelope: &Envelope) {
        if let Some((call, answer)) = self.take(envelope) {
            reply_soon(ports, &envelope.session, &call, UserReply::Permission(answer));
        }
    }

    /// Takes the answer to a request, if there is one. The end of the turn that could have used it removes it.
    fn take(&self, envelope: &Envelope) -> Option<(CallId, Answer)> {
        let mut all = lock(&self.0);
        let kept = all.get_mut(&envelope.session)?;
        if matches!(envelope.event, Event::Start { .. }) && envelope.seq > kept.asked {
            kept.is_started = true;
        }
        if envelope.event.is_terminal() && kept.is_started {
            all.remove(&envelope.session);
            return None;
        }
        let (shown, call) = Shown::of(&envelope.event)?;
        if kept.shown != shown || envelope.seq <= kept.asked {
            return None;
        }
        let kept = all.remove(&envelope.session)?;
        Some((call, kept.answer))
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

    fn request(call: &str, reason: &str) -> Event {
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
    }

    /// SRV-2: the end of the interrupted turn, which may come in after the answer, does not take it away; the end of the
    /// turn that continues does.
    #[test]
    fn an_answer_waits_for_its_own_turn() {
        let session = SessionId::generate();
        let envelope = |seq, event| Envelope {
            v: 1,
            session: session.clone(),
            seq,
            event,
        };
        let start = || Event::Start {
            provider: "sim".to_owned(),
            model: "sim".to_owned(),
        };
        let ended = || Event::Canceled {
            message: String::new(),
        };
        let question = OpenQuestion {
            call: CallId::from("a".to_owned()),
            request: request("a", "it writes"),
            seq: 5,
            asked_at: Default::default(),
            is_interrupted: true,
        };
        let keep = || {
            let carried = Carried::default();
            let answer = UserReply::Permission(Answer::Once);
            assert!(carried.keep(&session, &question, answer).is_some());
            carried
        };
        let carried = keep();
        for event in [
            envelope(1, start()),
            envelope(5, request("a", "it writes")),
            envelope(6, ended()),
        ] {
            assert!(carried.take(&event).is_none(), "{event:?}");
        }
        assert!(carried.take(&envelope(8, start())).is_none());
        let taken = carried.take(&envelope(9, request("b", "it writes")));
        assert_eq!(taken.map(|(call, _)| call), Some(CallId::from("b".to_owned())));
        let carried = keep();
        for event in [
            envelope(8, start()),
            envelope(9, ended()),
            envelope(11, request("b", "it writes")),
        ] {
            assert!(carried.take(&event).is_none(), "{event:?}");
        }
    }

    /// SRV-2, SAFE-6: an answer is carried to the same request only: another call id is the same, more access is not.
    #[test]
    fn only_the_same_request_is_answered() {
        let shown = |event: &Event| Shown::of(event).map(|(shown, _)| shown);
        let first = shown(&request("a", "it writes"));
        assert_eq!(first, shown(&request("b", "it writes")));
        assert_ne!(first, shown(&request("b", "it reaches the network")));
        assert_eq!(first.map(|shown| shown.text()), Some("bash make".to_owned()));
    }
}
