//! CTX-14: compares the cost of context strategies, without a model and without a network.
//!
//! A [`Session`] is a list of messages in order, either recorded ([`recorded`]) or generated ([`synthetic`]).
//! [`simulate`] runs it through a strategy: before each reply it builds the request as the loop would — with
//! the same pressure, compactor and repair — and measures it. The reply is then taken from the session. A
//! [`StrategyOutcome`] reports the requests that were sent; a [`Report`] compares the outcomes of all
//! strategies as a table, as JSON or as a plot.
//!
//! Real parts: everything in `windlass_core::compact`, the events a compaction records, and the content
//! `recall` reads back. Simulated: the model, which is replaced by a [`Summarizer`].
//!
//! [`MemoryReport`] runs sessions with memory and without: a [`Recall`] keeps each of them for the next.
//!
//! Deliberately absent: the expiry of a provider's cache, and the mistakes a model makes because it reads
//! less.

mod log;
mod memory;
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

pub use self::memory::{MemoryReport, MemoryRow, Recall};
pub use self::offline::Summarizer;
pub use self::plot::plot;
pub use self::recorded::recorded;
pub use self::report::{Report, ReportRow};
use self::walk::Walk;

/// A session to simulate.
#[derive(Debug, Clone)]
pub struct Session {
    /// Name in reports.
    pub name: String,
    /// System prompt and tools.
    pub prefix: Arc<Prefix>,
    /// Messages in order. A request was made before each reply.
    pub messages: Vec<Arc<Message>>,
    /// Facts that must be known, and at which reply.
    pub needs: Vec<Need>,
    /// Stretches of work that an agent with focus tools would have marked.
    pub stretches: Vec<Stretch>,
}

/// A fact that a reply depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Index of the reply.
    pub at: usize,
    /// The fact, as it appears in the messages.
    pub text: String,
    /// A word near the fact, by which it can be searched for.
    pub key: String,
    /// True if the user wrote the fact or it is an open item, so that it must never go out of sight. Other
    /// facts appeared in tool outputs.
    pub is_said: bool,
}

/// A stretch of work on one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Subject of the work.
    pub scope: String,
    /// Range of its messages; the first message and the one after the last are replies.
    pub range: Range<usize>,
}

/// Settings of a simulation, apart from the strategy.
#[derive(Clone)]
pub struct Experiment {
    /// Model whose window and prices apply.
    pub model: Model,
    /// Token counters.
    pub counters: Counters,
    /// Replacement for the model that a strategy asks.
    pub summarizer: Summarizer,
}

/// Outcome of one session with one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyOutcome {
    /// The strategy.
    pub strategy: Strategy,
    /// Requests of the session itself.
    pub requests: Vec<Sent>,
    /// Tokens of all requests, by price class.
    pub usage: Usage,
    /// Model calls made by the strategy.
    pub side: Side,
    /// Bytes of all requests of the session.
    pub bytes: u64,
    /// Bytes that were also at the start of the previous request.
    pub reused: u64,
    /// Availability of facts when they were needed.
    pub facts: Facts,
    /// Number of compactions.
    pub compactions: u64,
    /// Number of compactions without effect.
    pub failures: u64,
    /// Number of places that the repair before a request had to fix.
    pub repairs: u64,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Index of its reply in the session.
    pub at: usize,
    /// Tokens of the request.
    pub tokens: u64,
}

/// Model calls made by a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Side {
    /// Number of calls.
    pub requests: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

/// Availability of facts when they were needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Facts {
    /// Number of times a fact was needed that the user wrote or that was an open item.
    pub said: u64,
    /// Of those, facts that were in the request.
    pub said_in_sight: u64,
    /// Number of times a fact was needed that appeared in a tool output.
    pub shown: u64,
    /// Of those, facts that were in the request.
    pub shown_in_sight: u64,
    /// Facts that were not in the request, and that the agent found by trying references without knowing the
    /// right one.
    pub found: u64,
    /// Facts that were in the request or behind some reference in it, whether or not the agent would look
    /// there.
    pub readable: u64,
    /// Number of `recall` calls made while searching.
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

/// Runs a session through a strategy.
pub async fn simulate(session: &Session, strategy: Strategy, setup: &Experiment) -> StrategyOutcome {
    simulate_watched(session, strategy, setup, &mut |_| {}).await
}

/// Runs a session through a strategy, and shows each request as it would be sent.
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
