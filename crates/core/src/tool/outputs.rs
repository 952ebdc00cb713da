//! Storage of outputs that are too long for the context, so that they remain readable.

use async_trait::async_trait;

use crate::id::CallId;

/// The tool that reads stored [`Outputs`]. Its own results are never stored.
pub const TOOL_OUTPUT: &str = "tool_output";

/// The tool that reads back verbatim the content that a compaction removed from a conversation.
pub const RECALL: &str = "recall";

/// Stores whole outputs, so that a model can be shown short ones.
#[async_trait]
pub trait Outputs: Send + Sync {
    /// Stores `content` and returns the short reference that [`TOOL_OUTPUT`] takes. Returns `None` if it cannot be stored:
    /// a full disk must not cost the call its result. Must not block the thread.
    async fn keep(&self, call: &CallId, tool: &str, content: &str) -> Option<String>;
}

/// Location of a whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Reference that [`TOOL_OUTPUT`] takes.
    pub id: String,
    /// Number of characters of the output.
    pub characters: usize,
    /// True if the stored output is complete: an output may be too long for any store.
    pub whole: bool,
}
