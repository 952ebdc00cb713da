//! Inputs that the driver feeds back to the machine.

use crate::clock::Timestamp;
use crate::message::{Message, ToolCall, ToolResult};
use crate::model::Usage;
use crate::provider::{ProviderError, StopReason};
use crate::tool::Charge;

/// Result of a model request. A failed stream is a result as well.
#[derive(Debug, Clone)]
pub enum ModelAnswer {
    /// The reply is whole.
    Complete {
        /// The reply, not yet marked as finished.
        message: Message,
        /// Reason the reply ended.
        stop: StopReason,
        /// Usage of the request.
        usage: Usage,
    },
    /// There will be no reply.
    Failed {
        /// Reason for the failure.
        error: ProviderError,
        /// The text that came before.
        partial: Option<Message>,
    },
    /// The user stopped it.
    Canceled {
        /// The text that came before.
        partial: Option<Message>,
    },
}

/// A call for the driver to handle.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The call.
    pub call: ToolCall,
    /// Answer with this instead of running it.
    pub refusal: Option<String>,
}

/// Results of the calls of one iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// One result per call, in call order.
    pub results: Vec<ToolResult>,
    /// Requests that the calls sent to the model.
    pub charges: Vec<Charge>,
    /// Set if the turn should end here.
    pub end: Option<SettledEnd>,
    /// Time at which the last call settled.
    pub now: Timestamp,
}

/// Reason the turn should end after these calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledEnd {
    /// The user stopped it.
    Canceled,
    /// A call was denied.
    Denied {
        /// Text that names the call and the reason.
        reason: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// A tool ended the turn with this answer.
    Finished(String),
}

/// Creates an error result with `text` for a call that did not run.
pub(crate) fn refused(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: text.to_owned(),
        metadata: None,
        is_error: true,
        images: Vec::new(),
    }
}
