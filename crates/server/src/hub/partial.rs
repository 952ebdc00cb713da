//! The reply and the outputs that a session is receiving, put together from its live events.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_api::{CallId, DeltaKind, Event, Role, SessionEvent};

/// Longest text kept of a reply, in bytes; of a tool's output, the end is kept.
const REPLY: usize = 256 << 10;
const OUTPUT: usize = 16 << 10;

/// The reply and the outputs that are being received.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Partial {
    /// Text of the reply so far.
    pub(crate) text: String,
    /// Reasoning so far.
    pub(crate) thinking: String,
    /// Outputs of running calls so far; long ones without their beginning.
    pub(crate) outputs: BTreeMap<String, String>,
    /// Current activity.
    pub(crate) status: String,
}

impl Partial {
    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Delta { kind, text } => match kind {
                DeltaKind::Text => add(&mut self.text, text, REPLY),
                DeltaKind::Thinking => add(&mut self.thinking, text, REPLY),
                DeltaKind::ToolInput => {}
            },
            Event::ToolOutput { call_id, text } => {
                add(self.outputs.entry(call_id.to_string()).or_default(), text, OUTPUT);
            }
            Event::Status { text } => text.clone_into(&mut self.status),
            Event::Reasoning { .. } => self.thinking.clear(),
            Event::Text { .. } => self.text.clear(),
            Event::Retry { discard: true, .. } => self.reply_over(),
            Event::Session(SessionEvent::Moved { .. }) => *self = Self::default(),
            Event::Message { message } if message.role == Role::Assistant => self.reply_over(),
            Event::ToolResult { call_id, .. } | Event::StepComplete { call_id, .. } => {
                self.call_over(call_id);
            }
            event if event.is_terminal() => *self = Self::default(),
            _ => {}
        }
    }

    fn reply_over(&mut self) {
        self.text.clear();
        self.thinking.clear();
    }

    fn call_over(&mut self, call: &CallId) {
        self.outputs.remove(call.as_str());
    }
}

/// Adds to a text and keeps its end.
fn add(text: &mut String, piece: &str, most: usize) {
    text.push_str(piece);
    if text.len() > most {
        let mut cut = text.len() - most / 2;
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        text.drain(..cut);
    }
}
