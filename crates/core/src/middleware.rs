//! Steps around every iteration: limits, compaction, and those of an embedder.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::message::Message;
use crate::model::{Model, Usage};
use crate::provider::Prefix;

/// State of the turn, as a middleware sees it.
#[derive(Debug, Clone, Copy)]
pub struct IterationView<'a> {
    /// The conversation so far.
    pub history: &'a [Arc<Message>],
    /// Number of the iteration, starting at 1.
    pub iteration: u32,
    /// Usage of the last model call.
    pub last_usage: Option<Usage>,
    /// Cost of this turn so far, in US dollars.
    pub cost_usd: f64,
    /// The model.
    pub model: &'a Model,
    /// System prompt and tools.
    pub prefix: &'a Prefix,
}

/// Depth of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only steps that are free and ready. Silent if there are none.
    Soft,
    /// All available steps.
    Hard,
    /// All available steps because the user asked for it, between two turns: nothing but the first message is
    /// protected, and the summary need not be shorter.
    Full,
}

/// A request to compact the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrink {
    /// Depth of the compaction.
    pub depth: Depth,
    /// Number of tokens of the conversation to get below, without the system prompt and the tools; `None`
    /// leaves the choice to the compactor.
    pub target: Option<u64>,
}

impl Shrink {
    /// Uses all available steps, with the compactor's own target.
    pub const HARD: Self = Self {
        depth: Depth::Hard,
        target: None,
    };

    /// Makes a summary in any case, with the compactor's own target.
    pub const FULL: Self = Self {
        depth: Depth::Full,
        target: None,
    };
}

/// Next step of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Continue.
    #[default]
    Continue,
    /// Compact the context, then continue.
    Compact(Shrink),
    /// End the turn.
    Stop,
    /// End the turn: a cost limit is reached.
    OverBudget,
}

/// A middleware's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Next step of the turn.
    pub flow: Flow,
    /// Reason, for people.
    pub reason: String,
    /// Additional data, for programs.
    pub metadata: Map<String, Value>,
}

impl Verdict {
    /// Continues the turn.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Compacts the context with all available steps.
    pub fn compact(reason: impl Into<String>) -> Self {
        Self::shrink(reason, Shrink::HARD)
    }

    /// Compacts the context as requested.
    pub fn shrink(reason: impl Into<String>, shrink: Shrink) -> Self {
        Self {
            flow: Flow::Compact(shrink),
            reason: reason.into(),
            metadata: Map::new(),
        }
    }

    /// Ends the turn because a cost limit is reached.
    pub fn over_budget(reason: impl Into<String>) -> Self {
        Self {
            flow: Flow::OverBudget,
            reason: reason.into(),
            metadata: Map::new(),
        }
    }

    /// Ends the turn.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self {
            flow: Flow::Stop,
            reason: reason.into(),
            metadata: Map::new(),
        }
    }
}

/// A step around every iteration. Its cost must not grow with the history.
#[async_trait]
pub trait Middleware: Send + Sync {
    /// Called before the model request.
    async fn before_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }

    /// Called after an iteration.
    async fn after_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }
}

/// Point of an iteration at which the pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before the model request.
    Before,
    /// After the iteration.
    After,
}
