//! CTX-4: the strategies by name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::fit::Stepwise;
use super::{
    Compactor, Deferred, Evict, Focus, FocusState, Mask, ModelEviction, NothingOpen, OpenFacts,
    SidequestTurns, Subgoals, Summarize,
};
use crate::tokens::Gauge;

/// Strategy for making a conversation smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// No compaction.
    None,
    /// Replaces the middle with a summary.
    #[default]
    Summarize,
    /// Replaces old outputs with notes.
    Mask,
    /// Evicts outputs that do not serve the current subgoal first.
    Subgoal,
    /// Like [`Self::Subgoal`], and evicts outputs that repeat a better one before others.
    SubgoalByGain,
    /// Replaces a stretch of work with the agent's own summary.
    Focus,
    /// Evicts the outputs that a model names.
    ModelEviction,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Summarize,
        Self::Mask,
        Self::Subgoal,
        Self::SubgoalByGain,
        Self::Focus,
        Self::ModelEviction,
    ];

    /// Name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Summarize => "summarize",
            Self::Mask => "mask",
            Self::Subgoal => "subgoal",
            Self::SubgoalByGain => "subgoal_mig",
            Self::Focus => "focus",
            Self::ModelEviction => "sidequest",
        }
    }

    /// Returns the compactor of this strategy, or `None` for [`Strategy::None`].
    pub fn compactor(self, parts: Parts) -> Option<Arc<dyn Compactor>> {
        let summarize = Summarize {
            keep_recent: parts.keep_recent,
            limit: parts.limit,
            standing: parts.standing,
            gauge: parts.gauge,
        };
        let mut last_resort = summarize.clone();
        let evict = |weighs_repetition, summarize| Evict {
            subgoals: Arc::clone(&parts.subgoals),
            weighs_repetition,
            summarize,
        };
        let strategy: Arc<dyn Compactor> = match self {
            Self::None => return None,
            Self::Summarize => Arc::new(summarize),
            Self::Mask => Arc::new(Mask {
                keep_recent: parts.keep_recent,
            }),
            Self::Subgoal => Arc::new(evict(false, summarize)),
            Self::SubgoalByGain => Arc::new(evict(true, summarize)),
            Self::Focus => {
                let focus = Focus::new(parts.focus, summarize);
                // Knowledge is pinned, whichever step writes the summary.
                last_resort.standing = Arc::clone(&focus.summarize.standing);
                Arc::new(focus)
            }
            Self::ModelEviction => Arc::new(ModelEviction {
                turns: Arc::clone(&parts.sidequest),
                summarize,
            }),
        };
        let side = ModelEviction {
            turns: parts.sidequest,
            summarize: last_resort.clone(),
        };
        Some(Arc::new(Stepwise {
            side,
            strategy,
            deferred: parts.deferred,
            subgoals: parts.subgoals,
            last_resort,
        }))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = InvalidStrategy;

    fn from_str(name: &str) -> Result<Self, InvalidStrategy> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| InvalidStrategy::Unknown(name.to_owned()))
    }
}

/// Parts of which strategies are built. One per session, shared with the session's middleware and tools.
#[derive(Clone)]
pub struct Parts {
    /// Number of the newest messages that are kept unchanged.
    pub keep_recent: usize,
    /// Timeout of the summarizer.
    pub limit: Duration,
    /// Source of open facts.
    pub standing: Arc<dyn OpenFacts>,
    /// Gauge for counting tokens.
    pub gauge: Arc<Gauge>,
    /// Ready summaries, or `None` if there are none to apply.
    pub deferred: Option<Arc<Deferred>>,
    /// Subgoals of the session.
    pub subgoals: Arc<Subgoals>,
    /// Focus state of the session.
    pub focus: Arc<FocusState>,
    /// Schedule of the side task. With another strategy, the side task runs only if this is in the pipeline
    /// as well.
    pub sidequest: Arc<SidequestTurns>,
}

impl Default for Parts {
    fn default() -> Self {
        let summarize = Summarize::default();
        Self {
            keep_recent: summarize.keep_recent,
            limit: summarize.limit,
            standing: Arc::new(NothingOpen),
            gauge: summarize.gauge,
            deferred: None,
            subgoals: Arc::default(),
            focus: Arc::default(),
            sidequest: Arc::default(),
        }
    }
}

/// Reason a strategy cannot be used as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStrategy {
    /// The strategy does not exist.
    #[error("unknown strategy `{0}`; use none, summarize, mask, subgoal, subgoal_mig, focus or sidequest")]
    Unknown(String),
    /// Two strategies would decide about the same outputs.
    #[error(
        "`{0}` and `sidequest` cannot be used together: both decide which tool outputs go; turn one of them off"
    )]
    Together(Strategy),
    /// The window is 0 turns.
    #[error(
        "auto_consolidate_min_window must be at least 1: with 0, knowledge would be compared after every step"
    )]
    NoWindow,
}

/// Checks that a strategy can be used together with the side task.
///
/// # Errors
/// Fails if both decide about the same outputs.
pub fn validate(strategy: Strategy, sidequest_enabled: bool) -> Result<(), InvalidStrategy> {
    match strategy {
        Strategy::Subgoal | Strategy::SubgoalByGain if sidequest_enabled => {
            Err(InvalidStrategy::Together(strategy))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "strategy_tests.rs"]
mod tests;
