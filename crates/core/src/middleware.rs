//! Steps around every iteration: limits, compaction, whatever an embedder adds.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::message::Message;
use crate::model::{Model, Usage};
use crate::provider::Prefix;

/// What a middleware sees of the turn.
#[derive(Debug, Clone, Copy)]
pub struct IterationView<'a> {
    /// The conversation so far.
    pub history: &'a [Arc<Message>],
    /// The iteration, from 1.
    pub iteration: u32,
    /// What the last model call used.
    pub last_usage: Option<Usage>,
    /// US dollars of this turn so far.
    pub cost_usd: f64,
    /// The model.
    pub model: &'a Model,
    /// System prompt and tools.
    pub prefix: &'a Prefix,
}

/// How far the context is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// By what costs nothing and is ready. Nothing is said when there is nothing.
    Soft,
    /// By whatever it takes.
    Hard,
}

/// A wish for a smaller context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrink {
    /// How far.
    pub depth: Depth,
    /// The tokens of the conversation to get under, without the system prompt and the tools; `None` leaves the choice to
    /// the compactor.
    pub target: Option<u64>,
}

impl Shrink {
    /// By whatever it takes, to whatever is sensible.
    pub const HARD: Self = Self {
        depth: Depth::Hard,
        target: None,
    };
}

/// What should happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Go on.
    #[default]
    Continue,
    /// Make the context smaller, then go on.
    Compact(Shrink),
    /// End the turn.
    Stop,
}

/// A middleware's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// What should happen next.
    pub flow: Flow,
    /// Why, for people.
    pub reason: String,
    /// Anything else, for programs.
    pub metadata: Map<String, Value>,
}

impl Verdict {
    /// Go on.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Make the context smaller, by whatever it takes.
    pub fn compact(reason: impl Into<String>) -> Self {
        Self::shrink(reason, Shrink::HARD)
    }

    /// Make the context smaller, so far.
    pub fn shrink(reason: impl Into<String>, shrink: Shrink) -> Self {
        Self {
            flow: Flow::Compact(shrink),
            reason: reason.into(),
            metadata: Map::new(),
        }
    }

    /// End the turn.
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
    /// Called before the model is asked.
    async fn before_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }

    /// Called when an iteration has ended.
    async fn after_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }
}

/// Where in an iteration the pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before the model is asked.
    Before,
    /// After the iteration.
    After,
}
