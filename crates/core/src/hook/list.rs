//! Runs hooks in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    AdmittedCall, AnswerAction, CLOSING_LIMIT, CallAction, CallHook, ChildAction, CompactionHook, Hook,
    PermissionAction, SessionClosing, SessionHook, SessionOpening, TurnAction, TurnEnd, TurnHook,
};
use crate::clock::Clock;
use crate::event::Event;
use crate::log::{AgentRow, SessionInfo};
use crate::message::{Fragment, Message};
use crate::middleware::{Flow, IterationView, Stage, Verdict};
use crate::permission::Proposal;
use crate::tool::{ToolContext, ToolError, ToolOutput};

/// The hooks of a turn or a session, in order. Cheap to clone.
#[derive(Clone, Default)]
pub struct Hooks(Vec<Arc<dyn Hook>>);

/// Combined answer of the hooks before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// The rules decide.
    Proceed,
    /// A person must be asked, for these reasons.
    Ask(Vec<String>),
    /// The call is refused with this text for the model.
    Deny(String),
    /// The call has other arguments now.
    Rewritten(String),
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook after those added before.
    pub fn push(&mut self, hook: impl Hook + 'static) {
        self.0.push(Arc::new(hook));
    }

    /// Adds a shared hook after those added before.
    pub fn push_shared(&mut self, hook: Arc<dyn Hook>) {
        self.0.push(hook);
    }

    /// Returns the list with a hook added at the end.
    #[must_use]
    pub fn with(mut self, hook: impl Hook + 'static) -> Self {
        self.push(hook);
        self
    }

    /// Adds the hooks of another list at the end.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    fn turns(&self) -> impl DoubleEndedIterator<Item = (&dyn Hook, &dyn TurnHook)> {
        self.0.iter().filter_map(|hook| Some((&**hook, hook.turn()?)))
    }

    fn calls(&self) -> impl DoubleEndedIterator<Item = (&dyn Hook, &dyn CallHook)> {
        self.0.iter().filter_map(|hook| Some((&**hook, hook.call()?)))
    }

    fn compactions(&self) -> impl DoubleEndedIterator<Item = (&dyn Hook, &dyn CompactionHook)> {
        self.0
            .iter()
            .filter_map(|hook| Some((&**hook, hook.compaction()?)))
    }

    fn sessions(&self) -> impl DoubleEndedIterator<Item = (&dyn Hook, &dyn SessionHook)> {
        self.0.iter().filter_map(|hook| Some((&**hook, hook.session()?)))
    }

    /// Returns true if a hook follows sessions.
    pub fn follow_sessions(&self) -> bool {
        self.sessions().next().is_some()
    }

    /// Runs the hooks before a turn. Warnings name hooks that did not answer. After `cancel` none is waited for.
    pub async fn before_turn(
        &self,
        clock: &dyn Clock,
        cancel: &CancellationToken,
        history: &[Arc<Message>],
    ) -> (TurnAction, Vec<String>) {
        let (mut fragments, mut warnings) = (Vec::new(), Vec::new());
        for (hook, turn) in self.turns() {
            let answer = limited(clock, hook, turn.before_turn(history));
            let answer = unless_canceled(cancel, answer).await;
            warnings.extend(turn.take_warnings());
            match answer {
                None => break,
                Some(Ok(TurnAction::Start(more))) => fragments.extend(more),
                Some(Ok(TurnAction::Stop(reason))) => {
                    let reason = format!("{}: {reason}", hook.name());
                    return (TurnAction::Stop(reason), warnings);
                }
                Some(Err(late)) => warnings.push(late),
            }
        }
        (TurnAction::Start(fragments), warnings)
    }

    /// Runs the hooks around an iteration, each for at most `limit`. The first that does not continue decides; the
    /// metadata of those before it is kept. Warnings name hooks that did not answer.
    pub async fn iteration(
        &self,
        clock: &dyn Clock,
        stage: Stage,
        view: IterationView<'_>,
        limit: Duration,
    ) -> (Verdict, Vec<String>) {
        let (mut metadata, mut warnings) = (Map::new(), Vec::new());
        let mut hooks: Vec<_> = self.turns().collect();
        if stage == Stage::After {
            hooks.reverse();
        }
        for (hook, turn) in hooks {
            let answer = match stage {
                Stage::Before => turn.before_iteration(view),
                Stage::After => turn.after_iteration(view),
            };
            let answer = within(clock, hook, limit, answer).await;
            warnings.extend(turn.take_warnings());
            match answer {
                Ok(mut verdict) => {
                    metadata.append(&mut verdict.metadata);
                    if verdict.flow != Flow::Continue {
                        return (Verdict { metadata, ..verdict }, warnings);
                    }
                }
                Err(late) => warnings.push(late),
            }
        }
        let verdict = Verdict {
            metadata,
            ..Verdict::default()
        };
        (verdict, warnings)
    }

    /// Asks whether an answer may end the turn. The first hook that continues decides. Warnings name hooks that did
    /// not answer. After `cancel` none is waited for.
    pub async fn before_answer(
        &self,
        clock: &dyn Clock,
        cancel: &CancellationToken,
        answer: &str,
    ) -> (Option<String>, Vec<String>) {
        let mut warnings = Vec::new();
        for (hook, turn) in self.turns() {
            let reviewed = limited(clock, hook, turn.before_answer(answer));
            let reviewed = unless_canceled(cancel, reviewed).await;
            warnings.extend(turn.take_warnings());
            match reviewed {
                None => break,
                Some(Ok(AnswerAction::Accept)) => {}
                Some(Ok(AnswerAction::Continue(text))) => return (Some(text), warnings),
                Some(Err(late)) => warnings.push(late),
            }
        }
        (None, warnings)
    }

    /// Runs the hooks after a turn, the last one first, and returns the facts to record.
    pub async fn turn_ended(&self, clock: &dyn Clock, end: &TurnEnd<'_>) -> Vec<Event> {
        let mut facts = Vec::new();
        for (hook, turn) in self.turns().rev() {
            match limited(clock, hook, turn.turn_ended(end)).await {
                Ok(more) => facts.extend(more),
                Err(message) => facts.push(Event::Warning { message }),
            }
            let warnings = turn.take_warnings().into_iter();
            facts.extend(warnings.map(|message| Event::Warning { message }));
        }
        facts
    }

    /// Runs the hooks before a call. Deny beats a rewrite, a rewrite is judged again, and ask beats proceed.
    pub async fn before_call(&self, clock: &dyn Clock, proposal: &Proposal) -> Judged {
        let (mut reasons, mut rewritten) = (Vec::new(), None);
        for (hook, call) in self.calls() {
            match limited(clock, hook, call.before_call(proposal)).await {
                Ok(CallAction::Proceed) => {}
                // A hook that rewrites every call meets its own rewrite again.
                Ok(CallAction::Rewrite(arguments)) if is_same(&arguments, proposal) => {}
                Ok(CallAction::Rewrite(arguments)) => rewritten = Some(arguments),
                Ok(CallAction::Deny(reason)) => return Judged::Deny(reason),
                Ok(CallAction::Ask(reason)) | Err(reason) => reasons.push(reason),
            }
        }
        match rewritten {
            Some(arguments) => Judged::Rewritten(arguments),
            None if reasons.is_empty() => Judged::Proceed,
            None => Judged::Ask(reasons),
        }
    }

    /// Lets the hooks answer a permission request. A denial wins; a hook that does not answer leaves it to
    /// the user.
    pub async fn on_permission_request(&self, clock: &dyn Clock, proposal: &Proposal) -> PermissionAction {
        let mut action = PermissionAction::AskUser;
        let mut reason = None;
        for (hook, call) in self.calls() {
            match limited(clock, hook, call.on_permission_request(proposal)).await {
                Ok(PermissionAction::Deny(reason)) => return PermissionAction::Deny(reason),
                Ok(PermissionAction::Allow) => action = PermissionAction::Allow,
                Ok(PermissionAction::AskUser) => {}
                // A missing answer must not turn another hook's yes into one for this hook as well.
                Ok(PermissionAction::Ask(why)) | Err(why) => reason = Some(why),
            }
        }
        reason.map_or(action, PermissionAction::Ask)
    }

    /// Notifies the hooks that a call starts.
    pub async fn call_starting(&self, call: &AdmittedCall, cx: &ToolContext) {
        for (_, hook) in self.calls() {
            hook.call_starting(call, cx).await;
        }
    }

    /// Passes the result of a call through the hooks, the last one first.
    pub async fn after_call(
        &self,
        call: &AdmittedCall,
        cx: &ToolContext,
        mut result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        for (_, hook) in self.calls().rev() {
            result = hook.after_call(call, cx, result).await;
        }
        result
    }

    /// Collects instructions for a summary. `Err` is the reason of a hook that blocks the compaction. Warnings name
    /// hooks that did not answer.
    pub async fn before_compact(
        &self,
        clock: &dyn Clock,
        history: &[Arc<Message>],
    ) -> (Result<Vec<String>, String>, Vec<String>) {
        let (mut instructions, mut warnings) = (Vec::new(), Vec::new());
        for (hook, compaction) in self.compactions() {
            match limited(clock, hook, compaction.may_compact()).await {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => return (Err(reason), warnings),
                Err(late) => warnings.push(late),
            }
            match limited(clock, hook, compaction.before_compact(history)).await {
                Ok(text) => instructions.extend(text),
                Err(late) => warnings.push(late),
            }
        }
        (Ok(instructions), warnings)
    }

    /// Collects fragments to inject after a compaction, those of the last hook first. Warnings name hooks that did
    /// not answer.
    pub async fn after_compact(
        &self,
        clock: &dyn Clock,
        history: &[Arc<Message>],
    ) -> (Vec<Fragment>, Vec<String>) {
        let (mut fragments, mut warnings) = (Vec::new(), Vec::new());
        for (hook, compaction) in self.compactions().rev() {
            match limited(clock, hook, compaction.after_compact(history)).await {
                Ok(more) => fragments.extend(more),
                Err(late) => warnings.push(late),
            }
        }
        (fragments, warnings)
    }

    /// Notifies the hooks that a session was opened. After `cancel` each hook is called, but not waited for.
    /// Returns warnings about hooks that failed or did not answer.
    pub async fn session_started(
        &self,
        clock: &dyn Clock,
        session: &SessionInfo,
        opening: SessionOpening,
        cancel: &CancellationToken,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        for (hook, follower) in self.sessions() {
            let started = async {
                tokio::select! {
                    biased;
                    started = follower.session_started(session, opening) => started,
                    () = cancel.cancelled() => Err("it was canceled".to_owned()),
                }
            };
            let started = limited(clock, hook, started).await;
            warnings.extend(started.map_or_else(Some, |started| failure(hook, started)));
        }
        warnings
    }

    /// Notifies the hooks, the last one first, that a session is about to be closed. Returns warnings about
    /// hooks that failed or did not answer in time.
    pub async fn session_ended(
        &self,
        clock: &dyn Clock,
        session: &SessionInfo,
        closing: SessionClosing,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let end = clock.elapsed() + CLOSING_LIMIT;
        for (hook, follower) in self.sessions().rev() {
            let left = end.saturating_sub(clock.elapsed());
            let ended = within(clock, hook, left, follower.session_ended(session, closing)).await;
            let late = |_| Err("it did not answer before the session was closed".to_owned());
            warnings.extend(failure(hook, ended.unwrap_or_else(late)));
        }
        warnings
    }

    /// Notifies the hooks that a sub-agent is about to start. Returns warnings about hooks that failed or did not
    /// answer.
    pub async fn child_started(&self, clock: &dyn Clock, child: &AgentRow) -> Vec<String> {
        let mut warnings = Vec::new();
        for (hook, follower) in self.sessions() {
            let started = limited(clock, hook, follower.child_started(child)).await;
            warnings.extend(started.map_or_else(Some, |started| failure(hook, started)));
        }
        warnings
    }

    /// Asks the hooks, the last one first, about a sub-agent that ended. The first that wants it to continue decides.
    /// Warnings name hooks that did not answer.
    pub async fn child_ended(&self, clock: &dyn Clock, child: &AgentRow) -> (ChildAction, Vec<String>) {
        let mut warnings = Vec::new();
        for (hook, follower) in self.sessions().rev() {
            match limited(clock, hook, follower.child_ended(child)).await {
                Ok(ChildAction::Accept) => {}
                Ok(more @ ChildAction::Continue(_)) => return (more, warnings),
                Err(late) => warnings.push(late),
            }
        }
        (ChildAction::Accept, warnings)
    }
}

/// Waits for an answer; `None` once the token fires.
async fn unless_canceled<T>(cancel: &CancellationToken, answer: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        answer = answer => Some(answer),
        () = cancel.cancelled() => None,
    }
}

/// Returns a warning if a hook failed.
fn failure(hook: &dyn Hook, result: Result<(), String>) -> Option<String> {
    let why = result.err()?;
    Some(format!("the hook `{}` failed: {why}", hook.name()))
}

/// Returns true if a rewrite leaves the arguments of a call as they are.
fn is_same(arguments: &str, proposal: &Proposal) -> bool {
    serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments == proposal.arguments)
}

/// Waits for a hook, at most for its time limit.
async fn limited<T>(
    clock: &dyn Clock,
    hook: &dyn Hook,
    answer: impl Future<Output = T>,
) -> Result<T, String> {
    within(clock, hook, hook.time_limit(), answer).await
}

/// Waits for a hook, at most for its time limit and for `limit`.
async fn within<T>(
    clock: &dyn Clock,
    hook: &dyn Hook,
    limit: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, String> {
    let limit = limit.min(hook.time_limit());
    tokio::select! {
        biased;
        answer = answer => Ok(answer),
        () = clock.sleep(limit) => Err(format!("the hook `{}` did not answer within {} s", hook.name(), limit.as_secs())),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
