//! Spans from the record of a session. Pure: the same entries give the same spans, whenever they are read.
//!
//! A turn is an `invoke_agent` span; its model requests (`chat`) and tool calls (`execute_tool`) are below it.
//! Only turns that have ended are included.

mod content;
mod turn;

use std::collections::HashSet;

use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, FailureKind};
use windlass_core::id::{CallId, MessageId, SessionId};
use windlass_core::log::Entry;
use windlass_core::message::{Message, Part, Role};

use self::turn::OpenTurn;
use crate::span::{SpanContext, TraceSpan, call_span, trace_id, turn_span};

/// Masks keys in a text.
pub type Redact = fn(&str) -> String;

/// The session whose spans are derived.
#[derive(Debug, Clone)]
pub struct TraceSubject {
    /// Its id.
    pub session: SessionId,
    /// Time of its creation. Turns of an earlier time were copied from another session.
    pub created_at: Timestamp,
    /// Name of the agent.
    pub agent: String,
    /// True to include messages, arguments and results.
    pub content: bool,
    /// Masks keys in texts.
    pub redact: Redact,
}

/// The spans of one turn. The first is the turn itself; traces and the parent of the first are not set yet.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnTrace {
    /// Message that started the turn.
    pub message: MessageId,
    /// Number of its last entry.
    pub last_seq: u64,
    /// The spans.
    pub spans: Vec<TraceSpan>,
}

impl TurnTrace {
    /// Returns the spans in their trace, below `parent` if there is one.
    pub fn placed(mut self, session: &SessionId, parent: Option<SpanContext>) -> Vec<TraceSpan> {
        let trace = trace_of(session, &self.message, parent);
        for span in &mut self.spans {
            span.context.trace = trace;
        }
        if let Some(turn) = self.spans.first_mut() {
            turn.parent = parent.map(|parent| parent.span);
        }
        self.spans
    }
}

/// Returns the place of a turn's span.
pub fn turn_context(session: &SessionId, message: &MessageId, parent: Option<SpanContext>) -> SpanContext {
    SpanContext {
        trace: trace_of(session, message, parent),
        span: turn_span(session, message),
    }
}

fn trace_of(session: &SessionId, message: &MessageId, parent: Option<SpanContext>) -> [u8; 16] {
    parent.map_or_else(|| trace_id(session, message), |parent| parent.trace)
}

/// Derives the spans of all turns in these entries that have ended. The first entry must not be in the middle
/// of a turn.
pub fn turns(subject: &TraceSubject, entries: &[Entry]) -> Vec<TurnTrace> {
    let mut turns = Vec::new();
    let mut inputs = Inputs::default();
    let mut open: Option<OpenTurn<'_>> = None;
    for entry in entries {
        match (&entry.event, &mut open) {
            (Event::Start { provider, model }, None) => {
                open = inputs
                    .turn()
                    .map(|(message, start)| OpenTurn::new(subject, message, start, (provider, model)))
                    .map(|turn| turn.sending(std::mem::take(&mut inputs.messages)));
            }
            (Event::Message { message }, None) if message.role == Role::User => {
                inputs.add(message, entry.time);
            }
            (event, None) if event.is_terminal() => {
                if let (Event::Failed { reason, message, .. }, Some((asked, start))) = (event, inputs.turn())
                {
                    // The turn could not start.
                    let turn = OpenTurn::new(subject, asked, start, ("", ""));
                    turns.push(turn.ended(entry, Some((failure(*reason), message))));
                }
                inputs = Inputs::default();
            }
            (event, Some(_)) if event.is_terminal() => {
                let error = match event {
                    Event::Failed { reason, message, .. } => Some((failure(*reason), message.as_str())),
                    Event::Canceled { message } => Some(("canceled".to_owned(), message.as_str())),
                    _ => None,
                };
                turns.extend(open.take().map(|turn| turn.ended(entry, error)));
                inputs = Inputs::default();
            }
            (_, Some(turn)) => turn.hear(entry),
            (_, None) => {}
        }
    }
    let copied = copied(subject, entries);
    turns.retain(|turn| !copied.contains(&turn.message));
    turns
}

/// Returns the span of the call that a sub-agent was started by, with the turn it belongs to: the last call of
/// this id in a reply that was recorded by then. The turn need not have ended.
pub fn caller(
    session: &SessionId,
    entries: &[Entry],
    call: Option<&CallId>,
    at: Timestamp,
) -> Option<(MessageId, [u8; 8])> {
    let mut inputs = Inputs::default();
    let mut turn = None;
    let mut found = None;
    for entry in entries.iter().take_while(|entry| entry.time <= at) {
        match &entry.event {
            Event::Message { message } if message.role == Role::User && turn.is_none() => {
                inputs.add(message, entry.time);
            }
            Event::Start { .. } => turn = inputs.turn().map(|(message, _)| message.clone()),
            Event::Message { message } if message.role == Role::Assistant => {
                let position = message.calls().position(|known| Some(&known.id) == call);
                let position = position.and_then(|position| u32::try_from(position + 1).ok());
                if let (Some(turn), Some(position)) = (&turn, position) {
                    found = Some((turn.clone(), call_span(session, message.id.as_str(), position)));
                }
            }
            event if event.is_terminal() => {
                turn = None;
                inputs = Inputs::default();
            }
            _ => {}
        }
    }
    found
}

/// Returns the messages that were copied from another session: they are older than this one.
fn copied<'a>(subject: &TraceSubject, entries: &'a [Entry]) -> HashSet<&'a MessageId> {
    let messages = entries.iter().filter_map(|entry| match &entry.event {
        Event::Message { message } if message.created_at < subject.created_at => Some(&message.id),
        _ => None,
    });
    messages.collect()
}

/// User messages since the last turn ended.
#[derive(Default)]
struct Inputs<'a> {
    first: Option<(&'a MessageId, u64)>,
    /// The last one with words of the user.
    own: Option<(&'a MessageId, u64)>,
    messages: Vec<&'a Message>,
}

impl<'a> Inputs<'a> {
    fn add(&mut self, message: &'a Message, time: Timestamp) {
        let is_own = |part: &Part| !matches!(part, Part::Context(_) | Part::Compaction(_));
        let this = (&message.id, time.0);
        self.first.get_or_insert(this);
        self.messages.push(message);
        if message.parts.iter().any(is_own) {
            self.own = Some(this);
        }
    }

    /// Returns the message that starts a turn now, and its time.
    fn turn(&self) -> Option<(&'a MessageId, u64)> {
        self.own.or(self.first)
    }
}

/// Returns the kind of a failure, as one word.
fn failure(kind: FailureKind) -> String {
    let name = match kind {
        FailureKind::Provider(kind) => serde_json::to_value(kind),
        other => serde_json::to_value(other),
    };
    match name {
        Ok(serde_json::Value::String(name)) => name,
        _ => "failed".to_owned(),
    }
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
