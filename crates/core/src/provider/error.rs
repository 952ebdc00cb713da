//! Provider failures, normalized so that the kind determines the remedy.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A failed request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Normalized kind of the failure.
    pub kind: ProviderErrorKind,
    /// Error message of the provider.
    pub message: String,
    /// Suggested fix for the user.
    pub hint: Option<String>,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// Delay the provider asked for.
    pub retry_after: Option<Duration>,
    /// True if sending the same request again may help. Set from the kind, cleared if the provider says not
    /// to retry.
    pub retryable: bool,
}

/// Classes of failures, common to all wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderErrorKind {
    /// Too many requests for now.
    RateLimit,
    /// The account's quota or balance is spent.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The key is missing, invalid or lacks permission.
    Auth,
    /// The request, model or address is wrong.
    InvalidRequest,
    /// The conversation does not fit the model's window.
    ContextOverflow,
    /// The provider refused the content.
    ContentPolicy,
    /// The connection failed, broke or went silent.
    Network,
    /// The provider had an internal error.
    Provider,
}

/// Remedy for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Send the request again.
    Retry,
    /// Compact the context and send the request again.
    Compact,
    /// Give up and report to the user.
    Stop,
}

impl ProviderError {
    /// Creates an error of `kind` with the provider's message.
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

    /// Adds a suggested fix for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the remedy for the failure.
    pub fn remedy(&self) -> Remedy {
        match self.kind {
            ProviderErrorKind::ContextOverflow => Remedy::Compact,
            _ if self.retryable => Remedy::Retry,
            _ => Remedy::Stop,
        }
    }
}
