//! Port to a model: a request goes in, and a stream of events comes out and ends exactly once.

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

/// A source of replies. The loop uses providers only through this trait.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the configured name, such as `anthropic` or `my-server`.
    fn name(&self) -> &str;

    /// Returns the model that requests are sent to.
    fn model(&self) -> &Model;

    /// Streams a reply. Must not fail outside the stream, must end with exactly one
    /// [`ProviderEvent::Complete`] or [`ProviderEvent::Error`], and must stop soon after `request.cancel`
    /// fires, dropping the connection.
    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent>;

    /// Converts the tool list to this provider's format.
    fn convert_tools(&self, tools: &[ToolSpec]) -> Value;

    /// Returns the request as it would be sent, with the meaning of each of its bytes; `None` for a provider
    /// that sends no bytes.
    fn layout(&self, _request: &Request) -> Option<Layout> {
        None
    }

    /// Sends a request and returns the whole reply, for titles and summaries.
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

/// A request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// System prompt and tools, fixed for a turn and encoded once.
    pub prefix: Arc<Prefix>,
    /// Conversation, valid for any provider.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may or must call.
    pub tool_choice: ToolChoice,
    /// Maximum number of tokens of the reply; the model's own limit if `None`.
    pub max_output: Option<u64>,
    /// Session, which some providers use to route to a warm cache.
    pub session: SessionId,
    /// Cancels the request.
    pub cancel: CancellationToken,
}

/// Content that precedes the messages in every request of a turn, byte-stable within the turn.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    /// System prompt; may be empty.
    pub system: String,
    /// Tools, in a fixed order.
    pub tools: Vec<ToolSpec>,
    /// Encoded bytes.
    pub memo: Memo,
}

/// Prefixes shared by sessions: equal content is one value, encoded once.
#[derive(Debug, Default)]
pub struct Prefixes(Mutex<Vec<Weak<Prefix>>>);

impl Prefixes {
    /// Returns an existing equal prefix, or this one.
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
    /// Bytes of the request.
    pub body: Bytes,
    /// Spans that cover the bytes, in order and without gaps.
    pub spans: Vec<Span>,
}

/// A range of bytes in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Range of the bytes.
    pub range: Range<usize>,
    /// Meaning of the bytes.
    pub of: SpanOf,
}

/// Meaning of bytes in a request.
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
    /// Bytes that belong to nothing else, such as brackets.
    Frame,
}

/// Tool use that is allowed or required of the model.
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

/// Event of a streamed reply.
#[derive(Debug, Clone)]
pub enum ProviderEvent {
    /// A text block starts.
    ContentStart,
    /// A piece of text.
    ContentDelta(String),
    /// The text block ended.
    ContentStop,
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// A tool call starts.
    ToolUseStart {
        /// Id of the call, as assigned by the provider.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolUseDelta {
        /// Call the piece belongs to.
        id: String,
        /// Raw JSON of the piece.
        json: String,
    },
    /// The arguments of a call are complete.
    ToolUseStop {
        /// Call that ended.
        id: String,
    },
    /// The reply is complete. Last event.
    Complete(Box<Completion>),
    /// There will be no reply. Last event.
    Error(ProviderError),
    /// A problem that did not stop the reply.
    Warning(String),
    /// The request failed and will be sent again.
    Retry(RetryNotice),
}

/// Announces a retry of a request.
#[derive(Debug, Clone)]
pub struct RetryNotice {
    /// Number of this retry, starting at 1.
    pub attempt: u32,
    /// Maximum number of retries.
    pub max_attempts: u32,
    /// Delay before the retry.
    pub delay: Duration,
    /// Error that caused the retry.
    pub error: ProviderError,
    /// True if parts of a reply were already shown: they are void, and the reply starts over.
    pub discard: bool,
}

/// A complete reply.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Parts of the reply, in the provider's order.
    pub parts: Vec<Part>,
    /// The reply as the provider's own items.
    pub origin: Option<Origin>,
    /// Reason the reply ended.
    pub stop: StopReason,
    /// Tokens of the call.
    pub usage: Usage,
    /// Id of the model that answered, as the provider spells it.
    pub model: String,
}

/// Reason a reply ended, before the loop interprets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The reply is finished.
    EndTurn,
    /// The model calls tools.
    ToolUse,
    /// The reply was cut at the output limit.
    MaxTokens,
    /// The model refused.
    Refusal,
    /// The provider paused a long reply: send it back to continue.
    Pause,
}
