//! Provider failures, normalized so that the kind says what to do.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A failed request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What went wrong, in our words.
    pub kind: ProviderErrorKind,
    /// What went wrong, in the provider's words.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether sending the same request again may help. Set from the kind, cleared when the provider
    /// says not to.
    pub retryable: bool,
}

/// The classes every wire's failures fall into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderErrorKind {
    /// Too many requests for now.
    RateLimit,
    /// The account's quota or balance is spent.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// The request, model or address is wrong.
    InvalidRequest,
    /// The conversation does not fit the model's window.
    ContextOverflow,
    /// The provider refused the content.
    ContentPolicy,
    /// The connection failed, broke or went silent.
    Network,
    /// The provider failed inside.
    Provider,
}

/// What a failure asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Send it again.
    Retry,
    /// Make the context smaller and send it again.
    Compact,
    /// Give up and tell the user.
    Stop,
}

impl ProviderError {
    /// An error of `kind` with the provider's message.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        use ProviderErrorKind::{Network, Overloaded, Provider, RateLimit};
        Self {
            kind,
            message: message.into(),
            hint: None,
            status: None,
            retry_after: None,
            retryable: matches!(kind, RateLimit | Overloaded | Network | Provider),
        }
    }

    /// The same error with what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the failure asks for.
    pub fn remedy(&self) -> Remedy {
        match self.kind {
            ProviderErrorKind::ContextOverflow => Remedy::Compact,
            _ if self.retryable => Remedy::Retry,
            _ => Remedy::Stop,
        }
    }
}
