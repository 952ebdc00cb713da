//! The smaller interfaces of embedders as hooks.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AnswerAction, CallAction, CallHook, Hook, PermissionAction, TurnHook};
use crate::middleware::{IterationView, Middleware, Verdict};
use crate::permission::{Decision, Denial, PermissionHook, Proposal};
use crate::run::IncompleteWork;

/// LOOP-12: a [`Middleware`] as a hook.
pub struct MiddlewareHook(pub Arc<dyn Middleware>);

impl Hook for MiddlewareHook {
    fn name(&self) -> &str {
        "middleware"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for MiddlewareHook {
    async fn before_iteration(&self, view: IterationView<'_>) -> Verdict {
        self.0.before_iteration(view).await
    }

    async fn after_iteration(&self, view: IterationView<'_>) -> Verdict {
        self.0.after_iteration(view).await
    }
}

/// LOOP-13: an [`IncompleteWork`] as a hook.
pub struct IncompleteWorkHook(pub Arc<dyn IncompleteWork>);

impl Hook for IncompleteWorkHook {
    fn name(&self) -> &str {
        "incomplete work"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for IncompleteWorkHook {
    async fn before_answer(&self, answer: &str) -> AnswerAction {
        match self.0.prompt(answer).await {
            Some(prompt) => AnswerAction::Continue(prompt),
            None => AnswerAction::Accept,
        }
    }
}

/// LOOP-14: a [`PermissionHook`] as a hook. Its yes answers the question that the rules would ask; it does
/// not lift a denial.
pub struct PermissionRuleHook(pub Arc<dyn PermissionHook>);

impl Hook for PermissionRuleHook {
    fn name(&self) -> &str {
        "permission hook"
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }
}

#[async_trait]
impl CallHook for PermissionRuleHook {
    async fn before_call(&self, proposal: &Proposal) -> CallAction {
        match self.0.can_execute_tool(proposal) {
            Some(Decision::Deny(denial)) => CallAction::Deny(denial_text(denial)),
            Some(Decision::Ask) => CallAction::Ask("the permission hook asks for approval".to_owned()),
            Some(Decision::Allow) | None => CallAction::Proceed,
        }
    }

    async fn on_permission_request(&self, proposal: &Proposal) -> PermissionAction {
        match self.0.can_execute_tool(proposal) {
            Some(Decision::Allow) => PermissionAction::Allow,
            Some(Decision::Deny(denial)) => PermissionAction::Deny(denial_text(denial)),
            Some(Decision::Ask) | None => PermissionAction::AskUser,
        }
    }
}

fn denial_text(denial: Denial) -> String {
    denial
        .feedback
        .or(denial.reason)
        .unwrap_or_else(|| "Permission denied".to_owned())
}
