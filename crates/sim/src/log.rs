//! The request log.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::seen::Seen;
use crate::wire::Protocol;

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Protocol the request came over.
    pub wire: Protocol,
    /// Parsed body; null if bodies are not kept or the body was not JSON.
    pub body: Value,
    /// Bytes of the body; empty if bodies are not kept.
    pub raw: Bytes,
    /// Size of the body in bytes.
    pub bytes: usize,
    /// Headers, with secrets replaced.
    pub headers: Vec<(String, String)>,
    /// Content of the request; without its turns and system text if bodies are not kept.
    pub seen: Seen,
    /// Reason the request was refused, if it was.
    pub violation: Option<String>,
}

impl Logged {
    pub(crate) fn summary(&self) -> Value {
        json!({
            "wire": self.wire.name(),
            "valid": self.violation.is_none(),
            "violation": self.violation,
            "bytes": self.bytes,
            "turns": self.seen.turn_count,
            "outline": self.seen.outline(),
        })
    }
}

/// All requests since the server started.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    entries: Mutex<Vec<Logged>>,
}

impl RequestLog {
    pub(crate) fn push(&self, entry: Logged) {
        self.with(|entries| entries.push(entry));
    }

    pub(crate) fn all(&self) -> Vec<Logged> {
        self.with(|entries| entries.clone())
    }

    pub(crate) fn summaries(&self) -> Vec<Value> {
        self.with(|entries| entries.iter().map(Logged::summary).collect())
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.with(|entries| {
            entries
                .iter()
                .filter_map(|entry| entry.violation.clone())
                .collect()
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut Vec<Logged>) -> R) -> R {
        act(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
