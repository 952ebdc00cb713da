//! Opens a session: reads only what a turn needs from a log that may be very long.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::event::{Event, SessionEvent};
use windlass_core::id::SessionId;
use windlass_core::log::{Entry, Lease, LogError, Opened};

use super::entries::{entry, raw};
use super::failure::told;
use super::find;

/// Reads what a turn needs of a session whose lease is taken.
pub(super) fn opened(connection: &Connection, id: &SessionId, lease: Lease) -> Result<Opened, LogError> {
    let info = find::get(connection, id)?.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let base: i64 = connection
        .query_row(
            "SELECT base_seq FROM session WHERE id = ?1",
            [id.as_str()],
            |row| row.get(0),
        )
        .map_err(told)?;
    let draft: Option<String> = connection
        .query_row(
            "SELECT payload FROM draft WHERE session = ?1",
            [id.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(told)?;
    let draft = draft.map(|text| serde_json::from_str(&text)).transpose();
    Ok(Opened {
        lease,
        info,
        entries: history(connection, id, base)?,
        // Half a reply that cannot be read is worth less than the session.
        draft: draft.unwrap_or_default(),
        dropped: None,
    })
}

/// Reads the entries that make up the history: the messages that count, and everything of an unfinished turn.
fn history(connection: &Connection, id: &SessionId, base: i64) -> Result<Vec<Entry>, LogError> {
    let since = since(connection, id, base)?;
    let mut entries = match since.first() {
        Some(first) => before(connection, id, base, &first.event)?,
        None => Vec::new(),
    };
    entries.extend(since);
    Ok(entries)
}

/// Reads the entries that count from `base` on. Once a turn has ended, tool results are part of messages.
fn since(connection: &Connection, id: &SessionId, base: i64) -> Result<Vec<Entry>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT seq, time, payload FROM entry WHERE session = ?1 AND seq >= ?2 \
             AND kind IN ('message', 'compaction', 'rewind', 'goal', 'goal_completed', 'goal_run', 'goal_turn', \
             'goal_check', 'goal_verdict', 'goal_state', 'plan', 'queue', 'tool_result', 'final', 'canceled', 'failed') AND (kind <> 'tool_result' OR seq > coalesce((SELECT seq FROM entry WHERE session = ?1 \
             AND kind IN ('final', 'canceled', 'failed') ORDER BY seq DESC LIMIT 1), 0)) ORDER BY seq",
        )
        .map_err(told)?;
    let rows = select.query_map(params![id.as_str(), base], raw).map_err(told)?;
    rows.map(|row| row.map_err(told).and_then(|raw| entry(id, raw)))
        .collect()
}

/// Reads the entries that count from before a compaction: the messages it lists, including the very first
/// one, the goals, and the queue at that time. Empty if the history does not start with a compaction.
fn before(connection: &Connection, id: &SessionId, base: i64, first: &Event) -> Result<Vec<Entry>, LogError> {
    let Event::Session(SessionEvent::Compaction { history, .. }) = first else {
        return Ok(Vec::new());
    };
    let mut versions = connection
        .prepare_cached(
            "SELECT seq, time, payload FROM entry INDEXED BY entry_message WHERE session = ?1 AND message = ?2 \
             AND seq < ?3",
        )
        .map_err(told)?;
    let mut entries = Vec::with_capacity(history.len());
    for message in history {
        let key = params![id.as_str(), message.as_str(), base];
        for row in versions.query_map(key, raw).map_err(told)? {
            entries.push(entry(id, row.map_err(told)?)?);
        }
    }
    // Rewinds decide which version of a message and which goal counts.
    let few = [
        "SELECT seq, time, payload FROM entry INDEXED BY entry_rewind WHERE session = ?1 AND kind = 'rewind' \
         AND seq < ?2",
        "SELECT seq, time, payload FROM entry INDEXED BY entry_goal WHERE session = ?1 \
         AND kind IN ('goal', 'goal_completed', 'goal_run', 'goal_turn', 'goal_check', 'goal_verdict', 'goal_state', \
         'plan') AND seq < ?2",
    ];
    for query in few {
        let mut select = connection.prepare_cached(query).map_err(told)?;
        let key = params![id.as_str(), base];
        for row in select.query_map(key, raw).map_err(told)? {
            entries.push(entry(id, row.map_err(told)?)?);
        }
    }
    entries.extend(queue(connection, id, base)?);
    entries.sort_by_key(|entry| entry.seq);
    Ok(entries)
}

/// Reads the queue at the time of a compaction. Every turn starts by writing the queue again, so only the
/// turn of the compaction is searched.
fn queue(connection: &Connection, id: &SessionId, base: i64) -> Result<Option<Entry>, LogError> {
    let found = connection
        .prepare_cached(
            "SELECT seq, time, payload, kind FROM entry WHERE session = ?1 AND seq < ?2 \
             AND kind IN ('queue', 'final', 'canceled', 'failed') ORDER BY seq DESC LIMIT 1",
        )
        .and_then(|mut select| {
            let kind = |row: &rusqlite::Row<'_>| Ok((raw(row)?, row.get::<_, String>(3)?));
            select.query_row(params![id.as_str(), base], kind).optional()
        })
        .map_err(told)?;
    match found {
        Some((raw, kind)) if kind == "queue" => entry(id, raw).map(Some),
        _ => Ok(None),
    }
}
