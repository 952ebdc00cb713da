//! Finds, lists and deletes sessions.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{
    Found, Label, LogError, SessionInfo, SessionQuery, SessionStatus, Totals, UserName,
};
use windlass_words::{by_session, query_words, related, stem};

use super::failure::told;
use super::{lease, memory};

/// Columns of a session. What sessions below it used is part of its totals.
const COLUMNS: &str = "id, parent, title, name, key, place, standing, provider, model, messages, \
    session.prompt_tokens + coalesce(descendants.prompt_tokens, 0), \
    session.completion_tokens + coalesce(descendants.completion_tokens, 0), context_tokens, \
    session.cost_usd + coalesce(descendants.cost_usd, 0), summary, last_seq, created_at, updated_at, user_name, \
    CASE WHEN session.cost_usd = 0 THEN \
      EXISTS (SELECT 1 FROM booking WHERE booking.session = session.id AND booking.cost_usd IS NULL) ELSE 0 END";

/// Matches that are read for each one that is shown, so that sessions with several of them are recognized.
const WIDER: usize = 5;

const TABLES: &str = "session LEFT JOIN descendants ON descendants.session = session.id";

pub(super) fn get(connection: &Connection, id: &SessionId) -> Result<Option<SessionInfo>, LogError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM {TABLES} WHERE id = ?1"))
        .and_then(|mut select| select.query_row([id.as_str()], info).optional())
        .map_err(told)
}

pub(super) fn list(connection: &Connection, query: &SessionQuery) -> Result<Vec<SessionInfo>, LogError> {
    let limit = match query.limit {
        0 => i64::MAX,
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    };
    let mut select = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE (?1 IS NULL OR place = ?1) \
             AND (?2 IS NULL OR name = ?2 OR key = ?2 OR substr(id, 1, length(?2)) = ?2) \
             AND (?3 OR parent IS NULL) AND (NOT ?4 OR last_seq > 0 OR coalesce(name, key, title) IS NOT NULL) \
             AND (?6 IS NULL OR user_name = ?6) ORDER BY updated_at DESC, id DESC LIMIT ?5"
        ))
        .map_err(told)?;
    let SessionQuery {
        place,
        called,
        children,
        used,
        user,
        ..
    } = query;
    let user = user.as_ref().map(UserName::as_str);
    let rows = select
        .query_map(params![place, called, children, used, limit, user], info)
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

fn info(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let number = |index: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
    let provider: Option<String> = row.get(7)?;
    let model: Option<String> = row.get(8)?;
    Ok(SessionInfo {
        id: SessionId::from(row.get::<_, String>(0)?),
        parent: row.get::<_, Option<String>>(1)?.map(SessionId::from),
        label: Label {
            title: row.get(2)?,
            name: row.get(3)?,
            key: row.get(4)?,
        },
        place: row.get(5)?,
        standing: match row.get::<_, String>(6)?.as_str() {
            "working" => SessionStatus::Working,
            "answered" => SessionStatus::Answered,
            "canceled" => SessionStatus::Canceled,
            "failed" => SessionStatus::Failed,
            _ => SessionStatus::New,
        },
        model: provider.zip(model),
        totals: Totals {
            messages: number(9)?,
            prompt_tokens: number(10)?,
            completion_tokens: number(11)?,
            context_tokens: number(12)?,
            cost_usd: row.get(13)?,
            unpriced: row.get(19)?,
        },
        summary: row.get::<_, Option<String>>(14)?.map(MessageId::from),
        last_seq: number(15)?,
        created_at: Timestamp(number(16)?),
        updated_at: Timestamp(number(17)?),
        user: UserName::stored(row.get::<_, String>(18)?),
        waits: None,
    })
}

pub(super) fn label(connection: &Connection, id: &SessionId, label: &Label) -> Result<(), LogError> {
    let changed = connection
        .execute(
            "UPDATE session SET title = coalesce(?2, title), name = coalesce(?3, name), key = coalesce(?4, key) \
             WHERE id = ?1",
            params![id.as_str(), label.title, label.name, label.key],
        )
        .map_err(told)?;
    match changed {
        0 => Err(LogError::Unknown(id.clone())),
        _ => Ok(()),
    }
}

pub(super) fn delete(connection: &Connection, id: &SessionId, now: Timestamp) -> Result<(), LogError> {
    if let Some(owner) = lease::holder(connection, id, now)? {
        return Err(LogError::Busy {
            session: id.clone(),
            owner,
        });
    }
    connection
        .execute("DELETE FROM said WHERE session = ?1", [id.as_str()])
        .map_err(told)?;
    memory::of_session(connection, id)?;
    // The money was spent all the same, so the bookings stay.
    let gone = connection
        .execute("DELETE FROM session WHERE id = ?1", [id.as_str()])
        .map_err(told)?;
    if gone == 0 {
        return Err(LogError::Unknown(id.clone()));
    }
    connection
        .execute(
            "DELETE FROM frame WHERE digest NOT IN (SELECT frame FROM exchange WHERE frame IS NOT NULL)",
            [],
        )
        .map(drop)
        .map_err(told)
}

pub(super) fn search(
    connection: &Connection,
    words: &str,
    user: Option<&UserName>,
    limit: usize,
) -> Result<Vec<Found>, LogError> {
    let query = quoted(words);
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = connection
        .prepare_cached(
            "SELECT said.session, coalesce(session.name, session.title, ''), said.seq, \
             snippet(said, 0, '[', ']', '…', 16), rank FROM said JOIN session ON session.id = said.session \
             WHERE said MATCH ?1 AND (?3 IS NULL OR session.user_name = ?3) ORDER BY rank LIMIT ?2",
        )
        .map_err(told)?;
    let most = i64::try_from(limit.saturating_mul(WIDER)).unwrap_or(i64::MAX);
    let rows = select
        .query_map(params![query, most, user.map(UserName::as_str)], |row| {
            let found = Found {
                session: SessionId::from(row.get::<_, String>(0)?),
                title: row.get(1)?,
                seq: row.get::<_, i64>(2)?.unsigned_abs(),
                snippet: row.get(3)?,
            };
            // The smallest rank is the best.
            Ok((found, -row.get::<_, f64>(4)?))
        })
        .map_err(told)?;
    let found = rows.collect::<Result<Vec<_>, _>>().map_err(told)?;
    let found = by_session(found, limit, |(found, score)| (found.session.clone(), *score));
    Ok(found.into_iter().map(|(found, _)| found).collect())
}

/// Quotes the words of a question so that search operators have no effect. Any of them may occur, or one that belongs to
/// it; the rank puts the rare ones first. The last word may be incomplete.
fn quoted(question: &str) -> String {
    let words = query_words(question);
    let last = words.last().map(|word| format!("\"{word}\"*"));
    let others = words.iter().flat_map(|word| related(&stem(word)));
    let all = words.iter().map(String::as_str).chain(others.copied());
    let quoted = all.map(|word| format!("\"{word}\""));
    quoted.chain(last).collect::<Vec<_>>().join(" OR ")
}

pub(super) fn preference(
    connection: &Connection,
    scope: &str,
    name: &str,
) -> Result<Option<String>, LogError> {
    connection
        .query_row(
            "SELECT value FROM preference WHERE scope = ?1 AND name = ?2",
            [scope, name],
            |row| row.get(0),
        )
        .optional()
        .map_err(told)
}

pub(super) fn preferences(connection: &Connection, scope: &str) -> Result<Vec<(String, String)>, LogError> {
    connection
        .prepare_cached("SELECT name, value FROM preference WHERE scope = ?1 ORDER BY name")
        .and_then(|mut select| {
            let rows = select.query_map([scope], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .map_err(told)
}

/// Returns the number of the first entry of a message.
pub(super) fn place(
    connection: &Connection,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<u64>, LogError> {
    let number: Option<i64> = connection
        .prepare_cached("SELECT min(seq) FROM entry WHERE session = ?1 AND message = ?2")
        .and_then(|mut select| select.query_row([session.as_str(), message.as_str()], |row| row.get(0)))
        .map_err(told)?;
    Ok(number.map(i64::unsigned_abs))
}

pub(super) fn settle_preference(
    connection: &Connection,
    scope: &str,
    name: &str,
    value: &str,
) -> Result<String, LogError> {
    if let Some(known) = preference(connection, scope, name)? {
        return Ok(known);
    }
    set_preference(connection, scope, name, Some(value))?;
    Ok(value.to_owned())
}

pub(super) fn set_preference(
    connection: &Connection,
    scope: &str,
    name: &str,
    value: Option<&str>,
) -> Result<(), LogError> {
    let done = match value {
        Some(value) => connection.execute(
            "INSERT OR REPLACE INTO preference (scope, name, value) VALUES (?1, ?2, ?3)",
            [scope, name, value],
        ),
        None => connection.execute(
            "DELETE FROM preference WHERE scope = ?1 AND name = ?2",
            [scope, name],
        ),
    };
    done.map(drop).map_err(told)
}
