//! Entries of a session, and the index over what was said in them.

use std::collections::HashSet;
use std::rc::Rc;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use windlass_core::clock::Timestamp;
use windlass_core::event::Event;
use windlass_core::id::SessionId;
use windlass_core::log::{Entry, LogError, searchable};

use super::context::Context;
use super::failure::{Fault, damaged};
use super::search::Lexemes;
use super::sql::{clean, limited, number, row, rows, run, signed, time};

/// A row as stored.
pub(super) struct Raw {
    pub(super) seq: u64,
    time: Timestamp,
    payload: String,
}

impl Raw {
    /// Reads the columns `seq, time, payload`.
    pub(super) fn read(row: &Row) -> Self {
        Self {
            seq: number(row, 0),
            time: time(row, 1),
            payload: row.get(2),
        }
    }

    pub(super) fn entry(self, id: &SessionId) -> Result<Entry, LogError> {
        let event = serde_json::from_str(&self.payload)
            .map_err(|error| damaged(format!("entry {} of session {id}", self.seq), error))?;
        Ok(Entry {
            seq: self.seq,
            time: self.time,
            event,
        })
    }
}

pub(super) async fn after(
    client: &impl GenericClient,
    id: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Raw>, Fault> {
    let sql = "SELECT seq, time, payload FROM entry WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    // Unlike elsewhere, 0 is no entry at all.
    let limit = if limit == 0 { 0 } else { limited(limit) };
    let found = rows(client, sql, &[&id.as_str(), &signed(after), &limit]).await?;
    Ok(found.iter().map(Raw::read).collect())
}

/// Adds the messages since the last call to the search index, without keeping anybody waiting.
pub(super) fn index_later(context: Rc<Context>, session: SessionId) {
    context.indexing.borrow_mut().insert(session.clone());
    tokio::task::spawn_local(async move {
        // A session that could not be indexed is indexed after its next turn.
        let _ = context
            .write(async |transaction, _| index(transaction, &session).await)
            .await;
        context.indexing.borrow_mut().remove(&session);
        context.indexed.notify_waiters();
    });
}

/// Waits until the index is complete.
pub(super) async fn indexed(context: &Context) {
    loop {
        let changed = context.indexed.notified();
        if context.indexing.borrow().is_empty() {
            return;
        }
        changed.await;
    }
}

pub(super) async fn index(client: &Transaction<'_>, id: &SessionId) -> Result<(), Fault> {
    // Locks the session, so that two processes do not index the same messages.
    let sql = "SELECT searched_seq, last_seq FROM session WHERE id = $1 FOR UPDATE";
    let Some(found) = row(client, sql, &[&id.as_str()]).await? else {
        return Ok(());
    };
    let (from, to): (i64, i64) = (found.get(0), found.get(1));
    let sql = "SELECT seq, time, payload FROM entry WHERE session = $1 AND seq > $2 AND message IS NOT NULL ORDER BY seq";
    let mut known = HashSet::new();
    for raw in rows(client, sql, &[&id.as_str(), &from])
        .await?
        .iter()
        .map(Raw::read)
    {
        let seq = raw.seq;
        // An unreadable entry cannot be indexed either; readers of the session get the error.
        let Ok(Entry {
            event: Event::Message { message },
            ..
        }) = raw.entry(id)
        else {
            continue;
        };
        let text = clean(&searchable(&message));
        if known.insert(message.id.clone()) && !text.is_empty() {
            keep(client, id, signed(seq), &text).await?;
        }
    }
    let sql = "UPDATE session SET searched_seq = $2 WHERE id = $1";
    run(client, sql, &[&id.as_str(), &to]).await.map(drop)
}

/// Adds a text to the index, or replaces it.
pub(super) async fn keep(
    client: &impl GenericClient,
    id: &SessionId,
    seq: i64,
    text: &str,
) -> Result<(), Fault> {
    let lexemes = Lexemes::of(text);
    run(
        client,
        "INSERT INTO said (session, seq, text, words, length) VALUES ($1, $2, $3, $4::text::tsvector, $5) \
         ON CONFLICT (session, seq) DO UPDATE SET text = excluded.text, words = excluded.words, length = excluded.length",
        &[&id.as_str(), &seq, &text, &lexemes.vector, &lexemes.length],
    )
    .await
    .map(drop)
}
