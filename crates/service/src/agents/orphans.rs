//! Sub-agents whose process ended while they worked.

use windlass_api::SessionId;
use windlass_core::event::AgentEvent;
use windlass_core::log::{AgentQuery, AgentRow, AgentState, Batch, Durability, History, LogError, recover};

use super::elsewhere::goes_on;
use super::family::last_text;
use crate::Inner;

/// Gives every sub-agent below a session that runs nowhere its end: its record is completed as after a crash, and its
/// state is `orphaned`. One that a server of a cluster takes over continues instead. Returns true if the session started sub-agents whose result is not delivered.
pub(crate) async fn adopt(inner: &Inner, session: &SessionId) -> bool {
    let active = AgentQuery::Active(session.clone());
    for row in inner.store.agents(&active).await.unwrap_or_default() {
        // Refused while the sub-agent runs, here or in another process.
        let runs = inner.store.holder(&row.session).await;
        if matches!(runs, Ok(None)) && !goes_on(inner, &row).await {
            let _ = end(inner, &row, AgentState::Orphaned, None).await;
        }
    }
    let pending = AgentQuery::Pending(session.clone());
    let pending = inner.store.agents(&pending).await.unwrap_or_default();
    !pending.is_empty()
}

/// Ends a sub-agent that is not live, in one write.
pub(super) async fn end(
    inner: &Inner,
    row: &AgentRow,
    state: AgentState,
    reason: Option<(&str, String)>,
) -> Result<(), LogError> {
    let opened = inner.store.open(&row.session, &inner.owner).await?;
    let mut events = recover(&opened.entries, opened.draft, inner.clock.now());
    let mut history = History::read(&opened.entries);
    events.iter().for_each(|event| history.apply(event));
    let (reason, result) = match reason {
        Some((kind, message)) => (Some(kind.to_owned()), message),
        None => (None, last_text(history.messages())),
    };
    let ended = AgentEvent::AgentEnded {
        state,
        reason,
        result,
        claims: Vec::new(),
    };
    // Before the terminal event, as in a run that ends by itself.
    let place = events.len().saturating_sub(1);
    events.insert(place, ended.into_event());
    let batch = Batch {
        first_seq: opened.info.last_seq + 1,
        events,
        time: inner.clock.now(),
        durability: Durability::Disk,
        ..Batch::default()
    };
    let stored = inner.store.append(&opened.lease, batch).await;
    let released = inner.store.release(&opened.lease).await;
    stored.and(released)
}
