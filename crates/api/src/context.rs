//! CTX-16: the content of the next request, span by span.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_core::provider::SpanOf;

use crate::{MessageId, Role};

/// The next request of a session, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextReport {
    /// Model of the request.
    pub model: String,
    /// Context window of the model in tokens; 0 if unknown.
    pub window: u64,
    /// Tokens of the last request, as the provider counted them; 0 before the first.
    pub used_tokens: u64,
    /// Size of the next request in bytes.
    pub bytes: usize,
    /// Approximate number of tokens of the next request.
    pub tokens: u64,
    /// Approximate cost of sending it in US dollars; `None` if prices are unknown.
    pub cost_usd: Option<f64>,
    /// All bytes of the request, in order.
    pub spans: Vec<ContextSpan>,
    /// Notices for the user that the next turn would not repeat.
    pub notices: Vec<String>,
}

/// A span of the next request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSpan {
    /// Origin of the span.
    pub origin: SpanOrigin,
    /// Author of the message, if the span is one.
    pub role: Option<Role>,
    /// Id of the message, if the span is one.
    pub message: Option<MessageId>,
    /// Short description.
    pub what: String,
    /// Number of bytes.
    pub bytes: usize,
    /// Approximate number of tokens.
    pub tokens: u64,
    /// Age in milliseconds; `None` for content that is generated for each request.
    pub age_ms: Option<u64>,
    /// True if the provider has probably cached the span.
    pub is_cached: bool,
    /// Cost of sending the span in US dollars; `None` if prices are unknown.
    pub cost_usd: Option<f64>,
}

/// Origin of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpanOrigin {
    /// Model, limits and options.
    Options,
    /// The system prompt.
    System,
    /// Names, descriptions and schemas of the tools.
    Tools,
    /// A message of the conversation.
    Message,
    /// Characters between the others.
    Frame,
}

impl From<&SpanOf> for SpanOrigin {
    fn from(of: &SpanOf) -> Self {
        match of {
            SpanOf::Head => Self::Options,
            SpanOf::System => Self::System,
            SpanOf::Tools => Self::Tools,
            SpanOf::Message(_) => Self::Message,
            SpanOf::Frame => Self::Frame,
        }
    }
}
