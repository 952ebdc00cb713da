//! The points of the core at which hooks run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::event::Event;
use windlass_core::hook::{
    AdmittedCall, AnswerAction, CallAction, CallHook, CompactionHook, Hook, PermissionAction, SessionClosing,
    SessionHook, SessionOpening, TurnAction, TurnEnd, TurnHook,
};
use windlass_core::log::SessionInfo;
use windlass_core::message::{Fragment, Message, Part, Role};
use windlass_core::middleware::{IterationView, Verdict};
use windlass_core::permission::{Escalation, Proposal};
use windlass_core::tool::{ToolContext, ToolError, ToolOutput};

use async_trait::async_trait;

use super::{SessionHooks, exported, fragments};
use crate::answer::HookChoice;
use crate::claude;
use crate::occasion::Occasion;
use crate::set::lock;

/// Number of times in a row that hooks can keep a turn from ending.
const MAX_STOPS: u32 = 8;
/// The tool that ends a turn.
const DONE: &str = "done";
/// Maximum size of the file with variables.
const MAX_ENV: u64 = 64 << 10;

impl Hook for SessionHooks {
    fn name(&self) -> &str {
        "hooks"
    }

    fn time_limit(&self) -> Duration {
        lock(&self.0.state).set.longest()
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }

    fn compaction(&self) -> Option<&dyn CompactionHook> {
        Some(self)
    }

    fn session(&self) -> Option<&dyn SessionHook> {
        let set = Arc::clone(&lock(&self.0.state).set);
        let wanted = [
            Occasion::SessionStart,
            Occasion::SessionEnd,
            Occasion::SubagentStart,
        ];
        wanted.iter().any(|occasion| set.has(*occasion)).then_some(self)
    }
}

impl SessionHooks {
    /// Asks the hooks whether the turn may end. Returns the text with which it continues.
    async fn stopping(&self, answer: &str) -> Option<String> {
        let occasion = match self.0.facts.agent {
            Some(_) => Occasion::SubagentStop,
            None => Occasion::Stop,
        };
        let stops = lock(&self.0.state).turn.stops;
        let input = json!({
            "stop_hook_active": stops > 0,
            "last_assistant_message": answer,
        });
        let subject = self.0.facts.agent.as_ref().map_or("", |(_, kind)| kind.as_str());
        let combined = self.fire(occasion, subject, input).await;
        if combined.stop.is_some() {
            return None;
        }
        let context = combined.context.iter().map(|(_, text)| text.clone());
        let reason = match combined.choice {
            HookChoice::Deny => combined.reason(),
            _ => context.collect::<Vec<_>>().join("\n"),
        };
        if reason.is_empty() {
            return None;
        }
        let mut state = lock(&self.0.state);
        state.turn.stops += 1;
        if state.turn.stops > MAX_STOPS {
            let text = format!("hooks kept the turn from ending {MAX_STOPS} times; it ends now");
            state.warnings.push(text);
            return None;
        }
        Some(reason)
    }

    /// Tells the user's hooks that a person is needed. Nobody waits for them.
    fn notify(&self, message: String) {
        if !lock(&self.0.state).set.has(Occasion::Notification) {
            return;
        }
        let hooks = self.clone();
        lock(&self.0.shared.background).spawn(async move {
            let kind = "permission_prompt";
            let input = json!({"message": message, "title": "Windlass", "notification_type": kind});
            hooks.fire(Occasion::Notification, kind, input).await;
        });
    }

    /// Takes over the variables that hooks left at the start of a session.
    fn take_environment(&self) {
        let path = &self.0.facts.env_file;
        let is_small = path
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() <= MAX_ENV);
        if let Some(text) = is_small.then(|| std::fs::read_to_string(path).ok()).flatten() {
            lock(&self.0.state).env.extend(exported(&text));
        }
        let _ = std::fs::remove_file(path);
    }

    fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0.state).warnings)
    }
}

/// Returns the text of the user's message that a turn starts with.
fn prompt(history: &[Arc<Message>]) -> Option<String> {
    let last = history.last().filter(|message| message.role == Role::User)?;
    let texts = last.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

#[async_trait]
impl TurnHook for SessionHooks {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        {
            let mut state = lock(&self.0.state);
            state.turn.stops = 0;
            state.turn.stop = None;
        }
        let mut context = std::mem::take(&mut lock(&self.0.state).pending);
        if let Some(prompt) = prompt(history).filter(|_| self.0.facts.agent.is_none()) {
            let combined = self
                .fire(Occasion::UserPromptSubmit, "", json!({ "prompt": prompt }))
                .await;
            if combined.choice == HookChoice::Deny {
                return TurnAction::Stop(combined.reason());
            }
            if let Some(reason) = combined.stop {
                return TurnAction::Stop(reason);
            }
            context.extend(fragments(combined.context));
        }
        TurnAction::Start(context)
    }

    async fn before_iteration(&self, view: IterationView<'_>) -> Verdict {
        lock(&self.0.state).turn.model = Some(view.model.id.clone());
        self.verdict()
    }

    async fn after_iteration(&self, _: IterationView<'_>) -> Verdict {
        self.verdict()
    }

    async fn before_answer(&self, answer: &str) -> AnswerAction {
        match self.stopping(answer).await {
            Some(text) => AnswerAction::Continue(text),
            None => AnswerAction::Accept,
        }
    }

    async fn turn_ended(&self, _: &TurnEnd<'_>) -> Vec<Event> {
        Vec::new()
    }

    fn take_warnings(&self) -> Vec<String> {
        self.take_messages()
    }
}

impl SessionHooks {
    fn verdict(&self) -> Verdict {
        match lock(&self.0.state).turn.stop.take() {
            Some(reason) => Verdict::stop(reason),
            None => Verdict::proceed(),
        }
    }
}

#[async_trait]
impl CallHook for SessionHooks {
    async fn before_call(&self, proposal: &Proposal) -> CallAction {
        if !lock(&self.0.state).set.has(Occasion::PreToolUse) {
            return CallAction::Proceed;
        }
        let mut call = lock(&self.0.state)
            .calls
            .get(&proposal.call_id)
            .cloned()
            .unwrap_or_default();
        let fired = self
            .fire_call(Occasion::PreToolUse, proposal, Value::Null, &call.rewriters)
            .await;
        let (combined, rewriters) = fired;
        if let Some(reason) = combined.stop {
            lock(&self.0.state).turn.stop = Some(reason.clone());
            return CallAction::Deny(format!("Not run: a hook ended the turn: {reason}"));
        }
        if combined.choice == HookChoice::Deny {
            return CallAction::Deny(format!("Blocked by a hook: {}", combined.reasons.join("; ")));
        }
        if combined.choice > call.choice {
            call.choice = combined.choice;
            call.reasons.clear();
        }
        if combined.choice == call.choice {
            call.reasons.extend(combined.reasons);
        }
        call.context.extend(fragments(combined.context));
        let mut rewritten = None;
        match combined
            .input
            .map(|updated| claude::arguments(proposal, &updated))
        {
            None => {}
            Some(Ok(arguments)) if arguments == proposal.arguments => {}
            Some(Ok(arguments)) => {
                call.rewriters.extend(rewriters);
                rewritten = Some(arguments.to_string());
            }
            Some(Err(why)) => {
                call.choice = HookChoice::Ask;
                call.reasons.push(format!(
                    "a hook wants other arguments, which are not valid: {why}"
                ));
            }
        }
        let action = match (rewritten, call.choice) {
            (Some(arguments), _) => CallAction::Rewrite(arguments),
            (None, HookChoice::Ask) if call.reasons.is_empty() => {
                CallAction::Ask("a hook asks for approval".to_owned())
            }
            (None, HookChoice::Ask) => CallAction::Ask(call.reasons.join("; ")),
            (None, _) => CallAction::Proceed,
        };
        lock(&self.0.state).calls.insert(proposal.call_id.clone(), call);
        action
    }

    async fn on_permission_request(&self, proposal: &Proposal) -> PermissionAction {
        // The yes of a hook is about the call inside the sandbox; wider access remains a person's decision.
        let is_plain = proposal.escalation == Escalation::default() && proposal.reasons.is_empty();
        let before = lock(&self.0.state)
            .calls
            .get(&proposal.call_id)
            .map(|call| call.choice);
        if before == Some(HookChoice::Allow) && is_plain {
            return PermissionAction::Allow;
        }
        let nothing = std::collections::HashSet::new();
        let (combined, _) = self
            .fire_call(Occasion::PermissionRequest, proposal, Value::Null, &nothing)
            .await;
        if let Some(reason) = combined.stop.clone() {
            lock(&self.0.state).turn.stop = Some(reason);
        }
        let action = match combined.choice {
            HookChoice::Deny => {
                return PermissionAction::Deny(format!("Blocked by a hook: {}", combined.reason()));
            }
            HookChoice::Allow if is_plain => return PermissionAction::Allow,
            HookChoice::Ask => PermissionAction::Ask(combined.reason()),
            HookChoice::Allow | HookChoice::None => PermissionAction::AskUser,
        };
        if self.0.facts.is_attended {
            let names = claude::names(&proposal.tool);
            let name = names.first().map_or(proposal.tool.as_str(), String::as_str);
            self.notify(format!("Windlass needs your permission to use {name}"));
        }
        action
    }

    async fn after_call(
        &self,
        call: &AdmittedCall,
        cx: &ToolContext,
        mut result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let proposal = &call.proposal;
        let known = lock(&self.0.state)
            .calls
            .remove(&proposal.call_id)
            .unwrap_or_default();
        let mut added: Vec<Fragment> = known.context;
        let is_failed = result.as_ref().map_or(true, |output| output.failed);
        if !cx.cancel.is_cancelled() {
            let content = match &result {
                Ok(output) => output.content.clone(),
                Err(error) => error.to_string(),
            };
            let (occasion, more) = if is_failed {
                (
                    Occasion::PostToolUseFailure,
                    json!({"error": content, "is_interrupt": false}),
                )
            } else {
                let response = claude::response(proposal, &content, is_failed);
                (Occasion::PostToolUse, json!({ "tool_response": response }))
            };
            let nothing = std::collections::HashSet::new();
            let (combined, _) = self.fire_call(occasion, proposal, more, &nothing).await;
            if let (Some(text), Ok(output)) = (&combined.output, &mut result) {
                output.content.clone_from(text);
            }
            if combined.choice == HookChoice::Deny {
                added.extend(fragments(vec![("feedback".to_owned(), combined.reason())]));
            }
            added.extend(fragments(combined.context));
            if let Some(reason) = combined.stop {
                lock(&self.0.state).turn.stop = Some(reason);
            }
        }
        if let Ok(output) = &mut result
            && let Some(answer) = output.ends_turn.clone()
            && proposal.tool == DONE
            && let Some(text) = self.stopping(&answer).await
        {
            output.ends_turn = None;
            output.content = format!("Not done yet. {text}");
            output.failed = true;
        }
        append(&mut result, &added);
        result
    }
}

/// Adds texts of hooks to the result that the model reads.
fn append(result: &mut Result<ToolOutput, ToolError>, fragments: &[Fragment]) {
    let text = match result {
        Ok(output) => &mut output.content,
        Err(
            ToolError::Invalid(text)
            | ToolError::Transient(text)
            | ToolError::Permanent(text)
            | ToolError::Canceled(text),
        ) => text,
    };
    for fragment in fragments {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&fragment.encoded());
    }
}

#[async_trait]
impl CompactionHook for SessionHooks {
    async fn may_compact(&self) -> Result<(), String> {
        let trigger = self.compaction_trigger();
        let input = json!({"trigger": trigger, "custom_instructions": null});
        let combined = self.fire(Occasion::PreCompact, trigger, input).await;
        let blocked = (combined.choice == HookChoice::Deny).then(|| combined.reason());
        match blocked.or(combined.stop) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    async fn after_compact(&self, history: &[Arc<Message>]) -> Vec<Fragment> {
        let trigger = self.compaction_trigger();
        let summary = history.iter().rev().find_map(|message| {
            message.parts.iter().find_map(|part| match part {
                Part::Compaction(compaction) => Some(compaction.summary.clone()),
                _ => None,
            })
        });
        let input = json!({"trigger": trigger, "compact_summary": summary});
        self.fire(Occasion::PostCompact, trigger, input).await;
        if self.0.facts.agent.is_some() {
            return Vec::new();
        }
        let source = "compact";
        let combined = self
            .fire(Occasion::SessionStart, source, json!({ "source": source }))
            .await;
        self.take_environment();
        fragments(combined.context)
    }
}

impl SessionHooks {
    fn compaction_trigger(&self) -> &'static str {
        if lock(&self.0.state).turn.is_manual {
            "manual"
        } else {
            "auto"
        }
    }
}

#[async_trait]
impl SessionHook for SessionHooks {
    async fn session_started(&self, session: &SessionInfo, opening: SessionOpening) -> Result<(), String> {
        if let Some((_, model)) = &session.model {
            lock(&self.0.state)
                .turn
                .model
                .get_or_insert_with(|| model.clone());
        }
        let combined = match &self.0.facts.agent {
            Some((_, kind)) => self.fire(Occasion::SubagentStart, kind, json!({})).await,
            None => {
                let source = match opening {
                    SessionOpening::New => "startup",
                    SessionOpening::Resumed => "resume",
                    SessionOpening::Forked => "fork",
                };
                self.fire(Occasion::SessionStart, source, json!({ "source": source }))
                    .await
            }
        };
        self.take_environment();
        let mut state = lock(&self.0.state);
        state.pending.extend(fragments(combined.context));
        if combined.choice == HookChoice::Deny {
            state.warnings.extend(combined.reasons);
        }
        let problems = std::mem::take(&mut state.warnings);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }

    async fn session_ended(&self, _: &SessionInfo, closing: SessionClosing) -> Result<(), String> {
        if self.0.facts.agent.is_some() {
            return Ok(());
        }
        let reason = match closing {
            SessionClosing::Ended => "prompt_input_exit",
            SessionClosing::Parked | SessionClosing::Shutdown | SessionClosing::Failed => "other",
        };
        let combined = self
            .fire(Occasion::SessionEnd, reason, json!({ "reason": reason }))
            .await;
        let mut problems = self.take_messages();
        problems.extend(combined.reasons);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }
}
