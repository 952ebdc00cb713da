//! Usage and cost of model calls.

use rusqlite::{Connection, ToSql, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Booking, LogError, Spent, SpentBy, UserName};
use windlass_core::model::Usage;

use super::agents;
use super::connection::execute;
use super::failure::told;
use super::lease::signed;

/// Cause of the bookings that count as turns.
const TURN: &str = "turn";

/// Amounts that a session adds to the sums of all sessions above it.
#[derive(Default)]
pub(super) struct Added {
    pub(super) prompt_tokens: i64,
    pub(super) completion_tokens: i64,
    pub(super) cost_usd: f64,
    pub(super) turns: i64,
    pub(super) run_ms: i64,
}

/// Books a call, and adds it to its session. The rows of the sessions above it are not written: what sessions below
/// used is kept beside them, and added when they are read.
pub(super) fn book(connection: &Connection, id: &SessionId, booking: &Booking) -> Result<(), LogError> {
    let usage = &booking.usage;
    connection
        .prepare_cached(
            "INSERT INTO booking (session, time, provider, model, cause, input, output, cache_read, cache_write, cost_usd, \
             user_name) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
             coalesce((SELECT user_name FROM session WHERE id = ?1), ''))",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                id.as_str(),
                signed(booking.time.0),
                booking.provider,
                booking.model,
                booking.cause,
                signed(usage.input),
                signed(usage.output),
                signed(usage.cache_read),
                signed(usage.cache_write),
                booking.cost_usd
            ])
        })
        .map_err(told)?;
    let added = Added {
        prompt_tokens: signed(usage.total_input()),
        completion_tokens: signed(usage.output),
        cost_usd: booking.cost_usd.unwrap_or_default(),
        turns: i64::from(booking.cause == TURN),
        run_ms: 0,
    };
    execute(
        connection,
        "UPDATE session SET prompt_tokens = prompt_tokens + ?2, completion_tokens = completion_tokens + ?3, \
         cost_usd = cost_usd + ?4 WHERE id = ?1",
        &[
            &id.as_str(),
            &added.prompt_tokens,
            &added.completion_tokens,
            &added.cost_usd,
        ],
    )?;
    agents::spend(connection, id, &added)?;
    add_above(connection, id, &added)
}

/// SES-8: adds amounts to the sums of all sessions above a session.
pub(super) fn add_above(connection: &Connection, id: &SessionId, added: &Added) -> Result<(), LogError> {
    execute(
        connection,
        "INSERT INTO descendants (session, prompt_tokens, completion_tokens, cost_usd, turns, run_ms) \
         WITH RECURSIVE above (id, parent) AS (\
         SELECT upper.id, upper.parent FROM session JOIN session AS upper ON upper.id = session.parent \
         WHERE session.id = ?1 UNION \
         SELECT upper.id, upper.parent FROM above JOIN session AS upper ON upper.id = above.parent) \
         SELECT id, ?2, ?3, ?4, ?5, ?6 FROM above WHERE true \
         ON CONFLICT (session) DO UPDATE SET prompt_tokens = prompt_tokens + excluded.prompt_tokens, \
         completion_tokens = completion_tokens + excluded.completion_tokens, \
         cost_usd = cost_usd + excluded.cost_usd, turns = turns + excluded.turns, run_ms = run_ms + excluded.run_ms",
        &[
            &id.as_str(),
            &added.prompt_tokens,
            &added.completion_tokens,
            &added.cost_usd,
            &added.turns,
            &added.run_ms,
        ],
    )
}

/// Sums up again what the sessions below a session, and below those above it, have used. For sessions that were copied.
pub(super) fn sum_again(connection: &Connection, id: &SessionId) -> Result<(), LogError> {
    execute(
        connection,
        "INSERT INTO descendants (session, prompt_tokens, completion_tokens, cost_usd, turns, run_ms) \
         WITH RECURSIVE above (id, parent) AS (SELECT id, parent FROM session WHERE id = ?1 UNION \
         SELECT upper.id, upper.parent FROM above JOIN session AS upper ON upper.id = above.parent), \
         pair (top, id) AS (SELECT above.id, session.id FROM above JOIN session ON session.parent = above.id \
         UNION SELECT pair.top, session.id FROM pair JOIN session ON session.parent = pair.id) \
         SELECT pair.top, sum(session.prompt_tokens), sum(session.completion_tokens), sum(session.cost_usd), \
         sum(coalesce(agent.turns, 0)), sum(coalesce(agent.run_ms, 0)) \
         FROM pair JOIN session ON session.id = pair.id LEFT JOIN agent ON agent.session = pair.id WHERE true GROUP BY pair.top \
         ON CONFLICT (session) DO UPDATE SET prompt_tokens = excluded.prompt_tokens, \
         completion_tokens = excluded.completion_tokens, cost_usd = excluded.cost_usd, turns = excluded.turns, \
         run_ms = excluded.run_ms",
        &[&id.as_str()],
    )
}

/// Returns the cost of one session and its descendants, or of all sessions.
pub(super) fn spent(
    connection: &Connection,
    session: Option<&SessionId>,
    by: SpentBy,
) -> Result<Vec<Spent>, LogError> {
    let condition = "?1 IS NULL OR booking.session IN (SELECT id FROM below)";
    grouped(connection, by, condition, params![session.map(SessionId::as_str)])
}

/// DIST-7: returns the cost of a user's sessions since a time.
pub(super) fn spent_by(
    connection: &Connection,
    user: &UserName,
    since: Timestamp,
    by: SpentBy,
) -> Result<Vec<Spent>, LogError> {
    let condition = "booking.user_name = ?2 AND booking.time >= ?3";
    let none: Option<&str> = None;
    grouped(
        connection,
        by,
        condition,
        params![none, user.as_str(), signed(since.0)],
    )
}

fn grouped(
    connection: &Connection,
    by: SpentBy,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<Spent>, LogError> {
    let (of, order) = match by {
        SpentBy::Session => ("booking.session", "sum(cost_usd) DESC"),
        SpentBy::Model => ("provider || '/' || model", "sum(cost_usd) DESC"),
        SpentBy::Cause => ("cause", "sum(cost_usd) DESC"),
        SpentBy::Day => ("date(time / 1000, 'unixepoch')", "1"),
        SpentBy::User => (
            "coalesce(nullif(booking.user_name, ''), 'local')",
            "sum(cost_usd) DESC",
        ),
    };
    let mut select = connection
        .prepare(&format!(
            "WITH RECURSIVE below (id) AS (SELECT ?1 UNION SELECT session.id FROM session, below \
             WHERE session.parent = below.id) \
             SELECT {of}, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), \
             coalesce(sum(cost_usd), 0), sum(cost_usd IS NULL) FROM booking WHERE {condition} \
             GROUP BY 1 ORDER BY {order}"
        ))
        .map_err(told)?;
    let rows = select
        .query_map(values, |row| {
            let number =
                |index: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
            Ok(Spent {
                of: row.get(0)?,
                calls: number(1)?,
                usage: Usage {
                    input: number(2)?,
                    output: number(3)?,
                    cache_read: number(4)?,
                    cache_write: number(5)?,
                    ..Usage::default()
                },
                cost_usd: row.get(6)?,
                unpriced: number(7)?,
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}
