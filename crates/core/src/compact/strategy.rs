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

/// How a conversation is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Not at all.
    None,
    /// A summary stands for the middle.
    #[default]
    Summarize,
    /// Notes stand for old outputs.
    Mask,
    /// What serves no present subgoal goes first.
    Subgoal,
    /// The same, and what repeats something better goes before what does not.
    SubgoalByGain,
    /// What the agent said itself about a stretch of work stands for it.
    Focus,
    /// A model names the outputs that can go.
    ModelEviction,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Summarize,
        Self::Mask,
        Self::Subgoal,
        Self::SubgoalByGain,
        Self::Focus,
        Self::ModelEviction,
    ];

    /// Its name in settings.
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

    /// What does it; `None` for [`Strategy::None`].
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
                // What was learned is pinned, whoever makes the summary.
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

/// What strategies are made of. One per session, shared with the middleware and the tools of the session.
#[derive(Clone)]
pub struct Parts {
    /// How many of the newest messages stay as they are.
    pub keep_recent: usize,
    /// How long a summarizer may take.
    pub limit: Duration,
    /// What stands open.
    pub standing: Arc<dyn OpenFacts>,
    /// What is counted with.
    pub gauge: Arc<Gauge>,
    /// Summaries that are ready; `None` without any.
    pub deferred: Option<Arc<Deferred>>,
    /// What is worked on.
    pub subgoals: Arc<Subgoals>,
    /// What is looked into.
    pub focus: Arc<FocusState>,
    /// When the side task is due. Beside another strategy it is on when this is in the pipeline as well.
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

/// Why a strategy cannot be used as it is set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStrategy {
    /// There is no such strategy.
    #[error(
        "unknown strategy `{0}`; known are none, summarize, mask, subgoal, subgoal_mig, focus and sidequest"
    )]
    Unknown(String),
    /// Two of them decide about the same outputs.
    #[error(
        "`{0}` and `sidequest` cannot be used together: both decide which tool outputs go; turn one of them off"
    )]
    Together(Strategy),
    /// A window of no turns.
    #[error(
        "auto_consolidate_min_window must be at least 1: with 0, knowledge would be compared after every step"
    )]
    NoWindow,
}

/// Whether a strategy can be used beside the side task.
///
/// # Errors
/// When both decide about the same outputs.
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
