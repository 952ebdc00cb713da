//! SUB-5: a sub-agent stops when its budget is used up.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use windlass_core::hook::{Hook, TurnHook};
use windlass_core::log::{AgentRow, AgentState};
use windlass_core::middleware::{IterationView, Verdict};

use super::Family;
use crate::Inner;

/// Stops a sub-agent whose share of the tree's budget is used up.
pub(super) struct BudgetHook {
    inner: Weak<Inner>,
    family: Family,
    row: AgentRow,
}

impl BudgetHook {
    pub(super) fn new(inner: &Arc<Inner>, family: &Family, row: AgentRow) -> Self {
        Self {
            inner: Arc::downgrade(inner),
            family: family.clone(),
            row,
        }
    }
}

impl Hook for BudgetHook {
    fn name(&self) -> &str {
        "agent budget"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for BudgetHook {
    async fn before_iteration(&self, view: IterationView<'_>) -> Verdict {
        let Some(inner) = self.inner.upgrade() else {
            return Verdict::proceed();
        };
        // The first request was paid for when the share was given.
        if view.iteration < 2 {
            return Verdict::proceed();
        }
        let left = inner.store.budget_left(&self.row.session).await;
        let Some(what) = left.ok().and_then(|left| left.used_up()) else {
            return Verdict::proceed();
        };
        self.family.ends_as(AgentState::Failed, "budget");
        Verdict::stop(format!(
            "the budget of this agent is used up: no {what} left of {}",
            self.row.budget
        ))
    }
}
