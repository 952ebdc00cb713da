//! Entries of a session.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};
use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, SessionEvent};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Batch, DraftChange, Entry, Lease, LogError, event_kind, is_milestone, searchable};
use windlass_core::message::Message;
use windlass_core::tool::SAMPLING;

use super::connection::execute;
use super::failure::{damaged, told};
use super::lease::signed;
use super::{agents, books, goals, lease};

/// Maximum age in milliseconds of a session's time of change during a turn.
const LAG: i64 = 1000;

/// Writes a batch atomically.
pub(super) fn append(connection: &Connection, lease: &Lease, batch: &Batch) -> Result<(), LogError> {
    lease::check(connection, lease)?;
    let id = &lease.session;
    for (seq, event) in (batch.first_seq..).zip(&batch.events) {
        insert(connection, id, seq, batch.time, event)?;
        reflect(connection, id, seq, event)?;
        agents::reflect(connection, id, batch.time, event)?;
        goals::reflect(connection, id, batch.time, event)?;
    }
    draft(connection, id, batch)?;
    for booking in &batch.bookings {
        books::book(connection, id, booking)?;
    }
    if !batch.events.is_empty() {
        let last = batch.first_seq + batch.events.len() as u64 - 1;
        execute(
            connection,
            "UPDATE session SET last_seq = max(last_seq, ?2) WHERE id = ?1",
            &[&id.as_str(), &signed(last)],
        )?;
        // Two indexes contain the time: within a turn it may lag behind, to write fewer pages.
        let lag = match batch.events.iter().any(is_milestone) {
            true => 0,
            false => LAG,
        };
        execute(
            connection,
            "UPDATE session SET updated_at = ?2 WHERE id = ?1 AND updated_at + ?3 <= ?2",
            &[&id.as_str(), &signed(batch.time.0), &lag],
        )?;
    }
    Ok(())
}

fn insert(
    connection: &Connection,
    id: &SessionId,
    seq: u64,
    time: Timestamp,
    event: &Event,
) -> Result<(), LogError> {
    let payload = serde_json::to_string(event).map_err(|error| damaged("an event", error))?;
    let message = match event {
        Event::Message { message } => Some(message.id.as_str()),
        _ => None,
    };
    connection
        .prepare_cached(
            "INSERT INTO entry (session, seq, kind, message, payload, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .and_then(|mut insert| {
            let kind = event_kind(&payload);
            insert.execute(params![
                id.as_str(),
                signed(seq),
                kind,
                message,
                payload,
                signed(time.0)
            ])
        })
        .map(drop)
        .map_err(told)
}

/// Updates the session's row to match its entries.
fn reflect(connection: &Connection, id: &SessionId, seq: u64, event: &Event) -> Result<(), LogError> {
    let update = |sql: &str, values: &[&dyn rusqlite::ToSql]| execute(connection, sql, values);
    let standing = |word: &str| {
        update(
            "UPDATE session SET standing = ?2 WHERE id = ?1",
            &[&id.as_str(), &word],
        )
    };
    match event {
        Event::Start { provider, model } => update(
            "UPDATE session SET standing = 'working', provider = ?2, model = ?3 WHERE id = ?1",
            &[&id.as_str(), provider, model],
        ),
        Event::Message { message } => said(connection, id, seq, message),
        // A request that a tool made says nothing about the conversation.
        Event::Usage { cause, .. } if cause.starts_with(SAMPLING) => Ok(()),
        Event::Usage { usage, .. } => update(
            "UPDATE session SET context_tokens = ?2 WHERE id = ?1",
            &[
                &id.as_str(),
                &signed(usage.total_input().saturating_add(usage.output)),
            ],
        ),
        Event::Session(SessionEvent::Compaction { history, .. }) => {
            // From here on the model sees the messages this entry lists and everything after it.
            let base = (!history.is_empty()).then(|| signed(seq));
            let summary = history.get(1).or(history.first()).map(MessageId::as_str);
            update(
                "UPDATE session SET base_seq = coalesce(?2, base_seq), summary = ?3 WHERE id = ?1",
                &[&id.as_str(), &base, &summary],
            )
        }
        // A rewind to before the last compaction may make any entry count again; the next compaction sets a
        // better base.
        Event::Session(SessionEvent::Rewind { to }) => update(
            "UPDATE session SET base_seq = 1, summary = NULL WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry \
             WHERE session = ?1 AND seq = session.base_seq AND seq <= ?2 AND kind = 'compaction')",
            &[&id.as_str(), &signed(*to)],
        ),
        Event::Session(SessionEvent::Title { title }) => update(
            "UPDATE session SET title = ?2 WHERE id = ?1",
            &[&id.as_str(), title],
        ),
        Event::Final { .. } => standing("answered"),
        Event::Canceled { .. } => standing("canceled"),
        Event::Failed { .. } => standing("failed"),
        _ => Ok(()),
    }
}

/// Updates the session for a message. A message counts once, whichever version is the last.
fn said(connection: &Connection, id: &SessionId, seq: u64, message: &Message) -> Result<(), LogError> {
    let before: Option<i64> = connection
        .prepare_cached("SELECT min(seq) FROM entry INDEXED BY entry_message WHERE session = ?1 AND message = ?2 AND seq < ?3")
        .and_then(|mut select| {
            select.query_row(params![id.as_str(), message.id.as_str(), signed(seq)], |row| {
                row.get(0)
            })
        })
        .map_err(told)?;
    if before.is_some() {
        return Ok(());
    }
    connection
        .prepare_cached("UPDATE session SET messages = messages + 1 WHERE id = ?1")
        .and_then(|mut update| update.execute([id.as_str()]))
        .map(drop)
        .map_err(told)
}

/// Adds the messages since the last call to the search index. Called at the end of a turn: indexing each
/// message alone would get more expensive with every message already there.
pub(super) fn index(connection: &Connection, id: &SessionId) -> Result<(), LogError> {
    let from: i64 = connection
        .query_row(
            "SELECT searched_seq FROM session WHERE id = ?1",
            [id.as_str()],
            |row| row.get(0),
        )
        .map_err(told)?;
    let mut select = connection
        .prepare_cached(
            "SELECT seq, time, payload FROM entry WHERE session = ?1 AND seq > ?2 AND message IS NOT NULL ORDER BY seq",
        )
        .map_err(told)?;
    let rows = select.query_map(params![id.as_str(), from], raw).map_err(told)?;
    let mut known = HashSet::new();
    for row in rows {
        let row = row.map_err(told)?;
        let seq = row.seq;
        // An unreadable entry cannot be indexed either; readers of the session get the error.
        let Ok(Entry {
            event: Event::Message { message },
            ..
        }) = entry(id, row)
        else {
            continue;
        };
        let text = searchable(&message);
        if known.insert(message.id.clone()) && !text.is_empty() {
            connection
                .prepare_cached("INSERT INTO said (text, session, seq) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute(params![text, id.as_str(), seq]))
                .map_err(told)?;
        }
    }
    connection
        .execute(
            "UPDATE session SET searched_seq = last_seq WHERE id = ?1",
            [id.as_str()],
        )
        .map(drop)
        .map_err(told)
}

fn draft(connection: &Connection, id: &SessionId, batch: &Batch) -> Result<(), LogError> {
    match &batch.draft {
        DraftChange::Keep => Ok(()),
        DraftChange::Clear => connection
            .prepare_cached("DELETE FROM draft WHERE session = ?1")
            .and_then(|mut delete| delete.execute([id.as_str()]))
            .map(drop)
            .map_err(told),
        DraftChange::Set(message) => {
            let payload = serde_json::to_string(message).map_err(|error| damaged("a draft", error))?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO draft (session, payload, time) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute(params![id.as_str(), payload, signed(batch.time.0)]))
                .map(drop)
                .map_err(told)
        }
    }
}

pub(super) fn after(
    connection: &Connection,
    id: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT seq, time, payload FROM entry WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )
        .map_err(told)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select
        .query_map(params![id.as_str(), signed(after), limit], raw)
        .map_err(told)?;
    rows.map(|row| row.map_err(told).and_then(|raw| entry(id, raw)))
        .collect()
}

/// A row as stored.
pub(super) struct Raw {
    seq: i64,
    time: i64,
    payload: String,
}

pub(super) fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        seq: row.get(0)?,
        time: row.get(1)?,
        payload: row.get(2)?,
    })
}

pub(super) fn entry(id: &SessionId, raw: Raw) -> Result<Entry, LogError> {
    let event = serde_json::from_str(&raw.payload)
        .map_err(|error| damaged(format!("entry {} of session {id}", raw.seq), error))?;
    Ok(Entry {
        seq: raw.seq.unsigned_abs(),
        time: Timestamp(raw.time.unsigned_abs()),
        event,
    })
}
