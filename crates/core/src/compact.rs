//! Context compaction: the port, the recorded events, and the strategies.
//!
//! [`Strategy`] names and builds the compactors. The module of each documents its origin and its invariants.
//! [`Pressure`] requests compaction when the context fills up.

mod deferred;
mod evict;
mod extract;
mod fidelity;
mod fit;
mod focus;
mod mask;
mod model_eviction;
mod pressure;
pub mod score;
mod strategy;
pub mod subgoal;
mod summarize;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

pub use self::deferred::{Deferred, PAIR_SUMMARY, PairSummaries, UsageReport};
pub use self::evict::Evict;
pub use self::extract::{Subgoals, extract};
pub use self::fidelity::{Fidelity, fidelity};
pub use self::focus::{CompleteFocus, Focus, FocusConfig, FocusState, StartFocus};
pub use self::mask::{Mask, without_outputs};
pub use self::model_eviction::{ModelEviction, SidequestTurns};
pub use self::pressure::Pressure;
pub use self::strategy::{InvalidStrategy, Parts, Strategy, validate};
pub use self::summarize::{NothingOpen, OpenFacts, Summarize};
use crate::clock::{Clock, Timestamp};
use crate::event::{Event, EventSink, SessionEvent};
use crate::hook::Hooks;
use crate::message::{Message, Part, Role};
use crate::middleware::{Depth, Shrink};
use crate::model::Usage;
use crate::provider::Provider;
use crate::run::{Config, Ports, warn};
use crate::tokens::{Estimate, Gauge, of_message};

/// Input of a compactor.
pub struct Job<'a> {
    /// The whole history.
    pub history: &'a [Arc<Message>],
    /// Model to summarize with.
    pub provider: &'a dyn Provider,
    /// Cancels the compaction.
    pub cancel: CancellationToken,
    /// Current time.
    pub now: Timestamp,
    /// Clock for timeouts.
    pub clock: Arc<dyn Clock>,
    /// Depth of the compaction.
    pub depth: Depth,
    /// Number of tokens to get below.
    pub target: u64,
    /// Extra instructions for a summary, from hooks.
    pub instructions: Vec<String>,
}

impl Job<'_> {
    /// Returns the same job for a different history.
    fn on<'b>(&'b self, history: &'b [Arc<Message>]) -> Job<'b> {
        Job {
            history,
            provider: self.provider,
            cancel: self.cancel.clone(),
            now: self.now,
            clock: Arc::clone(&self.clock),
            depth: self.depth,
            target: self.target,
            instructions: self.instructions.clone(),
        }
    }
}

/// Makes a history smaller. Must keep calls and results together, must not lose an earlier summary, and must
/// not change provider output: a message is either removed whole or left unchanged.
#[async_trait]
pub trait Compactor: Send + Sync {
    /// Returns the smaller history.
    ///
    /// # Errors
    /// The error's text explains to the user why nothing was compacted.
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError>;

    /// Returns the gauge used for counting, or `None` for an estimate.
    fn gauge(&self) -> Option<&Gauge> {
        None
    }
}

/// A smaller history, and the tokens spent on making it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compacted {
    /// The smaller history.
    pub history: Vec<Arc<Message>>,
    /// Tokens used by model calls, if there were any.
    pub usage: Option<Usage>,
    /// Notice to the user about how the history was compacted.
    pub notice: Option<String>,
    /// Comparison with the old history. Filled in by [`compact`].
    pub fidelity: Option<Fidelity>,
    /// Time of the compaction. Filled in by [`compact`].
    pub at: Timestamp,
}

impl Compacted {
    /// Creates a result that needed no model call.
    pub fn new(history: Vec<Arc<Message>>) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    /// Combines this result with the result of a `later` step that started from it.
    fn then(self, later: Self) -> Self {
        let usage = match (self.usage, later.usage) {
            (Some(mut first), Some(second)) => {
                first.add(&second);
                Some(first)
            }
            (first, second) => first.or(second),
        };
        let notice = match (self.notice, later.notice) {
            (Some(first), Some(second)) => Some(format!("{first}; {second}")),
            (first, second) => first.or(second),
        };
        Self {
            usage,
            notice,
            ..later
        }
    }
}

/// Reason a history was not compacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// There is nothing between the first message and the protected tail.
    #[error("there is nothing to summarize yet")]
    NothingToDo,
    /// The summary would not be smaller.
    #[error("the summary is not smaller than what it replaces")]
    NoGain,
    /// The model returned no summary.
    #[error("no summary was returned: {0}")]
    NoSummary(String),
}

/// The connections of a compaction.
pub struct CompactionPorts<'a> {
    /// The model that the history is for.
    pub provider: &'a dyn Provider,
    /// The strategy; `None` when compaction is off.
    pub compactor: Option<&'a dyn Compactor>,
    /// The hooks of the turn.
    pub hooks: &'a Hooks,
    /// Time.
    pub clock: &'a Arc<dyn Clock>,
    /// Receiver of the events.
    pub events: &'a dyn EventSink,
    /// Stops it.
    pub cancel: &'a CancellationToken,
}

impl<'a> CompactionPorts<'a> {
    /// The part of a turn's settings and connections that a compaction needs.
    pub fn new(config: &'a Config, ports: &'a Ports) -> Self {
        Self {
            provider: &*ports.provider,
            compactor: ports.compactor.as_deref(),
            hooks: &config.hooks,
            clock: &ports.clock,
            events: &*ports.events,
            cancel: &ports.cancel,
        }
    }
}

/// Runs the configured compactor for at most `limit` and records the result.
///
/// # Errors
/// Fails with a message for the user if nothing was compacted. The history is then unchanged.
pub async fn compact(
    deps: &CompactionPorts<'_>,
    history: &[Arc<Message>],
    shrink: Shrink,
    limit: Duration,
) -> Result<Compacted, String> {
    let compactor = deps.compactor.ok_or_else(|| "compaction is off".to_owned())?;
    let estimate = Gauge::default();
    let gauge = compactor.gauge().unwrap_or(&estimate);
    gauge.meant_for(deps.provider.model());
    let before = gauge.tokens(history);
    if shrink.depth != Depth::Soft {
        deps.events
            .live(Event::Session(SessionEvent::Compacting { before }));
    }
    let (instructions, warnings) = deps.hooks.before_compact(&**deps.clock, history).await;
    warn(deps.events, warnings).await;
    let instructions = instructions.map_err(|reason| format!("a hook blocked it: {reason}"))?;
    let job = Job {
        history,
        provider: deps.provider,
        cancel: deps.cancel.child_token(),
        now: deps.clock.now(),
        clock: Arc::clone(deps.clock),
        depth: shrink.depth,
        target: shrink
            .target
            .unwrap_or_else(|| sensible_target(before, deps.provider.model().context_window)),
        instructions,
    };
    let mut smaller = tokio::select! {
        biased;
        // The history is left unchanged; the next request notices the cancellation and ends the turn as
        // canceled.
        () = deps.cancel.cancelled() => return Ok(Compacted::new(history.to_vec())),
        result = compactor.compact(job) => result.map_err(|error| error.to_string())?,
        () = deps.clock.sleep(limit) => return Err(format!("it took longer than {} s", limit.as_secs())),
    };
    inject(deps, &mut smaller.history).await;
    let after = gauge.tokens(&smaller.history);
    if after >= before && shrink.depth != Depth::Full {
        return Err(CompactError::NoGain.to_string());
    }
    gauge.forget();
    let report = Fidelity {
        tokens_before: before,
        tokens_after: after,
        ..fidelity(history, &smaller.history)
    };
    let smaller = Compacted {
        fidelity: Some(report),
        at: deps.clock.now(),
        ..smaller
    };
    tell(deps, history, &smaller, report).await?;
    let text = format!("Compacting: {before}→{after} tokens");
    deps.events.live(Event::Status { text });
    let saved = before.saturating_sub(after);
    tracing::info!(tokens_before = before, tokens_after = after, saved, "compacted");
    Ok(smaller)
}

/// Adds the fragments of hooks to the newest summary. Without one nothing was lost that they could bring back.
async fn inject(deps: &CompactionPorts<'_>, history: &mut [Arc<Message>]) {
    let (fragments, warnings) = deps.hooks.after_compact(&**deps.clock, history).await;
    warn(deps.events, warnings).await;
    let has_summary = |message: &&mut Arc<Message>| {
        let mut parts = message.parts.iter();
        parts.any(|part| matches!(part, Part::Compaction(_)))
    };
    let Some(summary) = history
        .iter_mut()
        .rev()
        .find(has_summary)
        .filter(|_| !fragments.is_empty())
    else {
        return;
    };
    let mut message = Message::clone(summary);
    message.parts.extend(fragments.into_iter().map(Part::Context));
    *summary = Arc::new(message);
}

/// Default target: half of the current tokens, or less if the window requires it.
fn sensible_target(tokens: u64, window: u64) -> u64 {
    let half = tokens / 2;
    match window {
        0 => half,
        window => half.min(window / 10 * 6),
    }
}

/// Records the new and changed messages of the smaller history, and the list of its messages.
async fn tell(
    deps: &CompactionPorts<'_>,
    old: &[Arc<Message>],
    smaller: &Compacted,
    report: Fidelity,
) -> Result<(), String> {
    let mut events = changed(old, &smaller.history);
    events.push(Event::Session(SessionEvent::Compaction {
        before: report.tokens_before,
        after: report.tokens_after,
        history: smaller.history.iter().map(|message| message.id.clone()).collect(),
        fidelity: Some(report),
    }));
    events.extend(smaller.notice.iter().map(|notice| Event::Warning {
        message: format!("Compaction: {notice}."),
    }));
    for event in events {
        deps.events
            .record(event)
            .await
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Returns the messages of the new history that the old one does not contain unchanged.
fn changed(old: &[Arc<Message>], new: &[Arc<Message>]) -> Vec<Event> {
    let known: HashSet<_> = old.iter().map(Arc::as_ptr).collect();
    let changed = new
        .iter()
        .filter(|message| !known.contains(&Arc::as_ptr(message)));
    let event = |message: &Arc<Message>| Event::Message {
        message: Arc::clone(message),
    };
    changed.map(event).collect()
}

/// Index at which the kept tail starts, never between a call and its result.
fn tail_start(history: &[Arc<Message>], keep_recent: usize) -> usize {
    whole(history, history.len().saturating_sub(keep_recent))
}

/// Moves an index that points at a tool result back to the message with its call.
fn whole(history: &[Arc<Message>], mut place: usize) -> usize {
    let is_result = |place: usize| {
        history
            .get(place)
            .is_some_and(|message| message.role == Role::Tool)
    };
    while place > 0 && is_result(place) {
        place -= 1;
    }
    place
}

/// Returns a quick estimate: four bytes per token.
pub fn estimate_tokens(messages: &[Arc<Message>]) -> u64 {
    messages
        .iter()
        .map(|message| of_message(&Estimate, message))
        .sum()
}

#[cfg(test)]
#[path = "compact/bed_tests.rs"]
mod bed;

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
