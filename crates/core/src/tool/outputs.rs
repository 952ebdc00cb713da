//! Outputs that are too long for the context and stay readable all the same.

use crate::id::CallId;

/// The tool that reads what [`Outputs`] keeps. Its own results are never kept.
pub const TOOL_OUTPUT: &str = "tool_output";

/// The tool that reads back, word for word, what a compaction took out of a conversation.
pub const RECALL: &str = "recall";

/// Keeps whole outputs, so that what a model is shown may be short.
pub trait Outputs: Send + Sync {
    /// Keeps `content` and gives the short reference that [`TOOL_OUTPUT`] takes. `None` when it cannot be kept: a disk
    /// that is full must not cost the call its result. May block for as long as a file takes to be written.
    fn keep(&self, call: &CallId, tool: &str, content: &str) -> Option<String>;
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
