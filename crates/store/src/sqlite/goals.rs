//! GOAL-5, GOAL-9: the registry of goals, and the times in which sessions worked without input. Both follow the
//! events of the batch that is written, in its transaction.

use rusqlite::{Connection, Row, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, GoalCompletion, GoalEvent, GoalState, SessionEvent};
use windlass_core::id::SessionId;
use windlass_core::log::{GoalInfo, LogError, Verification};

use super::connection::execute;
use super::failure::{damaged, told};
use super::lease::signed;

/// Text of a verification that was not successful.
const NOT_YET: &str = "not_yet";

/// Updates the registry for an event.
pub(super) fn reflect(
    connection: &Connection,
    id: &SessionId,
    time: Timestamp,
    event: &Event,
) -> Result<(), LogError> {
    let Event::Session(event) = event else {
        return Ok(());
    };
    let (session, time) = (id.as_str(), signed(time.0));
    let run = |sql: &str, values: &[&dyn ToSql]| execute(connection, sql, values);
    let verified = |word: &str| {
        run(
            "UPDATE goal SET verification = ?2, updated_at = ?3 WHERE session = ?1",
            &[&session, &word, &time],
        )
    };
    match event {
        SessionEvent::Work(GoalEvent::GoalRun(goal)) => run(
            "INSERT INTO goal (session, text, state, max_turns, started_at, updated_at) \
             VALUES (?1, ?2, 'paused', ?3, ?4, ?4) ON CONFLICT (session) DO UPDATE SET \
             turns = iif(text = excluded.text, turns, 0), \
             verification = iif(text = excluded.text, verification, NULL), \
             started_at = iif(text = excluded.text, started_at, excluded.started_at), \
             text = excluded.text, max_turns = excluded.max_turns, updated_at = excluded.updated_at",
            &[&session, &goal.text, &goal.max_turns, &time],
        ),
        SessionEvent::Work(GoalEvent::GoalTurn { number }) => run(
            "UPDATE goal SET turns = ?2, updated_at = ?3 WHERE session = ?1",
            &[&session, number, &time],
        ),
        SessionEvent::Work(GoalEvent::GoalCheck(check)) if !check.passed => verified(NOT_YET),
        SessionEvent::Work(GoalEvent::GoalVerdict { achieved: false, .. }) => verified(NOT_YET),
        SessionEvent::Work(GoalEvent::GoalState {
            state,
            reason,
            message,
            ..
        }) => {
            let reason = reason.map(|reason| word(&reason)).transpose()?;
            run(
                "UPDATE goal SET state = ?2, reason = ?3, message = ?4, updated_at = ?5 WHERE session = ?1",
                &[&session, &word(state)?, &reason, message, &time],
            )?;
            span(connection, session, *state, time)
        }
        SessionEvent::GoalCompleted { how, .. } => verified(&word(how)?),
        _ => Ok(()),
    }
}

/// Opens or closes the time in which a session works without input.
fn span(connection: &Connection, session: &str, state: GoalState, time: i64) -> Result<(), LogError> {
    let sql = if state == GoalState::Active {
        "INSERT INTO goal_span (session, since) SELECT ?1, ?2 WHERE NOT EXISTS \
         (SELECT 1 FROM goal_span WHERE session = ?1 AND (until IS NULL OR since = ?2))"
    } else {
        "UPDATE goal_span SET until = ?2 WHERE session = ?1 AND until IS NULL"
    };
    execute(connection, sql, params![session, time])
}

/// Returns the goals, most recently changed first.
pub(super) fn list(connection: &Connection, only_active: bool) -> Result<Vec<GoalInfo>, LogError> {
    let filter = if only_active { "WHERE state = 'active'" } else { "" };
    let mut select = connection
        .prepare(&format!(
            "SELECT session, text, state, reason, message, turns, max_turns, verification, started_at, updated_at \
             FROM goal {filter} ORDER BY updated_at DESC"
        ))
        .map_err(told)?;
    let rows = select.query_map([], stored).map_err(told)?;
    rows.map(|row| row.map_err(told).and_then(info)).collect()
}

/// A row as stored.
struct Stored {
    info: GoalInfo,
    state: String,
    reason: Option<String>,
    verification: Option<String>,
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        state: row.get(2)?,
        reason: row.get(3)?,
        verification: row.get(7)?,
        info: GoalInfo {
            session: SessionId::from(row.get::<_, String>(0)?),
            text: row.get(1)?,
            state: GoalState::Paused,
            reason: None,
            message: row.get(4)?,
            turns: row.get(5)?,
            max_turns: row.get(6)?,
            verification: None,
            started_at: Timestamp(row.get::<_, i64>(8)?.unsigned_abs()),
            updated_at: Timestamp(row.get::<_, i64>(9)?.unsigned_abs()),
        },
    })
}

fn info(stored: Stored) -> Result<GoalInfo, LogError> {
    let Stored {
        info,
        state,
        reason,
        verification,
    } = stored;
    let verification = match verification.as_deref() {
        None => None,
        Some(NOT_YET) => Some(Verification::NotYet),
        Some(how) => Some(Verification::Reached(read::<GoalCompletion>(how)?)),
    };
    Ok(GoalInfo {
        state: read(&state)?,
        reason: reason.as_deref().map(read).transpose()?,
        verification,
        ..info
    })
}

/// Returns the cost of work without input since a time.
pub(super) fn unattended_cost(connection: &Connection, since: Timestamp) -> Result<f64, LogError> {
    connection
        .prepare_cached(
            "WITH RECURSIVE own (root, id) AS (SELECT DISTINCT session, session FROM goal_span \
             WHERE coalesce(until, ?1) >= ?1 UNION SELECT own.root, session.id FROM session, own \
             WHERE session.parent = own.id) \
             SELECT coalesce(sum(cost_usd), 0.0) FROM booking WHERE time >= ?1 AND EXISTS (SELECT 1 FROM own, goal_span \
             WHERE own.id = booking.session AND goal_span.session = own.root AND goal_span.since <= booking.time \
             AND coalesce(goal_span.until, booking.time) >= booking.time)",
        )
        .and_then(|mut select| select.query_row([signed(since.0)], |row| row.get(0)))
        .map_err(told)
}

/// Returns the word of an enum without data.
fn word(value: &impl Serialize) -> Result<String, LogError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        other => Err(damaged("a goal", format!("{other:?}"))),
    }
}

fn read<T: DeserializeOwned>(word: &str) -> Result<T, LogError> {
    serde_json::from_value(word.into()).map_err(|error| damaged("the registry of goals", error))
}
