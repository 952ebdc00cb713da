//! Outcome of a turn.

use std::sync::Arc;
use std::time::Duration;

use crate::event::{Event, FailureKind};
use crate::message::{FinishReason, Message};
use crate::model::Usage;

/// Outcome of a turn. Each variant is one terminal event.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With an answer.
    Answered(Answered),
    /// The user stopped it.
    Canceled,
    /// Without an answer.
    Failed(Failure),
}

impl Outcome {
    /// Returns true if the turn ended because something could not be recorded.
    pub fn is_unrecorded(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.kind == FailureKind::Log)
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The text.
    pub text: String,
    /// `end_turn`, or `max_iterations` when the limit forced it.
    pub finish: FinishReason,
    /// True if a tool declared the work done.
    pub done: bool,
}

/// Reason there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of failure, for programs.
    pub kind: FailureKind,
    /// Message for people.
    pub message: String,
    /// Suggested fix.
    pub hint: Option<String>,
    /// The finish reason of the turn.
    pub finish: FinishReason,
    /// Delay after which the provider accepts requests again, if it named one.
    pub retry_after: Option<Duration>,
}

/// Report of a turn.
#[derive(Debug, Clone)]
pub struct TurnReport {
    /// Outcome of the turn.
    pub outcome: Outcome,
    /// The conversation, including this turn.
    pub history: Vec<Arc<Message>>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Cost in US dollars, if the model's prices are known.
    pub cost_usd: Option<f64>,
    /// Number of iterations started.
    pub iterations: u32,
    /// Fill level of the context, and its compactions.
    pub context: ContextMetrics,
    /// Facts that hooks add at the end of the turn, to be recorded before its terminal event.
    pub facts: Vec<Event>,
}

/// CTX-13: figures about the context of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextMetrics {
    /// Context window of the model.
    pub context_max_tokens: u64,
    /// Tokens of the conversation before the last compaction; 0 if there was none.
    pub compaction_last_before: u64,
    /// Tokens of the conversation after it.
    pub compaction_last_after: u64,
    /// Time of the compaction, in milliseconds since the Unix epoch; 0 if there was none.
    pub compaction_last_at_ms: u64,
    /// CTX-6: number of places in the history that were repaired for the last request.
    pub repairs: u64,
}

impl Outcome {
    /// Returns the terminal event.
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
