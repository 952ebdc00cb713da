//! How a turn ends.

use std::sync::Arc;

use crate::event::{Event, FailureKind};
use crate::message::{FinishReason, Message};
use crate::model::Usage;

/// How a turn ended. Each variant is one terminal event.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With an answer.
    Answered(Answered),
    /// The user stopped it.
    Canceled,
    /// Without an answer.
    Failed(Failure),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The text.
    pub text: String,
    /// `end_turn`, or `max_iterations` when the limit forced it.
    pub finish: FinishReason,
    /// Whether a tool declared the work done.
    pub done: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For programs.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The finish reason of the turn.
    pub finish: FinishReason,
}

/// What a turn came to.
#[derive(Debug, Clone)]
pub struct TurnReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The conversation, all of this turn included.
    pub history: Vec<Arc<Message>>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// US dollars, when the model's prices are known.
    pub cost_usd: Option<f64>,
    /// Iterations begun.
    pub iterations: u32,
    /// How full the context was, and what was done about it.
    pub context: ContextMetrics,
    /// Facts that hooks add at the end of the turn, to be recorded before its terminal event.
    pub facts: Vec<Event>,
}

/// CTX-13: figures about the context of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextMetrics {
    /// The model's window.
    pub context_max_tokens: u64,
    /// Tokens of the conversation before the last compaction; 0 when there was none.
    pub compaction_last_before: u64,
    /// Tokens of the conversation after it.
    pub compaction_last_after: u64,
    /// When it was, in milliseconds since the Unix epoch; 0 when there was none.
    pub compaction_last_at_ms: u64,
    /// CTX-6: how many places of the history were repaired for the last request.
    pub repairs: u64,
}

impl Outcome {
    /// The terminal event.
    pub fn event(&self) -> Event {
        match self {
            Self::Answered(answered) => Event::Final {
                content: answered.text.clone(),
                finish: answered.finish,
            },
            Self::Canceled => Event::Canceled {
                message: "Canceled by the user.".to_owned(),
            },
            Self::Failed(failure) => Event::Failed {
                reason: failure.kind,
                message: failure.message.clone(),
                hint: failure.hint.clone(),
                finish: failure.finish,
            },
        }
    }
}
