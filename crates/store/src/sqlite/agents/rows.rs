//! Rows of the ledger: read, listed, and kept in step with the entries of their sessions.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use windlass_core::clock::Timestamp;
use windlass_core::event::{AgentEvent, ClaimCheck, Event, SessionEvent, Waiting};
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentFamily, AgentJob, AgentQuery, AgentRow, AgentState, AgentStatus, LogError,
};

use super::super::books::{Added, add_above};
use super::super::connection::execute;
use super::super::failure::{damaged, told};
use super::super::lease::signed;
use super::ACTIVE;

const COLUMNS: &str = "session, root, parent, call, number, depth, name, type, task, background, wake, place, worktree, \
    state, reason, waiting_on, result, delivered, budget_tokens, budget_cost, budget_turns, budget_seconds, tokens, \
    cost_usd, turns, run_ms, created_at, ended_at, seen_at, claims";

/// Runs a statement with values.
type Update<'a> = dyn Fn(&str, &[&dyn ToSql]) -> Result<(), LogError> + 'a;

/// Updates the row of a session, or of its children, to match an entry.
pub(in super::super) fn reflect(
    connection: &Connection,
    id: &SessionId,
    time: Timestamp,
    event: &Event,
) -> Result<(), LogError> {
    let time = signed(time.0);
    let update = |sql: &str, values: &[&dyn ToSql]| execute(connection, sql, values);
    match event {
        Event::Start { .. } => update(
            "UPDATE agent SET state = 'running', started_at = ?2, seen_at = ?2 WHERE session = ?1 AND state = 'queued'",
            &[&id.as_str(), &time],
        ),
        Event::Waiting(Waiting::PermissionRequest { tool, .. }) => update(
            "UPDATE agent SET state = 'waiting', waiting_on = ?3, seen_at = ?2 WHERE session = ?1 AND state = 'running'",
            &[&id.as_str(), &time, &format!("permission to run {tool}")],
        ),
        Event::Waiting(Waiting::Question { .. }) => update(
            "UPDATE agent SET state = 'waiting', waiting_on = 'an answer', seen_at = ?2 \
             WHERE session = ?1 AND state = 'running'",
            &[&id.as_str(), &time],
        ),
        Event::Waiting(Waiting::PermissionAnswer { .. }) | Event::ToolResult { .. } => update(
            "UPDATE agent SET state = iif(state = 'waiting', 'running', state), waiting_on = NULL, seen_at = ?2 \
             WHERE session = ?1",
            &[&id.as_str(), &time],
        ),
        Event::Message { .. } => update(
            "UPDATE agent SET seen_at = ?2 WHERE session = ?1",
            &[&id.as_str(), &time],
        ),
        Event::Session(SessionEvent::Agent(event)) => {
            ran(connection, id, time, event)?;
            of_agents(id, time, event, &update)
        }
        _ => Ok(()),
    }
}

fn of_agents(id: &SessionId, time: i64, event: &AgentEvent, update: &Update<'_>) -> Result<(), LogError> {
    match event {
        AgentEvent::Subagent { .. } => Ok(()),
        AgentEvent::AgentStarted { wake, replaces } => update(
            "UPDATE agent SET state = 'running', reason = NULL, waiting_on = NULL, \
             result = iif(delivered OR ?4, NULL, result), delivered = 0, background = 1, wake = ?3, started_at = ?2, ended_at = NULL, seen_at = ?2 WHERE session = ?1",
            &[&id.as_str(), &time, wake, replaces],
        ),
        AgentEvent::AgentEnded {
            state,
            reason,
            result,
            claims,
        } => update(
            "UPDATE agent SET run_ms = run_ms + iif(state IN ('queued', 'running', 'waiting'), \
             max(0, ?2 - started_at), 0), state = ?3, reason = ?4, waiting_on = NULL, ended_at = ?2, seen_at = ?2, \
             result = iif(coalesce(result, '') = '', ?5, result || char(10, 10) || ?5), claims = ?6 WHERE session = ?1",
            &[
                &id.as_str(),
                &time,
                &state.name(),
                reason,
                result,
                &listed(claims),
            ],
        ),
        AgentEvent::AgentDelivered { agents } => agents.iter().try_for_each(|agent| {
            update(
                "UPDATE agent SET delivered = 1 WHERE session = ?1 AND parent = ?2",
                &[&agent.as_str(), &id.as_str()],
            )
        }),
    }
}

/// Returns claims as they are stored; `None` if there are none.
fn listed(claims: &[ClaimCheck]) -> Option<String> {
    let text = serde_json::to_string(claims).ok();
    text.filter(|_| !claims.is_empty())
}

/// Adds the time of a run that ends to the sums of the sessions above.
fn ran(connection: &Connection, id: &SessionId, time: i64, event: &AgentEvent) -> Result<(), LogError> {
    if !matches!(event, AgentEvent::AgentEnded { .. }) {
        return Ok(());
    }
    let run: Option<i64> = connection
        .prepare_cached(&format!(
            "SELECT max(0, ?2 - started_at) FROM agent WHERE session = ?1 AND state IN {ACTIVE}"
        ))
        .and_then(|mut select| {
            let run = select.query_row(params![id.as_str(), time], |row| row.get(0));
            run.optional()
        })
        .map_err(told)?;
    let added = Added {
        run_ms: run.unwrap_or_default(),
        ..Added::default()
    };
    match added.run_ms {
        0 => Ok(()),
        _ => add_above(connection, id, &added),
    }
}

/// Adds a booking to the row of its session.
pub(in super::super) fn spend(
    connection: &Connection,
    id: &SessionId,
    added: &Added,
) -> Result<(), LogError> {
    execute(
        connection,
        "UPDATE agent SET tokens = tokens + ?2, cost_usd = cost_usd + ?3, turns = turns + ?4 WHERE session = ?1",
        &[
            &id.as_str(),
            &(added.prompt_tokens.saturating_add(added.completion_tokens)),
            &added.cost_usd,
            &added.turns,
        ],
    )
}

pub(in super::super) fn get(connection: &Connection, id: &SessionId) -> Result<Option<AgentRow>, LogError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM agent WHERE session = ?1"))
        .and_then(|mut select| select.query_row([id.as_str()], read).optional())
        .map_err(told)?
        .transpose()
}

pub(in super::super) fn list(connection: &Connection, query: &AgentQuery) -> Result<Vec<AgentRow>, LogError> {
    let (sql, of) = selection(query);
    let mut select = connection.prepare_cached(&sql).map_err(told)?;
    let rows = match query {
        AgentQuery::Recent(trees) => select.query_map([i64::try_from(*trees).unwrap_or(i64::MAX)], read),
        _ => select.query_map([of], read),
    };
    rows.map_err(told)?.map(|row| row.map_err(told)?).collect()
}

/// Returns the statement of a query, and the session it is about.
fn selection(query: &AgentQuery) -> (String, &str) {
    let (table, condition, of) = match query {
        AgentQuery::Below(id) => (
            "agent",
            "root = ?1 OR session IN (WITH RECURSIVE below (session) AS (SELECT session FROM agent WHERE parent = ?1 \
             UNION SELECT agent.session FROM agent JOIN below ON agent.parent = below.session) SELECT session FROM below)"
                .to_owned(),
            id.as_str(),
        ),
        // From the few that have not ended upwards, so that those that have do not count.
        AgentQuery::Active(id) => (
            "agent",
            format!(
                "session IN (WITH RECURSIVE up (agent, at) AS (\
                 SELECT session, parent FROM agent INDEXED BY agent_active \
                 WHERE root = coalesce((SELECT root FROM agent WHERE session = ?1), ?1) AND state IN {ACTIVE} UNION ALL \
                 SELECT up.agent, agent.parent FROM up JOIN agent ON agent.session = up.at WHERE up.at <> ?1) \
                 SELECT agent FROM up WHERE at = ?1)"
            ),
            id.as_str(),
        ),
        AgentQuery::Children(id) => ("agent", "parent = ?1".to_owned(), id.as_str()),
        AgentQuery::Pending(id) => (
            "agent INDEXED BY agent_undelivered",
            "parent = ?1 AND delivered = 0".to_owned(),
            id.as_str(),
        ),
        AgentQuery::Undelivered(id) => (
            "agent INDEXED BY agent_undelivered",
            format!("parent = ?1 AND delivered = 0 AND state NOT IN {ACTIVE}"),
            id.as_str(),
        ),
        AgentQuery::Recent(_) => (
            "agent",
            "root IN (SELECT root FROM agent GROUP BY root ORDER BY max(seen_at) DESC LIMIT ?1)".to_owned(),
            "",
        ),
    };
    let sql = format!("SELECT {COLUMNS} FROM {table} WHERE {condition} ORDER BY root, number");
    (sql, of)
}

/// Records the folder of a sub-agent's copy of the files, which it works in from here on; `None` if it is gone.
pub(in super::super) fn set_worktree(
    connection: &Connection,
    id: &SessionId,
    folder: Option<&str>,
) -> Result<(), LogError> {
    execute(
        connection,
        "UPDATE agent SET worktree = ?2, place = coalesce(?2, place) WHERE session = ?1",
        &[&id.as_str(), &folder],
    )?;
    execute(
        connection,
        "UPDATE session SET place = coalesce(?2, place) WHERE id = ?1",
        &[&id.as_str(), &folder],
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<Result<AgentRow, LogError>> {
    let id =
        |index: usize| -> rusqlite::Result<SessionId> { Ok(SessionId::from(row.get::<_, String>(index)?)) };
    let number = |index: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
    let limit = |index: usize| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(index)?.map(i64::unsigned_abs))
    };
    let word: String = row.get(13)?;
    let Some(state) = AgentState::named(&word) else {
        let why = format!("`{word}` is not a state");
        return Ok(Err(damaged(format!("the row of agent {}", id(0)?), why)));
    };
    let claims = row.get::<_, Option<String>>(29)?;
    let claims = claims.and_then(|text| serde_json::from_str(&text).ok());
    Ok(Ok(AgentRow {
        session: id(0)?,
        family: AgentFamily {
            root: id(1)?,
            parent: id(2)?,
            call: row.get::<_, Option<String>>(3)?.map(CallId::from),
            number: row.get(4)?,
            depth: row.get(5)?,
        },
        job: AgentJob {
            name: row.get(6)?,
            kind: row.get(7)?,
            task: row.get(8)?,
            background: row.get(9)?,
            wake: row.get(10)?,
            place: row.get(11)?,
            worktree: row.get(12)?,
        },
        status: AgentStatus {
            state,
            reason: row.get(14)?,
            waiting_on: row.get(15)?,
            result: row.get(16)?,
            delivered: row.get(17)?,
            claims: claims.unwrap_or_default(),
        },
        budget: AgentBudget {
            tokens: limit(18)?,
            cost_usd: row.get(19)?,
            turns: limit(20)?,
            seconds: limit(21)?,
        },
        spent: AgentBudget {
            tokens: Some(number(22)?),
            cost_usd: Some(row.get(23)?),
            turns: Some(number(24)?),
            seconds: Some(number(25)? / 1000),
        },
        created_at: Timestamp(number(26)?),
        ended_at: limit(27)?.map(Timestamp),
        seen_at: Timestamp(number(28)?),
        server: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    /// SUB-4: what is asked when a child starts and ends does not read the rows of those that have ended.
    #[test]
    fn frequent_queries_use_indexes() {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        let id = || SessionId::from("x");
        for query in [
            AgentQuery::Active(id()),
            AgentQuery::Pending(id()),
            AgentQuery::Undelivered(id()),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {}", selection(&query).0);
            let mut explained = connection.prepare(&sql).unwrap();
            let steps = explained.query_map(["x"], |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let is_bad = |step: &String| step.starts_with("SCAN agent") || step.contains("agent_parent");
            assert!(!steps.iter().any(is_bad), "{query:?}: {steps:#?}");
        }
    }
}
