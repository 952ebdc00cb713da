//! Outputs that are too long for the context and stay readable all the same.

use async_trait::async_trait;

use crate::id::CallId;

/// The tool that reads what [`Outputs`] keeps. Its own results are never kept.
pub const TOOL_OUTPUT: &str = "tool_output";

/// The tool that reads back, word for word, what a compaction took out of a conversation.
pub const RECALL: &str = "recall";

/// Stores whole outputs, so that a model can be shown short ones.
#[async_trait]
pub trait Outputs: Send + Sync {
    /// Stores `content` and returns the short reference that [`TOOL_OUTPUT`] takes. Returns `None` if it cannot be stored:
    /// a full disk must not cost the call its result. Must not block the thread.
    async fn keep(&self, call: &CallId, tool: &str, content: &str) -> Option<String>;
}

/// Where the whole of an output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The reference that [`TOOL_OUTPUT`] takes.
    pub id: String,
    /// How many characters the output had.
    pub characters: usize,
    /// Whether that is all of it: an output may be too long for every store.
    pub whole: bool,
}
