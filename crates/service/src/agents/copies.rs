//! SUB-6: copies of the files that sub-agents work in, while they run and when they end.

use std::time::Duration;

use windlass_api::{SessionId, SessionInfo};
use windlass_core::log::{AgentQuery, AgentRow};

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
        let parent = &row.family.parent;
        let query = AgentQuery::Active(parent.clone());
        let rows = service.inner.store.agents(&query).await.unwrap_or_default();
        let beside = rows
            .iter()
            .filter(|row| row.family.parent == *parent && row.job.worktree.is_some());
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

/// Gives a sub-agent that works in a copy of the files this copy, and returns its folder. A copy that is there is kept.
pub(super) async fn prepare(
    service: &Service,
    parent: &SessionInfo,
    row: &mut AgentRow,
) -> Result<String, String> {
    let made = match service.copies() {
        Ok(copies) => copies.make(parent, &row.session).await,
        Err(why) => Err(why),
    };
    let folder = made.map_err(|why| format!("its own copy of the files cannot be made: {why}"))?;
    let stored = service
        .inner
        .store
        .set_worktree(&row.session, Some(&folder))
        .await;
    stored.map_err(|error| error.to_string())?;
    row.job.place.clone_from(&folder);
    row.job.worktree = Some(folder.clone());
    Ok(folder)
}

/// Removes the copy of a sub-agent that has not changed anything in it.
pub(super) async fn drop_unchanged(service: &Service, row: &mut AgentRow) {
    if row.job.worktree.is_none() {
        return;
    }
    let Ok(copies) = service.copies() else { return };
    let is_unchanged = matches!(copies.changes(&row.session).await, Ok(changes) if changes.is_empty());
    if is_unchanged && copies.discard(&row.session).await.is_ok() {
        row.job.worktree = None;
        let _ = service.inner.store.set_worktree(&row.session, None).await;
    }
}
