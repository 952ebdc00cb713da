//! Strict request validation: rejects every request that the real services reject.
//!
//! The validator is an independent implementation of the four request formats and shares no code with the
//! client side, so that a mistake made there is not repeated here.

mod anthropic;
mod chat;
mod fields;
mod gemini;
mod responses;
mod tools;

use std::fmt;

pub(crate) use self::gemini::with_documented_names;

use serde_json::Value;

use crate::wire::Protocol;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Path of the offending value, such as `messages.3.content.0.text`.
    pub path: String,
    /// Description of the problem.
    pub message: String,
}

impl Violation {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for Violation {}

/// Checks a request of any wire.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn check(wire: Protocol, body: &Value) -> Result<(), Violation> {
    match wire {
        Protocol::Anthropic => anthropic(body),
        Protocol::Chat => chat(body),
        Protocol::Responses => responses(body),
        Protocol::Gemini => gemini(body),
    }
}

/// Checks an Anthropic Messages request.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn anthropic(body: &Value) -> Result<(), Violation> {
    anthropic::check(body, false)
}

/// Checks an Anthropic Messages request whose headers ask for these beta features.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn anthropic_with_betas(body: &Value, betas: &str) -> Result<(), Violation> {
    let mut names = betas.split(',').map(str::trim);
    anthropic::check(
        body,
        names.any(|name| name.starts_with(anthropic::SYSTEM_MESSAGES)),
    )
}

/// Checks an OpenAI Chat Completions request.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn chat(body: &Value) -> Result<(), Violation> {
    chat::check(body)
}

/// Checks an OpenAI Responses request.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn responses(body: &Value) -> Result<(), Violation> {
    responses::check(body)
}

/// Checks a request of Gemini's own API.
///
/// # Errors
///
/// Returns the first broken rule.
pub fn gemini(body: &Value) -> Result<(), Violation> {
    gemini::check(body)
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
