//! The four wires and the error shapes they use.

use std::fmt;

use serde_json::{Value, json};

/// One of the four request formats the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST /v1/messages`, the Anthropic Messages API.
    Anthropic,
    /// `POST /v1/chat/completions`, the OpenAI Chat Completions API.
    Chat,
    /// `POST /v1/responses`, the OpenAI Responses API.
    Responses,
    /// `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, Gemini's own API.
    Gemini,
}

impl Protocol {
    /// Returns the name used in scripts, in the request log and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the wire with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini]
            .into_iter()
            .find(|wire| wire.name() == name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// An error response before it is encoded for a wire.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error_type: Option<String>,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            error_type: None,
            message: message.into(),
            param: None,
        }
    }

    /// Returns the body in the wire's own error shape.
    pub(crate) fn body(&self, wire: Protocol, request_id: &str) -> Value {
        let kind = self
            .error_type
            .clone()
            .unwrap_or_else(|| default_type(wire, self.status).to_owned());
        match wire {
            Protocol::Anthropic => json!({
                "type": "error",
                "error": {"type": kind, "message": self.message},
                "request_id": request_id,
            }),
            Protocol::Gemini => json!({"error": {
                "code": self.status,
                "message": self.message,
                "status": kind,
            }}),
            Protocol::Chat | Protocol::Responses => json!({"error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": default_code(self.status),
            }}),
        }
    }
}

/// Returns the error type each vendor documents for a status.
fn default_type(wire: Protocol, status: u16) -> &'static str {
    match (wire, status) {
        (Protocol::Anthropic, 401) => "authentication_error",
        (Protocol::Anthropic, 402) => "billing_error",
        (Protocol::Anthropic, 403) => "permission_error",
        (Protocol::Anthropic, 404) => "not_found_error",
        (Protocol::Anthropic, 413) => "request_too_large",
        (Protocol::Anthropic, 429) => "rate_limit_error",
        (Protocol::Anthropic, 504) => "timeout_error",
        (Protocol::Anthropic, 529) => "overloaded_error",
        (Protocol::Anthropic, 500..) => "api_error",
        (Protocol::Gemini, 401) => "UNAUTHENTICATED",
        (Protocol::Gemini, 403) => "PERMISSION_DENIED",
        (Protocol::Gemini, 404) => "NOT_FOUND",
        (Protocol::Gemini, 429) => "RESOURCE_EXHAUSTED",
        (Protocol::Gemini, 503 | 529) => "UNAVAILABLE",
        (Protocol::Gemini, 504) => "DEADLINE_EXCEEDED",
        (Protocol::Gemini, 500..) => "INTERNAL",
        (Protocol::Gemini, _) => "INVALID_ARGUMENT",
        (Protocol::Chat | Protocol::Responses, 429) => "rate_limit_error",
        (Protocol::Chat | Protocol::Responses, 500..) => "server_error",
        _ => "invalid_request_error",
    }
}

fn default_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        404 => Some("model_not_found"),
        429 => Some("rate_limit_exceeded"),
        500.. => Some("server_error"),
        _ => None,
    }
}
