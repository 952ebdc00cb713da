//! A new session that starts with the history of another one.

use std::sync::Arc;

use windlass_api::{Event, SessionId, Waiting};
use windlass_core::log::{Batch, Durability, Label, LogError, NewSession, Opened};
use windlass_core::message::Message;

use crate::Inner;

/// Number of entries copied at a time.
const PAGE: usize = 500;

/// Copies what happened up to an entry, or all of it, into a new session. The other session is only read: another process
/// may work in it. A new session without a folder gets the folder of the other one.
pub(crate) async fn fork(
    inner: &Inner,
    of: &SessionId,
    upto: Option<u64>,
    new: NewSession,
) -> Result<Opened, LogError> {
    let info = inner
        .store
        .get(of)
        .await?
        .ok_or_else(|| LogError::Unknown(of.clone()))?;
    let now = new.time;
    let place = match new.place {
        place if place.is_empty() => info.place.clone(),
        place => place,
    };
    let new = NewSession {
        label: Label {
            title: info.label.title.clone(),
            ..Label::default()
        },
        place,
        ..new
    };
    let made = inner.store.create(new, &inner.owner).await?;
    let session = made.info.id.clone();
    let mut after = 0;
    loop {
        let mut entries = inner.store.entries(of, after, PAGE).await?;
        let page = entries.len();
        entries.retain(|entry| upto.is_none_or(|upto| entry.seq <= upto));
        let Some(last) = entries.last().map(|entry| entry.seq) else {
            break;
        };
        let batch = Batch {
            first_seq: after + 1,
            events: entries
                .into_iter()
                .map(|entry| moved(entry.event, &session))
                .collect(),
            time: now,
            durability: Durability::Process,
            ..Batch::default()
        };
        inner.store.append(&made.lease, batch).await?;
        after = last;
        if page < PAGE {
            break;
        }
    }
    // Opened like any other session, so that an incomplete turn is closed.
    inner.store.open(&session, &inner.owner).await
}

/// Converts an event for the new session. Queued inputs stay with the original session, and are not answered
/// twice.
fn moved(event: Event, session: &SessionId) -> Event {
    match event {
        Event::Message { message } => Event::Message {
            message: Arc::new(Message {
                session_id: session.clone(),
                ..(*message).clone()
            }),
        },
        Event::Waiting(Waiting::Queue { .. }) => Event::Waiting(Waiting::Queue {
            messages: Vec::new(),
            steers: Vec::new(),
        }),
        other => other,
    }
}
