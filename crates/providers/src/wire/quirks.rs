//! What vendors do differently within a wire.

/// The deviations of one vendor. The default is what the wire's own documentation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// How the key is sent.
    pub auth: AuthStyle,
    /// The name of the output limit on the chat wire.
    pub max_tokens: MaxTokensField,
    /// Which reasoning the chat wire wants back with the reply it belongs to.
    pub echo: ReasoningEcho,
    /// Routes requests of a session to the same warm cache.
    pub cache_key: bool,
    /// Call ids must be exactly nine letters and digits.
    pub short_call_ids: bool,
    /// Refuses to be asked for usage in a stream (and usually sends it anyway).
    pub no_stream_options: bool,
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthStyle {
    /// As the wire's own vendor does.
    #[default]
    Wire,
    /// `Authorization: Bearer …`.
    Bearer,
    /// `x-api-key: …`.
    ApiKey,
}

/// The name of the output limit on the chat wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models insist on.
    MaxCompletionTokens,
}

/// Which reasoning the chat wire wants back.
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

/// How hard a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// A little.
    Low,
    /// A fair amount.
    Medium,
    /// A lot.
    High,
}

impl Effort {
    /// The name in settings and on the OpenAI wires.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The effort of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High]
            .into_iter()
            .find(|effort| effort.name() == name)
    }

    /// The thinking budget in tokens, where a wire wants a number.
    pub(crate) const fn budget(self) -> u64 {
        match self {
            Self::Low => 4096,
            Self::Medium => 16_384,
            Self::High => 32_768,
        }
    }
}
