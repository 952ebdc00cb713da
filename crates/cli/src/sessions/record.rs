//! Reading a session without working in it.

use std::sync::Arc;

use windlass_api::{Event, Message, MessageId, SessionId};
use windlass_core::log::{Entry, SessionLog};
use windlass_store::SqliteStore;

use crate::exit::Problem;
use crate::keeping::problem;

/// How many entries are read at a time.
const PAGE: usize = 1000;

/// Everything that happened in a session.
pub(crate) async fn record(store: &SqliteStore, session: &SessionId) -> Result<Vec<Entry>, Problem> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let after = all.last().map_or(0, |entry| entry.seq);
        let page = store.entries(session, after, PAGE).await.map_err(problem)?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

/// All messages in the order they were first told, each as it was told last; also those a summary stands for.
pub(super) fn messages<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Arc<Message>> {
    let mut messages: Vec<Arc<Message>> = Vec::new();
    let mut places: std::collections::HashMap<MessageId, usize> = std::collections::HashMap::new();
    for event in events {
        let Event::Message { message } = event else {
            continue;
        };
        let place = *places.entry(message.id.clone()).or_insert(messages.len());
        match messages.get_mut(place) {
            Some(known) => *known = Arc::clone(message),
            None => messages.push(Arc::clone(message)),
        }
    }
    messages
}

/// What a user wrote, without what Windlass put before it.
pub(super) fn said(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        windlass_api::Part::Text(text) if !text.is_surroundings() => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
