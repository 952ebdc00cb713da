//! Maps failures of every wire to a [`ProviderErrorKind`], which decides whether to retry, compact, ask or
//! stop.

mod said;

use std::time::Duration;

use windlass_core::provider::{ProviderError, ProviderErrorKind};

use self::said::Said;
use crate::sse::SseError;

/// Status and headers of an HTTP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// Set when the provider asks not to retry the request.
    pub(crate) final_word: bool,
}

/// Builds the error for an HTTP error response.
pub(crate) fn from_answer(answer: Answer, body: &str) -> ProviderError {
    let said = Said::read(body);
    let mut error = classify(Some(answer.status), &said);
    if error.message.is_empty() {
        error.message = format!("the provider returned status {}", answer.status);
    }
    error.status = Some(answer.status);
    error.retry_after = answer.retry_after;
    error.retryable &= !answer.final_word;
    error
}

/// Builds the error for an error event inside a stream.
pub(crate) fn from_event(data: &str) -> ProviderError {
    let said = Said::read(data);
    let mut error = classify(said.status, &said);
    if error.message.is_empty() {
        "the provider aborted the reply without giving a reason".clone_into(&mut error.message);
    }
    error
}

/// Builds the error for a complete response that is not a reply: either an error body sent with a success
/// status, or something else entirely.
pub(crate) fn not_a_reply(body: &str) -> ProviderError {
    let said = Said::read(body);
    if said.is_error {
        return classify(said.status, &said);
    }
    let start: String = body.chars().take(200).collect();
    let mut error = ProviderError::new(
        ProviderErrorKind::Provider,
        format!("the response is not a reply: {start}"),
    );
    error.retryable = false;
    error.with_hint("check that base_url points to the API")
}

/// Builds the error for an event that cannot be parsed.
pub(crate) fn not_json(data: &str) -> ProviderError {
    let start: String = data.chars().take(200).collect();
    ProviderError::new(
        ProviderErrorKind::Provider,
        format!("the provider sent an invalid event: {start}"),
    )
}

/// Builds the error for a stream that stopped before its last event.
pub(crate) fn ended_early() -> ProviderError {
    ProviderError::new(ProviderErrorKind::Network, "stream ended early")
}

/// Builds the error for a request the caller canceled.
pub(crate) fn canceled() -> ProviderError {
    let mut error = ProviderError::new(ProviderErrorKind::Network, "canceled");
    error.retryable = false;
    error
}

/// Builds the error for bytes that are not text, or too many of them. Bytes that are not text may be a fault
/// of the network, but a reply that is too long would be no shorter the next time.
pub(crate) fn from_sse(error: SseError) -> ProviderError {
    let is_passing = matches!(error, SseError::NotText);
    let mut error = ProviderError::new(ProviderErrorKind::Provider, error.to_string());
    error.retryable = is_passing;
    error
}

/// Builds the error for a reply in which two blocks have the same place, so that nobody can tell which of them
/// the rest belongs to. No call of such a reply may run.
pub(crate) fn ambiguous(place: u64) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Provider,
        format!("the provider started two blocks at index {place} of the reply"),
    )
}

fn classify(status: Option<u16>, said: &Said) -> ProviderError {
    use ProviderErrorKind as Kind;
    let kind = match status {
        _ if said.says(OVERFLOW) => Kind::ContextOverflow,
        _ if said.says(SPENT) => Kind::Quota,
        _ if said.says(POLICY) => Kind::ContentPolicy,
        Some(402) => Kind::Quota,
        Some(401 | 403) => Kind::Auth,
        Some(408) => Kind::Network,
        Some(409) => Kind::Provider,
        Some(429) => Kind::RateLimit,
        Some(529) => Kind::Overloaded,
        Some(500..) if said.says(OVERLOADED) => Kind::Overloaded,
        Some(500..) => Kind::Provider,
        Some(400..) => Kind::InvalidRequest,
        _ if said.says(OVERLOADED) => Kind::Overloaded,
        _ if said.says(LIMITED) => Kind::RateLimit,
        _ if said.says(AUTH) => Kind::Auth,
        _ if said.says(INVALID) => Kind::InvalidRequest,
        _ => Kind::Provider,
    };
    ProviderError::new(kind, said.message.clone())
}

/// Lowercase markers that identify an error kind. A code must match completely, a message only in part.
struct Signs {
    codes: &'static [&'static str],
    phrases: &'static [&'static str],
}

const OVERFLOW: &Signs = &Signs {
    codes: &[
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
    ],
    phrases: &[
        "prompt is too long",
        "input is too long",
        "maximum context length",
        "context length exceeded",
        "exceeds the context window",
        "exceed context limit",
        "exceeds the available context size",
        "exceeds the model's context",
        "exceeds the maximum number of tokens",
        "exceeds maximum context",
        "larger than the maximum context",
        "context window exceeded",
        "maximum prompt length",
        "reduce the length of the messages",
        "too large for model with",
        "greater than the context length",
    ],
};

const SPENT: &Signs = &Signs {
    codes: &[
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "insufficient_credits",
    ],
    phrases: &[
        "credit balance is too low",
        "insufficient balance",
        "exceeded your current quota",
        "enforced_spend_limit_reached",
        "spend limit",
        "spending limit",
        "insufficient credits",
        "requires more credits",
    ],
};

const POLICY: &Signs = &Signs {
    codes: &[
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "prompt_blocked",
    ],
    phrases: &[
        "content management policy",
        "content filtering policy",
        "violates our usage policies",
    ],
};

const OVERLOADED: &Signs = &Signs {
    codes: &[
        "overloaded_error",
        "server_is_overloaded",
        "slow_down",
        "unavailable",
    ],
    phrases: &["overloaded", "at capacity"],
};

const LIMITED: &Signs = &Signs {
    codes: &[
        "rate_limit_error",
        "rate_limit_exceeded",
        "too_many_requests",
        "resource_exhausted",
    ],
    phrases: &["rate limit"],
};

const AUTH: &Signs = &Signs {
    codes: &[
        "authentication_error",
        "permission_error",
        "permission_denied",
        "invalid_api_key",
        "unauthenticated",
    ],
    phrases: &[],
};

const INVALID: &Signs = &Signs {
    codes: &[
        "invalid_request_error",
        "invalid_argument",
        "not_found_error",
        "not_found",
        "model_not_found",
        "request_too_large",
    ],
    phrases: &[],
};

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
