//! Messages: the text, calls and results that a model reads and writes.

mod fragment;
mod memo;
mod part;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::fragment::{Fragment, FragmentSource, MAX_FRAGMENT, upgrade};
pub use self::memo::Memo;
pub use self::part::{
    Binary, Compaction, Compressed, Finish, FinishReason, ImageUrl, Part, Reasoning, Text, ToolCall,
    ToolResult,
};
use crate::clock::Timestamp;
use crate::id::{MessageId, SessionId};

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the runtime on the person's behalf.
    User,
    /// The model.
    Assistant,
    /// The instructions. Never part of a history: a request carries them beside the messages.
    System,
    /// The tools: one message holds the results of all calls of the assistant message before it.
    Tool,
}

/// One message of a session. Immutable once shared: a change is a new value with the same id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Id of the message.
    pub id: MessageId,
    /// Session the message belongs to.
    pub session_id: SessionId,
    /// Author of the message.
    pub role: Role,
    /// Content, in order.
    pub parts: Vec<Part>,
    /// The model that wrote it, for assistant messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The provider's reply, item by item, for sending back to the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The wire bytes of this message, kept so that it is encoded once.
    #[serde(skip)]
    pub memo: Memo,
}

/// The provider's own items of a reply, in their own order and form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The configured name of the provider.
    pub provider: String,
    /// The wire format the items are in.
    pub wire: String,
    /// The items, byte for byte where the wire allows it.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub items: Vec<Box<RawValue>>,
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.provider == other.provider
            && self.wire == other.wire
            && self
                .items
                .iter()
                .map(|item| item.get())
                .eq(other.items.iter().map(|item| item.get()))
    }
}

impl Message {
    /// Creates a message of `role` with `parts`, at the time `now`.
    pub fn new(session_id: &SessionId, role: Role, parts: Vec<Part>, now: Timestamp) -> Self {
        Self {
            id: MessageId::generate(),
            session_id: session_id.clone(),
            role,
            parts,
            model: None,
            created_at: now,
            updated_at: now,
            origin: None,
            memo: Memo::default(),
        }
    }

    /// Creates a user message with one text.
    pub fn user(session_id: &SessionId, text: impl Into<String>, now: Timestamp) -> Self {
        Self::new(session_id, Role::User, vec![Part::text(text)], now)
    }

    /// Returns true for a summary of earlier messages.
    pub fn is_summary(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Compaction(_)))
    }

    /// Returns all text parts, joined by line breaks.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the user's own words: the text parts, joined by line breaks. Injected text is not among them.
    pub fn user_text(&self) -> String {
        match self.role {
            Role::User => self.text(),
            _ => String::new(),
        }
    }

    /// Returns the fragments, in order.
    pub fn fragments(&self) -> impl Iterator<Item = &Fragment> {
        self.parts.iter().filter_map(|part| match part {
            Part::Context(fragment) => Some(fragment),
            _ => None,
        })
    }

    /// Returns the text of the first fragment of a source.
    pub fn fragment(&self, source: FragmentSource) -> Option<&str> {
        let mut fragments = self.fragments();
        let found = fragments.find(|fragment| fragment.source == source);
        found.map(|fragment| fragment.text.as_str())
    }

    /// Returns the tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the tool results, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Returns the reason the message ended, if it has ended.
    pub fn finish(&self) -> Option<FinishReason> {
        self.parts.iter().rev().find_map(|part| match part {
            Part::Finish(finish) => Some(finish.reason),
            _ => None,
        })
    }

    /// Returns the same message with another finish reason.
    #[must_use]
    pub fn finished(&self, reason: FinishReason, time: Timestamp) -> Self {
        let mut message = self.clone();
        message.parts.retain(|part| !matches!(part, Part::Finish(_)));
        message.parts.push(Part::Finish(Finish { reason, time }));
        message.updated_at = time;
        message
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
