//! The port to a model: a request goes in, a stream of events comes out and ends exactly once.

mod error;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::error::{ProviderError, ProviderErrorKind, Remedy};
use crate::id::{MessageId, SessionId};
use crate::message::{Memo, Message, Origin, Part};
use crate::model::{Model, Usage};
use crate::tool::ToolSpec;

/// A source of replies. The loop knows no provider but this.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The configured name, such as `anthropic` or `my-server`.
    fn name(&self) -> &str;

    /// The model it asks.
    fn model(&self) -> &Model;

    /// Streams a reply. Must not fail outside the stream, must end with exactly one
    /// [`ProviderEvent::Complete`] or [`ProviderEvent::Error`], and must stop soon after
    /// `request.cancel` fires, dropping the connection.
    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent>;

    /// The tool list in this provider's own form.
    fn convert_tools(&self, tools: &[ToolSpec]) -> Value;

    /// The request as it would be sent, and what each of its bytes is; `None` for a provider that sends none.
    fn layout(&self, _request: &Request) -> Option<Layout> {
        None
    }

    /// Sends without showing the stream, for titles and summaries.
    async fn send(&self, request: Request) -> Result<Completion, ProviderError> {
        let mut stream = self.stream(request);
        while let Some(event) = stream.next().await {
            match event {
                ProviderEvent::Complete(completion) => return Ok(*completion),
                ProviderEvent::Error(error) => return Err(error),
                _ => {}
            }
        }
        Err(ProviderError::new(
            ProviderErrorKind::Network,
            "the stream ended without a reply",
        ))
    }
}

/// One question to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// System prompt and tools: fixed for a turn and encoded once.
    pub prefix: Arc<Prefix>,
    /// The conversation, valid for any provider.
    pub messages: Vec<Arc<Message>>,
    /// Whether and which tools the model may call.
    pub tool_choice: ToolChoice,
    /// The most tokens of the reply; the model's own limit when `None`.
    pub max_output: Option<u64>,
    /// The session, which some providers use to route to a warm cache.
    pub session: SessionId,
    /// Ends the request.
    pub cancel: CancellationToken,
}

/// What stands before the messages of every request of a turn, byte-stable within it.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    /// The system prompt; may be empty.
    pub system: String,
    /// The tools, in a fixed order.
    pub tools: Vec<ToolSpec>,
    /// The wire bytes.
    pub memo: Memo,
}

/// Prefixes that sessions share: the same content is one value, encoded once.
#[derive(Debug, Default)]
pub struct Prefixes(Mutex<Vec<Weak<Prefix>>>);

impl Prefixes {
    /// The prefix that is the same, or this one.
    pub fn share(&self, prefix: Prefix) -> Arc<Prefix> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        let same = |known: &Arc<Prefix>| known.system == prefix.system && known.tools == prefix.tools;
        if let Some(found) = known.iter().filter_map(Weak::upgrade).find(same) {
            return found;
        }
        let shared = Arc::new(prefix);
        known.push(Arc::downgrade(&shared));
        shared
    }
}

/// A request as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its bytes.
    pub body: Bytes,
    /// What they are, in order and without a gap.
    pub spans: Vec<Span>,
}

/// Some bytes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Which.
    pub range: Range<usize>,
    /// What they are.
    pub of: SpanOf,
}

/// What bytes of a request are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanOf {
    /// Model, limits and options.
    Head,
    /// The system prompt.
    System,
    /// The tools.
    Tools,
    /// A message.
    Message(MessageId),
    /// What belongs to nothing else: brackets.
    Frame,
}

/// Whether the model may, must or must not call tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool may be called.
    None,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Tool(String),
}

/// What a provider says while it answers.
#[derive(Debug, Clone)]
pub enum ProviderEvent {
    /// A text block begins.
    ContentStart,
    /// A piece of text.
    ContentDelta(String),
    /// The text block ended.
    ContentStop,
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// A tool call begins.
    ToolUseStart {
        /// The provider's id of the call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolUseDelta {
        /// The call it belongs to.
        id: String,
        /// The piece, raw.
        json: String,
    },
    /// A call's arguments are whole.
    ToolUseStop {
        /// The call that ended.
        id: String,
    },
    /// The reply is whole. Last event.
    Complete(Box<Completion>),
    /// There will be no reply. Last event.
    Error(ProviderError),
    /// Something odd that did not stop the reply.
    Warning(String),
    /// The request failed and will be sent again.
    Retry(RetryNotice),
}

/// Tells that a request is sent again, and when.
#[derive(Debug, Clone)]
pub struct RetryNotice {
    /// Which retry this is, from 1.
    pub attempt: u32,
    /// How many there can be.
    pub max_attempts: u32,
    /// How long until it is sent.
    pub delay: Duration,
    /// What went wrong.
    pub error: ProviderError,
    /// True when parts of a reply were already shown: they are void, the reply starts over.
    pub discard: bool,
}

/// A whole reply.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The reply as parts, in the provider's order.
    pub parts: Vec<Part>,
    /// The reply as the provider's own items.
    pub origin: Option<Origin>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
    /// The model that answered, in the provider's words.
    pub model: String,
}

/// Why a reply ended, before the loop decides what that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Nothing left to say.
    EndTurn,
    /// Tools are asked for.
    ToolUse,
    /// Cut at the output limit.
    MaxTokens,
    /// Refused.
    Refusal,
    /// The provider paused a long reply: send it back to go on.
    Pause,
}
