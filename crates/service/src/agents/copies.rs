//! SUB-6: copies of the files that sub-agents work in, while they run and when they end.

use std::time::Duration;

use windlass_api::SessionId;
use windlass_core::log::{AgentQuery, AgentRow, AgentState};

use super::start::warn;
use crate::Service;

/// Minimum time between two searches for files that several sub-agents change.
const INTERVAL: Duration = Duration::from_secs(5);

/// Files that several running sub-agents change, as far as the session above knows about them.
#[derive(Default)]
pub(super) struct Collisions {
    looked: Option<Duration>,
    told: Vec<String>,
}

impl Collisions {
    /// Looks for files that this sub-agent and others beside it have changed, and reports new ones.
    pub(super) async fn look(&mut self, service: &Service, row: &AgentRow) {
        let now = service.inner.clock.elapsed();
        let is_early = self
            .looked
            .is_some_and(|last| now.saturating_sub(last) < INTERVAL);
        if row.job.worktree.is_none() || is_early {
            return;
        }
        self.looked = Some(now);
        let query = AgentQuery::Children(row.family.parent.clone());
        let rows = service.inner.store.agents(&query).await.unwrap_or_default();
        let beside = rows
            .iter()
            .filter(|row| row.status.state.is_active() && row.job.worktree.is_some());
        let beside: Vec<SessionId> = beside.map(|row| row.session.clone()).collect();
        let Ok(copies) = service.copies() else { return };
        if beside.len() < 2 {
            return;
        }
        let mut found = copies.collisions(&beside).await.unwrap_or_default();
        found.retain(|path| !self.told.contains(path));
        if !found.is_empty() {
            let text = format!("several agents change the same files: {}", found.join(", "));
            warn(service, &row.family.parent, vec![text]);
            self.told.extend(found);
        }
    }
}

/// Removes the copy of a sub-agent that has finished without changing anything.
pub(super) async fn drop_unchanged(service: &Service, row: &mut AgentRow) {
    if row.job.worktree.is_none() || row.status.state != AgentState::Done {
        return;
    }
    let Ok(copies) = service.copies() else { return };
    let is_unchanged = matches!(copies.changes(&row.session).await, Ok(changes) if changes.is_empty());
    if is_unchanged && copies.discard(&row.session).await.is_ok() {
        row.job.worktree = None;
        let _ = service.inner.store.set_worktree(&row.session, None).await;
    }
}
