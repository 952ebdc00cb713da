//! Usage and cost of model calls.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::id::SessionId;
use windlass_core::log::{Booking, LogError, SessionInfo, Spent, SpentBy};
use windlass_core::model::Usage;

use super::agents;
use super::failure::told;
use super::lease::signed;

/// Books a call, and adds it to its session. The sessions above it are not written: their totals are added up
/// when they are read.
pub(super) fn book(connection: &Connection, id: &SessionId, booking: &Booking) -> Result<(), LogError> {
    let usage = &booking.usage;
    connection
        .prepare_cached(
            "INSERT INTO booking (session, time, provider, model, cause, input, output, cache_read, cache_write, cost_usd) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
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
    let cost = booking.cost_usd.unwrap_or_default();
    connection
        .prepare_cached(
            "UPDATE session SET prompt_tokens = prompt_tokens + ?2, completion_tokens = completion_tokens + ?3, \
             cost_usd = cost_usd + ?4 WHERE id = ?1",
        )
        .and_then(|mut update| {
            update.execute(params![
                id.as_str(),
                signed(usage.total_input()),
                signed(usage.output),
                cost
            ])
        })
        .map_err(told)?;
    agents::spend(connection, id, booking)
}

/// Returns the cost of one session and its descendants, or of all sessions.
pub(super) fn spent(
    connection: &Connection,
    session: Option<&SessionId>,
    by: SpentBy,
) -> Result<Vec<Spent>, LogError> {
    let (of, order) = match by {
        SpentBy::Session => ("booking.session", "sum(cost_usd) DESC"),
        SpentBy::Model => ("provider || '/' || model", "sum(cost_usd) DESC"),
        SpentBy::Cause => ("cause", "sum(cost_usd) DESC"),
        SpentBy::Day => ("date(time / 1000, 'unixepoch')", "1"),
    };
    let mut select = connection
        .prepare(&format!(
            "WITH RECURSIVE below (id) AS (SELECT ?1 UNION SELECT session.id FROM session, below \
             WHERE session.parent = below.id) \
             SELECT {of}, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), \
             coalesce(sum(cost_usd), 0) FROM booking WHERE ?1 IS NULL OR booking.session IN (SELECT id FROM below) \
             GROUP BY 1 ORDER BY {order}"
        ))
        .map_err(told)?;
    let rows = select
        .query_map([session.map(SessionId::as_str)], |row| {
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
                },
                cost_usd: row.get(6)?,
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

/// SES-8: adds the totals of all sessions below a session to its own.
pub(super) fn add_children(connection: &Connection, info: &mut SessionInfo) -> Result<(), LogError> {
    let below: Option<(i64, i64, f64)> = connection
        .prepare_cached(
            "WITH RECURSIVE below (id, prompt, completion, cost) AS (\
             SELECT id, prompt_tokens, completion_tokens, cost_usd FROM session WHERE parent = ?1 UNION \
             SELECT session.id, session.prompt_tokens, session.completion_tokens, session.cost_usd \
             FROM below JOIN session ON session.parent = below.id) \
             SELECT sum(prompt), sum(completion), sum(cost) FROM below HAVING count(*) > 0",
        )
        .and_then(|mut select| {
            let sums = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            select.query_row([info.id.as_str()], sums).optional()
        })
        .map_err(told)?;
    if let Some((prompt, completion, cost)) = below {
        info.totals.prompt_tokens += prompt.unsigned_abs();
        info.totals.completion_tokens += completion.unsigned_abs();
        info.totals.cost_usd += cost;
    }
    Ok(())
}
