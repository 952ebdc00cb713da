//! Rows of the ledger: read, listed, and kept in step with the entries of their sessions.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use windlass_core::clock::Timestamp;
use windlass_core::event::{AgentEvent, ClaimCheck, Event, SessionEvent, Waiting};
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentFamily, AgentJob, AgentQuery, AgentRow, AgentState, AgentStatus, LogError,
};

use super::ACTIVE;
use crate::failure::{Fault, damaged};
use crate::sql::{
    NOW, Values, clean, cleaned, limited, maybe, number, row, rows, run, session, signed, small, time,
};

const COLUMNS: &str = "session, root, parent, call, number, depth, name, type, task, background, wake, place, worktree, \
    state, reason, waiting_on, result, delivered, budget_tokens, budget_cost, budget_turns, budget_seconds, tokens, \
    cost_usd, turns, run_ms, created_at, ended_at, seen_at, claims, (SELECT server.id FROM session JOIN server \
    ON server.id = session.owner WHERE session.id = agent.session) AS server";

/// Updates the row of a session, or of its children, to match an entry.
pub(crate) async fn reflect(
    client: &impl GenericClient,
    id: &SessionId,
    time: Timestamp,
    event: &Event,
) -> Result<(), Fault> {
    let (id, time) = (id.as_str(), signed(time.0));
    let update = async |sql: &str, values: &Values<'_>| run(client, sql, values).await.map(drop);
    match event {
        Event::Start { .. } => {
            let sql = "UPDATE agent SET state = 'running', started_at = $2, seen_at = $2 WHERE session = $1 AND state = 'queued'";
            update(sql, &[&id, &time]).await
        }
        Event::Waiting(Waiting::PermissionRequest { tool, .. }) => {
            let waits = clean(&format!("permission to run {tool}"));
            wait(client, id, time, &waits).await
        }
        Event::Waiting(Waiting::Question { .. }) => wait(client, id, time, "an answer").await,
        Event::Waiting(Waiting::PermissionAnswer { .. }) | Event::ToolResult { .. } => {
            let sql = "UPDATE agent SET state = CASE WHEN state = 'waiting' THEN 'running' ELSE state END, \
                       waiting_on = NULL, seen_at = $2 WHERE session = $1";
            update(sql, &[&id, &time]).await
        }
        // Nobody waits any more in the call that started it.
        Event::Session(SessionEvent::Moved { .. }) => {
            let sql = format!(
                "UPDATE agent SET background = true, wake = true WHERE (session = $1 OR parent = $1) AND NOT background \
                 AND state IN {ACTIVE}"
            );
            update(&sql, &[&id]).await
        }
        Event::Session(SessionEvent::Agent(event)) => of_agents(client, id, time, event).await,
        _ => Ok(()),
    }
}

async fn wait(client: &impl GenericClient, id: &str, time: i64, waits: &str) -> Result<(), Fault> {
    let sql = "UPDATE agent SET state = 'waiting', waiting_on = $3, seen_at = $2 WHERE session = $1 AND state = 'running'";
    run(client, sql, &[&id, &time, &waits]).await.map(drop)
}

async fn of_agents(
    client: &impl GenericClient,
    id: &str,
    time: i64,
    event: &AgentEvent,
) -> Result<(), Fault> {
    match event {
        AgentEvent::Subagent { .. } => Ok(()),
        AgentEvent::AgentStarted { wake, replaces } => run(
            client,
            "UPDATE agent SET state = 'running', reason = NULL, waiting_on = NULL, \
             result = CASE WHEN delivered OR $4 THEN NULL ELSE result END, delivered = false, background = true, wake = $3, \
             started_at = $2, ended_at = NULL, seen_at = $2 WHERE session = $1",
            &[&id, &time, wake, replaces],
        )
        .await
        .map(drop),
        AgentEvent::AgentEnded {
            state,
            reason,
            result,
            claims,
        } => {
            let sql = format!(
                "UPDATE agent SET run_ms = run_ms + CASE WHEN state IN {ACTIVE} THEN greatest(0, $2::bigint - started_at) \
                 ELSE 0 END, state = $3, reason = $4, waiting_on = NULL, ended_at = $2, seen_at = $2, \
                 result = CASE WHEN coalesce(result, '') = '' THEN $5 ELSE result || E'\\n\\n' || $5 END, claims = $6 \
                 WHERE session = $1"
            );
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
                &id,
                &time,
                &state.name(),
                &cleaned(reason.as_deref()),
                &clean(result),
                &listed(claims),
            ];
            run(client, &sql, &values).await?;
            tell_above(client, id, time).await
        }
        AgentEvent::AgentDelivered { agents } => {
            let agents: Vec<&str> = agents.iter().map(SessionId::as_str).collect();
            let sql = format!(
                "WITH told AS (UPDATE inbox SET taken = {NOW} WHERE session = $2 AND kind = 'child_done' \
                   AND payload = ANY($1) AND taken IS NULL) \
                 UPDATE agent SET delivered = true WHERE session = ANY($1) AND parent = $2"
            );
            run(client, &sql, &[&agents, &id]).await.map(drop)
        }
    }
}

/// Puts the end of a sub-agent in the background into the inbox of the session above, if it ran on a server of a cluster.
async fn tell_above(client: &impl GenericClient, id: &str, time: i64) -> Result<(), Fault> {
    let sql = format!(
        "WITH put AS (INSERT INTO inbox (id, session, kind, payload, sender, made) \
           SELECT 'done ' || $2::text || ' ' || $1::text, agent.parent, 'child_done', $1, server.id, {NOW} FROM agent \
           JOIN session ON session.id = agent.session JOIN server ON server.id = session.owner \
           WHERE agent.session = $1 AND agent.background ON CONFLICT (id) DO NOTHING RETURNING session) \
         SELECT CASE WHEN server.until > {NOW} THEN pg_notify('wl_' || md5(server.id), 'inbox ' || above.id) \
           ELSE pg_notify('wl_all', 'work') END::text \
         FROM put JOIN session above ON above.id = put.session LEFT JOIN server ON server.id = above.owner"
    );
    rows(client, &sql, &[&id, &time.to_string()]).await.map(drop)
}

/// Returns claims as they are stored; `None` if there are none.
fn listed(claims: &[ClaimCheck]) -> Option<String> {
    let text = serde_json::to_string(claims).ok();
    text.filter(|_| !claims.is_empty())
}

pub(crate) async fn get(client: &impl GenericClient, id: &SessionId) -> Result<Option<AgentRow>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE session = $1");
    let found = row(client, &sql, &[&id.as_str()]).await?;
    Ok(found.map(|row| read(&row)).transpose()?)
}

pub(crate) async fn list(client: &impl GenericClient, query: &AgentQuery) -> Result<Vec<AgentRow>, Fault> {
    let (condition, of) = selection(query);
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE {condition} ORDER BY root, number");
    let found = match query {
        AgentQuery::Recent(trees) => {
            let trees = if *trees == 0 { 0 } else { limited(*trees) };
            rows(client, &sql, &[&trees]).await?
        }
        _ => rows(client, &sql, &[&of]).await?,
    };
    Ok(found.iter().map(read).collect::<Result<_, LogError>>()?)
}

/// Returns the condition of a query, and the session it is about.
fn selection(query: &AgentQuery) -> (String, &str) {
    match query {
        AgentQuery::Below(id) => (
            "root = $1 OR session IN (WITH RECURSIVE below (session) AS (SELECT session FROM agent WHERE parent = $1 \
             UNION SELECT agent.session FROM agent JOIN below ON agent.parent = below.session) SELECT session FROM below)"
                .to_owned(),
            id.as_str(),
        ),
        // From the few that have not ended upwards, so that those that have do not count.
        AgentQuery::Active(id) => (
            format!(
                "session IN (WITH RECURSIVE up (agent, at) AS (SELECT session, parent FROM agent \
                 WHERE root = coalesce((SELECT root FROM agent WHERE session = $1), $1) AND state IN {ACTIVE} UNION ALL \
                 SELECT up.agent, agent.parent FROM up JOIN agent ON agent.session = up.at WHERE up.at <> $1) \
                 SELECT agent FROM up WHERE at = $1)"
            ),
            id.as_str(),
        ),
        AgentQuery::Children(id) => ("parent = $1".to_owned(), id.as_str()),
        AgentQuery::Pending(id) => ("parent = $1 AND NOT delivered".to_owned(), id.as_str()),
        AgentQuery::Undelivered(id) => (
            format!("parent = $1 AND NOT delivered AND state NOT IN {ACTIVE}"),
            id.as_str(),
        ),
        AgentQuery::Recent(_) => (
            "root IN (SELECT root FROM agent GROUP BY root ORDER BY max(seen_at) DESC LIMIT $1)".to_owned(),
            "",
        ),
    }
}

/// Records the folder of a sub-agent's copy of the files, which it works in from here on; `None` if it is gone.
pub(crate) async fn set_worktree(
    client: &impl GenericClient,
    id: &SessionId,
    folder: Option<&str>,
) -> Result<(), Fault> {
    let folder = cleaned(folder);
    for sql in [
        "UPDATE agent SET worktree = $2, place = coalesce($2, place) WHERE session = $1",
        "UPDATE session SET place = coalesce($2, place) WHERE id = $1",
    ] {
        run(client, sql, &[&id.as_str(), &folder]).await?;
    }
    Ok(())
}

fn read(row: &Row) -> Result<AgentRow, LogError> {
    let word: &str = row.get(13);
    let state = AgentState::named(word).ok_or_else(|| {
        let why = format!("`{word}` is not a state");
        damaged(format!("the row of agent {}", session(row, 0)), why)
    })?;
    let claims = row.get::<_, Option<&str>>(29);
    let claims = claims.and_then(|text| serde_json::from_str(text).ok());
    Ok(AgentRow {
        session: session(row, 0),
        family: AgentFamily {
            root: session(row, 1),
            parent: session(row, 2),
            call: row.get::<_, Option<String>>(3).map(CallId::from),
            number: small(row, 4),
            depth: small(row, 5),
        },
        job: AgentJob {
            name: row.get(6),
            kind: row.get(7),
            task: row.get(8),
            background: row.get(9),
            wake: row.get(10),
            place: row.get(11),
            worktree: row.get(12),
        },
        status: AgentStatus {
            state,
            reason: row.get(14),
            waiting_on: row.get(15),
            result: row.get(16),
            delivered: row.get(17),
            claims: claims.unwrap_or_default(),
        },
        budget: AgentBudget {
            tokens: maybe(row, 18),
            cost_usd: row.get(19),
            turns: maybe(row, 20),
            seconds: maybe(row, 21),
        },
        spent: AgentBudget {
            tokens: Some(number(row, 22)),
            cost_usd: Some(row.get(23)),
            turns: Some(number(row, 24)),
            seconds: Some(number(row, 25) / 1000),
        },
        created_at: time(row, 26),
        ended_at: maybe(row, 27).map(Timestamp),
        seen_at: time(row, 28),
        server: row.get(30),
    })
}
