//! The wire formats: pure encoding and decoding, no IO.
//!
//! A wire turns a [`Request`](windlass_core::provider::Request) into a body ([`Encoder`]) and the bytes of a
//! response into provider events ([`ReplyDecoder`]). Differences between vendors of one wire are data:
//! [`Quirks`].

mod anthropic;
mod body;
mod chat;
mod content;
mod draft;
mod encoder;
mod gemini;
mod ids;
mod json;
mod quirks;
mod reply;
mod responses;

pub(crate) use self::body::Kept;
pub use self::encoder::Encoder;
pub use self::quirks::{AuthStyle, Effort, MaxTokensField, Quirks, ReasoningEcho};
pub use self::reply::ReplyDecoder;

/// Wire formats that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and the many servers that imitate it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini's `generateContent`.
    Gemini,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// Returns the name used in settings and in stored messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the wire called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
