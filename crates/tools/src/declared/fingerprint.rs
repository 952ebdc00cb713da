//! What trust and grants are bound to.

use std::fmt;

use serde::Serialize;

use windlass_sandbox::sha256_hex;

/// Stands for definitions: the same for the same definitions in every run and on every machine, and a different one
/// as soon as anything in them differs. Comments and layout do not count; the order of tools and of parameters does,
/// because a model sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(super) fn of(value: &impl Serialize) -> Self {
        // Definitions are texts, numbers, lists and enums, which all can be written; should that ever fail, the
        // message is at least no fingerprint that anybody has trusted.
        let text = serde_json::to_string(value).unwrap_or_else(|error| format!("unwritable: {error}"));
        Self(sha256_hex(text.as_bytes()))
    }

    /// 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
