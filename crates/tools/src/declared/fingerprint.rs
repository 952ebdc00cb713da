//! Identity of definitions, to which trust and grants are bound.

use std::fmt;

use serde::Serialize;

use windlass_sandbox::sha256_hex;

/// Identifies definitions: equal for the same definitions in every run and on every machine, and different as
/// soon as anything in them differs. Comments and layout do not count; the order of tools and of parameters
/// does, because the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(super) fn of(value: &impl Serialize) -> Self {
        // Definitions consist of texts, numbers, lists and enums, which can all be serialized. Should that
        // ever fail, the message is at least not a fingerprint that a user has trusted.
        let text = serde_json::to_string(value).unwrap_or_else(|error| format!("unwritable: {error}"));
        Self(sha256_hex(text.as_bytes()))
    }

    /// Returns 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
