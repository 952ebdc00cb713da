//! Whether a call may run. Deciding is pure; only asking waits.

use async_trait::async_trait;
use serde_json::Value;

use crate::id::CallId;
use crate::tool::Category;

/// A validated call, as rules and people judge it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The kind of effect.
    pub category: Category,
    /// The arguments.
    pub arguments: Value,
}

/// What may happen with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It does not run.
    Deny(Denial),
}

/// Why a call does not run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Denial {
    /// Shown to the user.
    pub reason: Option<String>,
    /// Told to the model instead of ending the turn.
    pub feedback: Option<String>,
}

/// An embedder's say before the built-in rules. Must not block and must not have effects.
pub trait PermissionHook: Send + Sync {
    /// `None` leaves the call to the rules.
    fn can_execute_tool(&self, proposal: &Proposal) -> Option<Decision>;
}

/// Asks a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for the answer. The loop drops the future when the turn is canceled.
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial>;
}

/// Nobody is there: every question is answered with no.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

#[async_trait]
impl Approver for NobodyToAsk {
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        let reason = format!("`{}` needs approval and nobody is there to ask", proposal.tool);
        Err(Denial {
            reason: Some(reason),
            feedback: None,
        })
    }
}

/// What each category gets when no rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryDefaults {
    /// Whether writes run without asking.
    pub write: bool,
    /// Whether admin calls run without asking.
    pub admin: bool,
}

impl Default for CategoryDefaults {
    fn default() -> Self {
        Self {
            write: true,
            admin: false,
        }
    }
}

/// Decides about one call: the embedder's hook first, then the category.
pub fn decide(
    proposal: &Proposal,
    hook: Option<&dyn PermissionHook>,
    defaults: CategoryDefaults,
) -> Decision {
    if let Some(decision) = hook.and_then(|hook| hook.can_execute_tool(proposal)) {
        return decision;
    }
    let allowed = match proposal.category {
        Category::Read => true,
        Category::Write => defaults.write,
        Category::Admin => defaults.admin,
    };
    if allowed { Decision::Allow } else { Decision::Ask }
}
