//! CTX-9: the agent declares its investigations and their results, so that the messages in between can be
//! dropped.
//!
//! After "Active Context Compression" (arXiv 2601.07190): `start_focus` and `complete_focus` mark a stretch
//! of work. Afterwards its messages can be replaced by the summary the agent wrote. The findings become a
//! pinned knowledge block.

mod knowledge;
mod tools;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::task::TaskTracker;

pub(super) use self::knowledge::Knowledge;
pub use self::tools::{CompleteFocus, StartFocus};
use super::strategy::InvalidStrategy;
use super::{CompactError, Compacted, Compactor, Job, OpenFacts, Summarize, tail_start, whole};
use crate::id::CallId;
use crate::message::Message;
use crate::middleware::Depth;
use crate::tokens::Gauge;

/// Settings of focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FocusConfig {
    /// Number of turns before similar pieces of knowledge are merged.
    pub auto_consolidate_min_window: u32,
}

impl Default for FocusConfig {
    fn default() -> Self {
        Self {
            auto_consolidate_min_window: 4,
        }
    }
}

impl FocusConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fails if the window is 0, because knowledge would be compared after every step.
    pub fn validate(&self) -> Result<(), InvalidStrategy> {
        match self.auto_consolidate_min_window {
            0 => Err(InvalidStrategy::NoWindow),
            _ => Ok(()),
        }
    }
}

/// The current investigation of the agent and its knowledge. One per session.
#[derive(Debug, Default)]
pub struct FocusState {
    config: FocusConfig,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: Option<Open>,
    /// Completed stretches of work that are still in the history.
    over: Vec<Stretch>,
    knowledge: Knowledge,
    turns: u32,
}

#[derive(Debug, Clone)]
struct Open {
    scope: String,
    call: CallId,
}

/// A stretch of work, from the call that started it to the call that ended it.
#[derive(Debug, Clone)]
struct Stretch {
    from: CallId,
    to: CallId,
    summary: String,
}

impl FocusState {
    /// Creates a state without an open stretch.
    pub fn new(config: FocusConfig) -> Self {
        Self {
            config,
            inner: Mutex::default(),
        }
    }

    /// Loads the knowledge from the last summary in a history.
    pub fn restore(&self, history: &[Arc<Message>]) {
        if let Some(knowledge) = Knowledge::read(history) {
            self.inner().knowledge = knowledge;
        }
    }

    /// Returns the scope of the open stretch, for display.
    pub fn scope(&self) -> Option<String> {
        self.inner().open.as_ref().map(|open| open.scope.clone())
    }

    /// Counts a turn. Must be called at the end of each turn, because knowledge is merged every few turns.
    pub fn turn_ended(&self) {
        self.inner().turns += 1;
    }

    /// Returns true if enough turns have passed since knowledge was last merged.
    pub fn should_auto_consolidate(&self) -> bool {
        let inner = self.inner();
        inner.turns >= self.config.auto_consolidate_min_window.max(1) && inner.knowledge.pieces() > 1
    }

    /// Merges similar pieces of knowledge off the async threads if it is due. Nothing waits for it.
    pub fn consolidate_in(self: &Arc<Self>, tasks: &TaskTracker) {
        if self.should_auto_consolidate() {
            let state = Arc::clone(self);
            tasks.spawn(async move { state.consolidate().await });
        }
    }

    /// Merges similar pieces of knowledge now. Returns the number of removed pieces.
    pub async fn consolidate(&self) -> usize {
        let before = {
            let mut inner = self.inner();
            inner.turns = 0;
            inner.knowledge.clone()
        };
        let work = before.clone();
        let Ok(after) = tokio::task::spawn_blocking(move || work.consolidated()).await else {
            return 0;
        };
        let mut inner = self.inner();
        // Knowledge added in the meantime must not be lost.
        if inner.knowledge != before {
            return 0;
        }
        let gone = before.pieces() - after.pieces();
        inner.knowledge = after;
        gone
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Knowledge is pinned: every summary carries it.
impl OpenFacts for FocusState {
    fn facts(&self) -> Vec<(String, String)> {
        self.inner().knowledge.fact().into_iter().collect()
    }
}

/// Two sources of open facts.
struct Both(Arc<dyn OpenFacts>, Arc<FocusState>);

impl OpenFacts for Both {
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = self.1.facts();
        facts.extend(self.0.facts());
        facts
    }
}

/// Replaces completed stretches of work with the agent's own summaries, without a model; then summarizes.
///
/// Invariants: the first step does not touch an open stretch; exchanges are removed whole; the user's
/// messages in a stretch stay; every summary contains the knowledge verbatim.
#[derive(Clone)]
pub struct Focus {
    /// The focus state of the session.
    pub state: Arc<FocusState>,
    /// Writes the summary, which includes the knowledge.
    pub(super) summarize: Summarize,
}

impl Focus {
    /// Creates the strategy. `summarize` handles the messages that the agent has not summarized.
    pub fn new(state: Arc<FocusState>, summarize: Summarize) -> Self {
        let standing = Arc::new(Both(Arc::clone(&summarize.standing), Arc::clone(&state)));
        Self {
            state,
            summarize: Summarize {
                standing,
                ..summarize
            },
        }
    }

    /// Returns the history with one message in place of each completed stretch.
    fn consolidated(&self, job: &Job<'_>) -> Option<Compacted> {
        let over = std::mem::take(&mut self.state.inner().over);
        let mut made: Option<Compacted> = None;
        for stretch in over.iter().rev() {
            let now = made.as_ref().map_or(job.history, |made| made.history.as_slice());
            let Some(range) = stretch.range(now) else { continue };
            let folded = self
                .summarize
                .folded(&job.on(now), range, stretch.summary.clone(), &[]);
            if let Ok(folded) = folded
                && self.summarize.gauge.tokens(&folded.history) < self.summarize.gauge.tokens(now)
            {
                made = Some(folded);
            }
        }
        made
    }
}

impl Stretch {
    /// Returns the range of the stretch, from the message that started it to the result of the call that
    /// ended it.
    fn range(&self, history: &[Arc<Message>]) -> Option<std::ops::Range<usize>> {
        let end = history
            .iter()
            .rposition(|message| message.results().any(|result| result.call_id == self.to))?;
        let before = history.get(..end)?;
        let start = before
            .iter()
            .rposition(|message| message.calls().any(|call| call.id == self.from))?;
        let start = whole(history, start.max(1));
        (start > 0 && end > start).then_some(start..end + 1)
    }
}

#[async_trait]
impl Compactor for Focus {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        if job.depth == Depth::Soft {
            return Err(CompactError::NothingToDo);
        }
        let gauge = &self.summarize.gauge;
        if self.state.should_auto_consolidate() {
            self.state.consolidate().await;
        }
        let made = self.consolidated(&job);
        let now = made.as_ref().map_or(job.history, |made| made.history.as_slice());
        if made.is_some() && gauge.tokens(now) <= job.target {
            return made.ok_or(CompactError::NothingToDo);
        }
        let cut = tail_start(now, self.summarize.keep_recent);
        match (self.summarize.fold(&job.on(now), 1..cut).await, made) {
            (Ok(rest), made) => Ok(made.unwrap_or_default().then(rest)),
            (Err(_), Some(made)) => Ok(made),
            (Err(error), None) => Err(error),
        }
    }

    fn gauge(&self) -> Option<&Gauge> {
        Some(&self.summarize.gauge)
    }
}

#[cfg(test)]
#[path = "focus_tests.rs"]
mod tests;
