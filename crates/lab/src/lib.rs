//! CTX-14: what each way of making a context smaller would have cost, found out without a model and without a network.
//!
//! A [`Session`] is what was said, in order: a recorded one ([`recorded`]) or one that was made up ([`synthetic`]).
//! [`simulate`] sends it through a strategy: before each reply the request is made as the loop would make it — the same
//! pressure, the same compactor, the same repair — and measured. The reply is then the one of the session. An [`StrategyOutcome`]
//! says what was sent; [`Report`] puts those of all strategies side by side, as a table, as JSON or as a plot.
//!
//! What is real: everything of `windlass_core::compact`, what a compaction records, and what `recall` reads back of it. What
//! is not: the model. [`Summarizer`] says what stands in for it.
//!
//! Deliberately absent: the time-out of a provider's cache, and the mistakes a model makes because it reads less.

mod log;
mod offline;
mod plot;
mod recorded;
mod report;
pub mod synthetic;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use windlass_api::{Message, Usage};
use windlass_core::compact::Strategy;
use windlass_core::model::Model;
use windlass_core::provider::Prefix;
use windlass_core::tokens::Counters;

pub use self::offline::Summarizer;
pub use self::plot::plot;
pub use self::recorded::recorded;
pub use self::report::{Report, ReportRow};
use self::walk::Walk;

/// A session as it is sent again.
#[derive(Debug, Clone)]
pub struct Session {
    /// What it is called in reports.
    pub name: String,
    /// System prompt and tools.
    pub prefix: Arc<Prefix>,
    /// What was said, in order. A request was made before each reply.
    pub messages: Vec<Arc<Message>>,
    /// What must be known, and when.
    pub needs: Vec<Need>,
    /// What an agent with focus tools would have marked.
    pub stretches: Vec<Stretch>,
}

/// A fact that a reply depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The place of the reply.
    pub at: usize,
    /// The fact, as it stands in what was said.
    pub text: String,
    /// A word beside it, by which it can be looked for.
    pub key: String,
    /// Whether the user said it or it stands open, so that it must never go out of sight. Other facts stood in outputs.
    pub is_said: bool,
}

/// A stretch of work on one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// What it is about.
    pub scope: String,
    /// Its messages; the first and the one after the last are replies.
    pub range: Range<usize>,
}

/// What sessions are sent through beside the strategy.
#[derive(Clone)]
pub struct Experiment {
    /// The model that would have been asked: its window and its prices count.
    pub model: Model,
    /// What tokens are counted with.
    pub counters: Counters,
    /// What stands in for a model where a strategy asks one.
    pub summarizer: Summarizer,
}

/// What came of one session with one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyOutcome {
    /// The strategy.
    pub strategy: Strategy,
    /// Each request of the session itself.
    pub requests: Vec<Sent>,
    /// Tokens of all requests, by how they are paid for.
    pub usage: Usage,
    /// What the strategy asked a model for by itself.
    pub side: Side,
    /// Bytes of all requests of the session.
    pub bytes: u64,
    /// Those that were the beginning of the request before as well.
    pub reused: u64,
    /// What became of facts when they were needed.
    pub facts: Facts,
    /// How often the history was made smaller.
    pub compactions: u64,
    /// How often that had no effect.
    pub failures: u64,
    /// Places that the repair before a request had to mend.
    pub repairs: u64,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The place of its reply in the session.
    pub at: usize,
    /// Its tokens.
    pub tokens: u64,
}

/// Model calls of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Side {
    /// How many.
    pub requests: u64,
    /// What they read.
    pub input: u64,
    /// What they wrote.
    pub output: u64,
}

/// What became of facts when they were needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Facts {
    /// How often something was needed that the user said or that stood open.
    pub said: u64,
    /// It was in the request.
    pub said_in_sight: u64,
    /// How often something was needed that stood in an output.
    pub shown: u64,
    /// It was in the request.
    pub shown_in_sight: u64,
    /// It was not, and the agent found it: it looked under references without knowing which is the right one.
    pub found: u64,
    /// It was in the request, or some reference in it leads to it, whether or not the agent would look there.
    pub readable: u64,
    /// Calls of `recall` that looking took.
    pub recalls: u64,
}

impl Facts {
    fn add(&mut self, other: &Self) {
        self.said += other.said;
        self.said_in_sight += other.said_in_sight;
        self.shown += other.shown;
        self.shown_in_sight += other.shown_in_sight;
        self.found += other.found;
        self.readable += other.readable;
        self.recalls += other.recalls;
    }
}

/// Sends a session through a strategy.
pub async fn simulate(session: &Session, strategy: Strategy, setup: &Experiment) -> StrategyOutcome {
    simulate_watched(session, strategy, setup, &mut |_| {}).await
}

/// The same, and shows each request as it would be sent.
pub async fn simulate_watched(
    session: &Session,
    strategy: Strategy,
    setup: &Experiment,
    watch: &mut (dyn FnMut(&[Arc<Message>]) + Send),
) -> StrategyOutcome {
    Box::pin(Walk::new(session, strategy, setup, watch).run()).await
}

#[cfg(test)]
#[path = "lab_tests.rs"]
mod tests;
