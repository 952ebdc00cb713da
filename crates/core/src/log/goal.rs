//! GOAL-5: the registry of goals that sessions work on without input.

use async_trait::async_trait;

use super::LogError;
use crate::clock::Timestamp;
use crate::event::{GoalCompletion, GoalState, GoalStop};
use crate::id::SessionId;

/// Work of a session towards a goal without input. A fold over the session's events, kept by the store.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalInfo {
    /// The session.
    pub session: SessionId,
    /// Goal as given by the user.
    pub text: String,
    /// State of the work.
    pub state: GoalState,
    /// Reason for that state.
    pub reason: Option<GoalStop>,
    /// The same for people.
    pub message: String,
    /// Number of turns so far.
    pub turns: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Result of the last verification; `None` before the first.
    pub verification: Option<Verification>,
    /// Start of the work.
    pub started_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

impl GoalInfo {
    /// Returns true if the process that worked on the goal ended without saying so.
    pub fn is_orphaned(&self) -> bool {
        self.reason == Some(GoalStop::ProcessEnded)
    }
}

/// Result of verifying a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// A check failed, or the supervisor said not yet.
    NotYet,
    /// The goal was reached, with this source.
    Reached(GoalCompletion),
}

/// Finds goals that sessions work on without input.
#[async_trait]
pub trait GoalRegistry: Send + Sync {
    /// Returns the work of all sessions, or only the active work, most recently changed first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn goals(&self, only_active: bool) -> Result<Vec<GoalInfo>, LogError>;

    /// Returns the cost in US dollars of everything that sessions and their children did since a time while
    /// they worked without input.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn unattended_cost(&self, since: Timestamp) -> Result<f64, LogError>;
}
