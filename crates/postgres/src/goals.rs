//! GOAL-5, GOAL-9: the registry of goals, and the times in which sessions worked without input. Both follow the
//! events of the batch that is written, in its transaction.

use deadpool_postgres::GenericClient;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, GoalCompletion, GoalEvent, GoalState, SessionEvent};
use windlass_core::id::SessionId;
use windlass_core::log::{GoalInfo, LogError, Verification};

use super::failure::{Fault, damaged};
use super::sql::{clean, only, rows, run, session, signed, small, time};

/// Text of a verification that was not successful.
const NOT_YET: &str = "not_yet";

/// Updates the registry for an event.
pub(super) async fn reflect(
    client: &impl GenericClient,
    id: &SessionId,
    time: Timestamp,
    event: &Event,
) -> Result<(), Fault> {
    let Event::Session(event) = event else {
        return Ok(());
    };
    let (session, time) = (id.as_str(), signed(time.0));
    let verified = async |word: String| {
        let sql = "UPDATE goal SET verification = $2, updated_at = $3 WHERE session = $1";
        run(client, sql, &[&session, &word, &time]).await.map(drop)
    };
    match event {
        SessionEvent::Work(GoalEvent::GoalRun(goal)) => run(
            client,
            "INSERT INTO goal (session, text, state, max_turns, started_at, updated_at) \
             VALUES ($1, $2, 'paused', $3, $4, $4) ON CONFLICT (session) DO UPDATE SET \
             turns = CASE WHEN goal.text = excluded.text THEN goal.turns ELSE 0 END, \
             verification = CASE WHEN goal.text = excluded.text THEN goal.verification END, \
             started_at = CASE WHEN goal.text = excluded.text THEN goal.started_at ELSE excluded.started_at END, \
             text = excluded.text, max_turns = excluded.max_turns, updated_at = excluded.updated_at",
            &[&session, &clean(&goal.text), &i64::from(goal.max_turns), &time],
        )
        .await
        .map(drop),
        SessionEvent::Work(GoalEvent::GoalTurn { number }) => {
            let sql = "UPDATE goal SET turns = $2, updated_at = $3 WHERE session = $1";
            run(client, sql, &[&session, &i64::from(*number), &time]).await.map(drop)
        }
        SessionEvent::Work(GoalEvent::GoalCheck(check)) if !check.passed => verified(NOT_YET.to_owned()).await,
        SessionEvent::Work(GoalEvent::GoalVerdict { achieved: false, .. }) => verified(NOT_YET.to_owned()).await,
        SessionEvent::Work(GoalEvent::GoalState {
            state,
            reason,
            message,
            ..
        }) => {
            let reason = reason.map(|reason| word(&reason)).transpose()?;
            run(
                client,
                "UPDATE goal SET state = $2, reason = $3, message = $4, updated_at = $5 WHERE session = $1",
                &[&session, &word(state)?, &reason, &clean(message), &time],
            )
            .await?;
            span(client, session, *state, time).await
        }
        SessionEvent::GoalCompleted { how, .. } => verified(word(how)?).await,
        _ => Ok(()),
    }
}

/// Opens or closes the time in which a session works without input.
async fn span(client: &impl GenericClient, session: &str, state: GoalState, time: i64) -> Result<(), Fault> {
    let sql = if state == GoalState::Active {
        "INSERT INTO goal_span (session, since) SELECT $1, $2 WHERE NOT EXISTS \
         (SELECT 1 FROM goal_span WHERE session = $1 AND (until IS NULL OR since = $2))"
    } else {
        "UPDATE goal_span SET until = $2 WHERE session = $1 AND until IS NULL"
    };
    run(client, sql, &[&session, &time]).await.map(drop)
}

/// Returns the goals, most recently changed first.
pub(super) async fn list(client: &impl GenericClient, only_active: bool) -> Result<Vec<GoalInfo>, Fault> {
    let sql = "SELECT session, text, state, reason, message, turns, max_turns, verification, started_at, updated_at \
               FROM goal WHERE NOT $1 OR state = 'active' ORDER BY updated_at DESC";
    let found = rows(client, sql, &[&only_active]).await?;
    Ok(found.iter().map(info).collect::<Result<_, LogError>>()?)
}

fn info(row: &Row) -> Result<GoalInfo, LogError> {
    let verification = match row.get::<_, Option<&str>>(7) {
        None => None,
        Some(NOT_YET) => Some(Verification::NotYet),
        Some(how) => Some(Verification::Reached(read::<GoalCompletion>(how)?)),
    };
    Ok(GoalInfo {
        session: session(row, 0),
        text: row.get(1),
        state: read(row.get(2))?,
        reason: row.get::<_, Option<&str>>(3).map(read).transpose()?,
        message: row.get(4),
        turns: small(row, 5),
        max_turns: small(row, 6),
        verification,
        started_at: time(row, 8),
        updated_at: time(row, 9),
    })
}

/// Returns the cost of work without input since a time.
pub(super) async fn unattended_cost(client: &impl GenericClient, since: Timestamp) -> Result<f64, Fault> {
    let sql = "WITH RECURSIVE own (root, id) AS (SELECT DISTINCT session, session FROM goal_span \
        WHERE coalesce(until, $1) >= $1 UNION SELECT own.root, session.id FROM session JOIN own ON session.parent = own.id) \
        SELECT coalesce(sum(cost_usd), 0) FROM booking WHERE time >= $1 AND EXISTS (SELECT 1 FROM own, goal_span \
        WHERE own.id = booking.session AND goal_span.session = own.root AND goal_span.since <= booking.time \
        AND coalesce(goal_span.until, booking.time) >= booking.time)";
    Ok(only(client, sql, &[&signed(since.0)]).await?.get(0))
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
