//! Extension points of turns and sessions: one ordered list of hooks, each point with its own typed answer.
//!
//! A [`Hook`] names itself and offers any of four small traits: [`TurnHook`] around a turn and its
//! iterations, [`CallHook`] around tool calls, [`CompactionHook`] around compactions, [`SessionHook`] at the
//! start and the end of a session. [`Hooks`] is the list; it runs the hooks in their order, gives each a time
//! limit, and combines the answers.
//!
//! Two rules hold for every hook. It cannot widen what the rules allow: no answer of a hook lifts a denial.
//! And a hook that does not answer in time never counts as a yes to a call: the call then needs approval.
//! At the other points the user is warned about a late hook, and the work continues without its answer.
//!
//! Before an action hooks run in the order of the list, and after it from the last to the first, so that they
//! nest around the action.

mod adapt;
mod list;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::adapt::{IncompleteWorkHook, MiddlewareHook, PermissionRuleHook};
pub use self::list::{Hooks, Judged};
use crate::event::Event;
use crate::log::{AgentRow, SessionInfo};
use crate::message::{Fragment, Message};
use crate::middleware::{IterationView, Verdict};
use crate::permission::Proposal;
use crate::tool::{ToolContext, ToolError, ToolOutput};
use crate::turn::Outcome;

/// Time limit of a hook that does not name one.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Time that all hooks together have when a session closes.
pub const CLOSING_LIMIT: Duration = Duration::from_secs(5);

/// An extension of turns and sessions. Every part is optional.
pub trait Hook: Send + Sync {
    /// Name of the hook in warnings and reasons.
    fn name(&self) -> &str;

    /// Maximum time of each of its answers.
    fn time_limit(&self) -> Duration {
        TIME_LIMIT
    }

    /// The part that follows turns and iterations.
    fn turn(&self) -> Option<&dyn TurnHook> {
        None
    }

    /// The part that follows tool calls.
    fn call(&self) -> Option<&dyn CallHook> {
        None
    }

    /// The part that follows compactions.
    fn compaction(&self) -> Option<&dyn CompactionHook> {
        None
    }

    /// The part that follows sessions.
    fn session(&self) -> Option<&dyn SessionHook> {
        None
    }
}

/// Follows a turn and its iterations.
#[async_trait]
pub trait TurnHook: Send + Sync {
    /// The turn is about to start on `history`, which ends with the user's input.
    async fn before_turn(&self, _history: &[Arc<Message>]) -> TurnAction {
        TurnAction::default()
    }

    /// The model is about to be called. The cost must not grow with the history.
    async fn before_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }

    /// An iteration ended. The cost must not grow with the history.
    async fn after_iteration(&self, _view: IterationView<'_>) -> Verdict {
        Verdict::proceed()
    }

    /// The model answered without calling tools. Must not have effects.
    async fn before_answer(&self, _answer: &str) -> AnswerAction {
        AnswerAction::Accept
    }

    /// The turn ended. Returns facts to record before the event that ends it; long work belongs in a task.
    async fn turn_ended(&self, _end: &TurnEnd<'_>) -> Vec<Event> {
        Vec::new()
    }

    /// Takes warnings for the user that arose since the last call. Asked for after each of the other methods.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Answer of [`TurnHook::before_turn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnAction {
    /// Start, with these fragments added to the conversation.
    Start(Vec<Fragment>),
    /// Do not start, for this reason.
    Stop(String),
}

impl Default for TurnAction {
    fn default() -> Self {
        Self::Start(Vec::new())
    }
}

/// Answer of [`TurnHook::before_answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerAction {
    /// The answer ends the turn.
    Accept,
    /// The turn continues with this text as a reminder.
    Continue(String),
}

/// A turn that ended.
#[derive(Debug, Clone, Copy)]
pub struct TurnEnd<'a> {
    /// The conversation now.
    pub history: &'a [Arc<Message>],
    /// Result of the turn.
    pub outcome: &'a Outcome,
}

/// Follows tool calls.
#[async_trait]
pub trait CallHook: Send + Sync {
    /// A valid call is about to be judged. Must not have effects.
    async fn before_call(&self, _proposal: &Proposal) -> CallAction {
        CallAction::Proceed
    }

    /// The rules say that a person must be asked about the call.
    async fn on_permission_request(&self, _proposal: &Proposal) -> PermissionAction {
        PermissionAction::AskUser
    }

    /// The call was admitted and starts when this returns. Runs in the call's own task, so a hook that takes
    /// long is stopped together with the call.
    async fn call_starting(&self, _call: &AdmittedCall, _cx: &ToolContext) {}

    /// The call ended. The returned result takes the place of `result`.
    async fn after_call(
        &self,
        _call: &AdmittedCall,
        _cx: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        result
    }
}

/// Answer of [`CallHook::before_call`]. Of several hooks, deny beats ask, and ask beats proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAction {
    /// Leave the call to the rules.
    Proceed,
    /// Use these arguments instead. They are validated and judged as if the model had sent them.
    Rewrite(String),
    /// Refuse the call; the model reads the reason.
    Deny(String),
    /// Ask a person, whatever the rules would allow.
    Ask(String),
}

/// Answer of [`CallHook::on_permission_request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAction {
    /// Ask the user, unless another hook answers.
    AskUser,
    /// Ask the user for this reason, whatever other hooks answer.
    Ask(String),
    /// Allow the call in the user's place.
    Allow,
    /// Deny the call in the user's place; the model reads the reason.
    Deny(String),
}

/// A call that may run.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmittedCall {
    /// The call as it was judged.
    pub proposal: Proposal,
    /// True if a person allowed it, now or by an earlier grant.
    pub was_confirmed: bool,
}

/// Follows compactions.
#[async_trait]
pub trait CompactionHook: Send + Sync {
    /// The conversation is about to be compacted, if all hooks agree.
    ///
    /// # Errors
    /// Fails with the reason why it must not be.
    async fn may_compact(&self) -> Result<(), String> {
        Ok(())
    }

    /// The conversation is about to be compacted. Returns instructions for the summary.
    async fn before_compact(&self, _history: &[Arc<Message>]) -> Option<String> {
        None
    }

    /// The conversation was compacted. Returns fragments to inject again.
    async fn after_compact(&self, _history: &[Arc<Message>]) -> Vec<Fragment> {
        Vec::new()
    }
}

/// Follows sessions. An error is shown to the user as a warning; the session continues, or closes, as without
/// the hook.
#[async_trait]
pub trait SessionHook: Send + Sync {
    /// The session was opened. Its first request waits until this returns.
    ///
    /// # Errors
    /// Fails with a message for the user.
    async fn session_started(&self, _session: &SessionInfo, _opening: SessionOpening) -> Result<(), String> {
        Ok(())
    }

    /// The session is about to be closed; no turn runs. Called once for each `session_started`, with at most
    /// [`CLOSING_LIMIT`] for all hooks together; long work belongs in a task.
    ///
    /// # Errors
    /// Fails with a message for the user.
    async fn session_ended(&self, _session: &SessionInfo, _closing: SessionClosing) -> Result<(), String> {
        Ok(())
    }

    /// The session created a sub-agent, which starts when this returns.
    ///
    /// # Errors
    /// Fails with a message for the user.
    async fn child_started(&self, _child: &AgentRow) -> Result<(), String> {
        Ok(())
    }

    /// A sub-agent of the session ended, and its result is recorded. It is delivered to the session when this
    /// returns, unless the sub-agent is to continue.
    async fn child_ended(&self, _child: &AgentRow) -> ChildAction {
        ChildAction::Accept
    }
}

/// Answer of [`SessionHook::child_ended`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ChildAction {
    /// The result is delivered.
    #[default]
    Accept,
    /// The sub-agent continues with this text, a few times at most.
    Continue(String),
}

/// Origin of a session that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOpening {
    /// The session was created.
    New,
    /// The session existed before.
    Resumed,
    /// The session was created with the history of another one.
    Forked,
}

/// Reason a session is closed. Its record stays, so that it can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionClosing {
    /// No front end shows the session, and nothing is left to do in it.
    Ended,
    /// The session was idle for a while.
    Parked,
    /// The program ends. A running turn was canceled.
    Shutdown,
    /// The record of the session cannot be written.
    Failed,
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
