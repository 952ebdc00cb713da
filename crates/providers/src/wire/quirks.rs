//! Differences between the vendors of one wire.

/// Deviations of one vendor. The default follows the wire's own documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// Header that carries the key.
    pub auth: AuthStyle,
    /// Name of the output limit on the chat wire.
    pub max_tokens: MaxTokensField,
    /// Kind of reasoning the chat wire wants back with its reply.
    pub echo: ReasoningEcho,
    /// Set if requests carry a session key, which routes them to the same warm cache.
    pub cache_key: bool,
    /// Set if call ids must be exactly nine letters and digits.
    pub short_call_ids: bool,
    /// Set if the vendor refuses requests for usage in a stream (it usually sends the usage anyway).
    pub no_stream_options: bool,
    /// Set if the vendor takes only words as the tool choice, so that one tool cannot be named.
    pub plain_tool_choice: bool,
}

/// Header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthStyle {
    /// The header of the wire's own vendor.
    #[default]
    Wire,
    /// `Authorization: Bearer …`.
    Bearer,
    /// `x-api-key: …`.
    ApiKey,
}

/// Name of the output limit on the chat wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server accepts.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models require.
    MaxCompletionTokens,
}

/// Kind of reasoning the chat wire wants back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningEcho {
    /// None; most servers refuse or ignore it.
    #[default]
    None,
    /// The `reasoning_content` text.
    Content,
    /// The `reasoning_details` list.
    Details,
}

/// Reasoning effort requested of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Little reasoning.
    Low,
    /// Moderate reasoning.
    Medium,
    /// Extensive reasoning.
    High,
}

impl Effort {
    /// Returns the name used in settings and on the OpenAI wires.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the effort called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High]
            .into_iter()
            .find(|effort| effort.name() == name)
    }

    /// Returns the thinking budget in tokens, for wires that want a number.
    pub(crate) const fn budget(self) -> u64 {
        match self {
            Self::Low => 4096,
            Self::Medium => 16_384,
            Self::High => 32_768,
        }
    }
}
