//! SUB-4, SUB-5: the ledger of sub-agents, kept in step with the entries of their sessions.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use windlass_core::clock::Timestamp;
use windlass_core::event::{AgentEvent, Event, SessionEvent, Waiting};
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentFamily, AgentJob, AgentQuery, AgentRow, AgentState, AgentStatus, AgentsLeft, Booking,
    LogError, NewAgent, SpawnError, Spawned,
};

use super::connection::execute;
use super::failure::{damaged, told};
use super::lease;
use super::lease::signed;

const COLUMNS: &str = "session, root, parent, call, number, depth, name, type, task, background, wake, place, worktree, \
    state, reason, waiting_on, result, delivered, budget_tokens, budget_cost, budget_turns, budget_seconds, tokens, \
    cost_usd, turns, run_ms, created_at, ended_at, seen_at";

/// States of sub-agents that have not ended.
const ACTIVE: &str = "('queued', 'running', 'waiting')";

/// Columns of the amounts that an agent may use and has used.
const AMOUNTS: &str =
    "budget_tokens, tokens, budget_cost, cost_usd, budget_turns, turns, budget_seconds, run_ms";

/// The same columns of a row beside another table.
const BELOW: &str = "agent.budget_tokens, agent.tokens, agent.budget_cost, agent.cost_usd, agent.budget_turns, \
    agent.turns, agent.budget_seconds, agent.run_ms";

/// Cause of the bookings that count as turns.
const TURN: &str = "turn";

/// Creates a sub-agent, unless a limit is reached.
pub(super) fn spawn(
    connection: &Connection,
    new: &NewAgent,
    owner: &str,
    now: Timestamp,
) -> Result<Spawned, SpawnError> {
    let above = get(connection, &new.parent)?;
    let parent_key: Option<Option<String>> = connection
        .prepare_cached("SELECT key FROM session WHERE id = ?1")
        .and_then(|mut select| {
            select
                .query_row([new.parent.as_str()], |row| row.get(0))
                .optional()
        })
        .map_err(told)?;
    let parent_key = parent_key.ok_or_else(|| LogError::Unknown(new.parent.clone()))?;
    let depth = above.as_ref().map_or(0, |above| above.family.depth) + 1;
    let root = above
        .as_ref()
        .map_or(&new.parent, |above| &above.family.root)
        .clone();
    let counts = counted(connection, &root, &new.parent)?;
    check_limits(new, depth, &counts)?;
    let budget = match &above {
        Some(above) => above.budget,
        None => new.limits.budget,
    };
    let left = minus(budget, &used(connection, &new.parent, above.as_ref())?);
    let running = free(new, &counts);
    let share = share(budget, left, new.asks, running)?;
    let parent_key = parent_key.as_deref().unwrap_or(new.parent.as_str());
    let opened = lease::create(connection, new.new_session(depth, parent_key), owner, now)?;
    let row = row(new, (root, depth), (&counts, share));
    insert(connection, &row)?;
    Ok(Spawned {
        opened,
        left: AgentsLeft {
            running: running.saturating_sub(1),
            agents: new.limits.max_agents.saturating_sub(counts.made + 1),
            budget: minus(left, &share),
        },
        row,
    })
}

/// Numbers of sub-agents.
struct Counts {
    /// In the tree, so far.
    made: u32,
    /// The highest number in the tree.
    last: u32,
    /// Running in the tree.
    running: u32,
    /// Running, of the same parent.
    children: u32,
}

fn counted(connection: &Connection, root: &SessionId, parent: &SessionId) -> Result<Counts, LogError> {
    let tree: (u32, u32) = connection
        .prepare_cached("SELECT count(*), coalesce(max(number), 0) FROM agent WHERE root = ?1")
        .and_then(|mut select| select.query_row([root.as_str()], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(told)?;
    let active = |sql: &str, of: &SessionId| -> Result<u32, LogError> {
        connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([of.as_str()], |row| row.get(0)))
            .map_err(told)
    };
    let of_root = format!("SELECT count(*) FROM agent WHERE root = ?1 AND state IN {ACTIVE}");
    let of_parent = format!("SELECT count(*) FROM agent WHERE parent = ?1 AND state IN {ACTIVE}");
    Ok(Counts {
        made: tree.0,
        last: tree.1,
        running: active(&of_root, root)?,
        children: active(&of_parent, parent)?,
    })
}

fn check_limits(new: &NewAgent, depth: u8, counts: &Counts) -> Result<(), SpawnError> {
    let limits = &new.limits;
    if depth > limits.max_spawn_depth {
        let most = limits.max_spawn_depth;
        return Err(SpawnError::Depth { depth, most });
    }
    if counts.made >= limits.max_agents {
        let (made, most) = (counts.made, limits.max_agents);
        return Err(SpawnError::Agents { made, most });
    }
    if counts.children >= limits.max_children {
        let (running, most) = (counts.children, limits.max_children);
        return Err(SpawnError::Children { running, most });
    }
    if counts.running >= limits.max_concurrent {
        let (running, most) = (counts.running, limits.max_concurrent);
        return Err(SpawnError::Concurrent { running, most });
    }
    Ok(())
}

/// Returns the number of sub-agents that the parent may start now, including the new one.
fn free(new: &NewAgent, counts: &Counts) -> u32 {
    let limits = &new.limits;
    let beside = limits.max_children.saturating_sub(counts.children);
    beside.min(limits.max_concurrent.saturating_sub(counts.running))
}

/// Returns the amounts that an agent and those below it have used, or hold as their share while they run. The
/// use of a session that is no sub-agent itself does not count.
fn used(connection: &Connection, agent: &SessionId, row: Option<&AgentRow>) -> Result<AgentBudget, LogError> {
    // A running sub-agent counts with its share, which covers everything below it.
    let sql = format!(
        "WITH RECURSIVE below (session, is_active, budget_tokens, tokens, budget_cost, cost_usd, budget_turns, turns, \
         budget_seconds, run_ms) AS (\
         SELECT session, state IN {ACTIVE}, {AMOUNTS} FROM agent WHERE parent = ?1 UNION ALL \
         SELECT agent.session, agent.state IN {ACTIVE}, {BELOW} FROM below JOIN agent ON agent.parent = below.session \
         WHERE NOT below.is_active) \
         SELECT coalesce(sum(iif(is_active, max(coalesce(budget_tokens, 0), tokens), tokens)), 0), \
         coalesce(sum(iif(is_active, max(coalesce(budget_cost, 0.0), cost_usd), cost_usd)), 0.0), \
         coalesce(sum(iif(is_active, max(coalesce(budget_turns, 0), turns), turns)), 0), \
         coalesce(sum(iif(is_active, coalesce(budget_seconds, 0), run_ms / 1000)), 0) FROM below"
    );
    let (tokens, cost, turns, seconds): (i64, f64, i64, i64) = connection
        .prepare_cached(&sql)
        .and_then(|mut select| {
            select.query_row([agent.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
        })
        .map_err(told)?;
    let own = row.map_or_else(AgentBudget::default, |row| row.spent);
    Ok(AgentBudget {
        tokens: Some(tokens.unsigned_abs() + own.tokens.unwrap_or_default()),
        cost_usd: Some(cost + own.cost_usd.unwrap_or_default()),
        turns: Some(turns.unsigned_abs() + own.turns.unwrap_or_default()),
        seconds: Some(seconds.unsigned_abs() + own.seconds.unwrap_or_default()),
    })
}

fn minus(budget: AgentBudget, used: &AgentBudget) -> AgentBudget {
    let number = |budget: Option<u64>, used: Option<u64>| {
        budget.map(|budget| budget.saturating_sub(used.unwrap_or_default()))
    };
    AgentBudget {
        tokens: number(budget.tokens, used.tokens),
        cost_usd: budget
            .cost_usd
            .map(|budget| (budget - used.cost_usd.unwrap_or_default()).max(0.0)),
        turns: number(budget.turns, used.turns),
        seconds: number(budget.seconds, used.seconds),
    }
}

/// Returns the share of a new sub-agent: the amounts it asks for, or an equal part of the rest.
fn share(
    of: AgentBudget,
    left: AgentBudget,
    asks: AgentBudget,
    slots: u32,
) -> Result<AgentBudget, SpawnError> {
    let slots = slots.max(1);
    let refused = |what, asked: String, left: String, of: String| SpawnError::Budget {
        what,
        asked,
        left,
        of,
    };
    let number = |what, of: Option<u64>, left: Option<u64>, asks: Option<u64>| {
        let Some(left) = left else { return Ok(asks) };
        let asked = asks.unwrap_or((left / u64::from(slots)).max(1));
        if asked > left {
            let of = of.unwrap_or_default();
            return Err(refused(what, asked.to_string(), left.to_string(), of.to_string()));
        }
        Ok(Some(asked))
    };
    let cost = match (left.cost_usd, asks.cost_usd) {
        (None, asks) => asks,
        (Some(left), asks) => {
            let asked = asks.unwrap_or(left / f64::from(slots));
            if asked > left || left <= 0.0 {
                let dollars = |amount: f64| format!("${amount:.4}");
                let of = of.cost_usd.unwrap_or_default();
                return Err(refused("of money", dollars(asked), dollars(left), dollars(of)));
            }
            Some(asked)
        }
    };
    Ok(AgentBudget {
        tokens: number("tokens", of.tokens, left.tokens, asks.tokens)?,
        cost_usd: cost,
        turns: number("turns", of.turns, left.turns, asks.turns)?,
        seconds: number("seconds", of.seconds, left.seconds, asks.seconds)?,
    })
}

fn row(new: &NewAgent, (root, depth): (SessionId, u8), (counts, budget): (&Counts, AgentBudget)) -> AgentRow {
    let mut job = new.job.clone();
    if job.name.is_empty() {
        job.name.clone_from(&job.kind);
    }
    AgentRow {
        session: new.session.clone(),
        family: AgentFamily {
            root,
            parent: new.parent.clone(),
            call: new.call.clone(),
            number: counts.last + 1,
            depth,
        },
        job,
        status: AgentStatus::default(),
        budget,
        spent: AgentBudget::default(),
        created_at: new.time,
        ended_at: None,
        seen_at: new.time,
    }
}

fn insert(connection: &Connection, row: &AgentRow) -> Result<(), LogError> {
    let AgentRow {
        family, job, budget, ..
    } = row;
    connection
        .prepare_cached(
            "INSERT INTO agent (session, root, parent, call, number, depth, name, type, task, background, wake, place, \
             worktree, state, budget_tokens, budget_cost, budget_turns, budget_seconds, created_at, started_at, seen_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'queued', ?14, ?15, ?16, ?17, ?18, ?18, ?18)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                row.session.as_str(),
                family.root.as_str(),
                family.parent.as_str(),
                family.call.as_ref().map(CallId::as_str),
                family.number,
                family.depth,
                job.name,
                job.kind,
                job.task,
                job.background,
                job.wake,
                job.place,
                job.worktree,
                budget.tokens.map(signed),
                budget.cost_usd,
                budget.turns.map(signed),
                budget.seconds.map(signed),
                signed(row.created_at.0),
            ])
        })
        .map(drop)
        .map_err(told)
}

/// Runs a statement with values.
type Update<'a> = dyn Fn(&str, &[&dyn ToSql]) -> Result<(), LogError> + 'a;

/// Updates the row of a session, or of its children, to match an entry.
pub(super) fn reflect(
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
        Event::Session(SessionEvent::Agent(event)) => of_agents(id, time, event, &update),
        _ => Ok(()),
    }
}

fn of_agents(id: &SessionId, time: i64, event: &AgentEvent, update: &Update<'_>) -> Result<(), LogError> {
    match event {
        AgentEvent::Subagent { .. } => Ok(()),
        AgentEvent::AgentStarted { wake } => update(
            "UPDATE agent SET state = 'running', reason = NULL, waiting_on = NULL, result = NULL, delivered = 0, \
             background = 1, wake = ?3, started_at = ?2, ended_at = NULL, seen_at = ?2 WHERE session = ?1",
            &[&id.as_str(), &time, wake],
        ),
        AgentEvent::AgentEnded {
            state,
            reason,
            result,
        } => update(
            "UPDATE agent SET run_ms = run_ms + iif(state IN ('queued', 'running', 'waiting'), \
             max(0, ?2 - started_at), 0), state = ?3, reason = ?4, result = ?5, waiting_on = NULL, ended_at = ?2, \
             seen_at = ?2 WHERE session = ?1",
            &[&id.as_str(), &time, &state.name(), reason, result],
        ),
        AgentEvent::AgentDelivered { agents } => agents.iter().try_for_each(|agent| {
            update(
                "UPDATE agent SET delivered = 1 WHERE session = ?1 AND parent = ?2",
                &[&agent.as_str(), &id.as_str()],
            )
        }),
    }
}

/// Adds a booking to the row of its session.
pub(super) fn spend(connection: &Connection, id: &SessionId, booking: &Booking) -> Result<(), LogError> {
    let usage = &booking.usage;
    connection
        .prepare_cached(
            "UPDATE agent SET tokens = tokens + ?2, cost_usd = cost_usd + ?3, turns = turns + ?4 WHERE session = ?1",
        )
        .and_then(|mut update| {
            update.execute(params![
                id.as_str(),
                signed(usage.total_input().saturating_add(usage.output)),
                booking.cost_usd.unwrap_or_default(),
                i64::from(booking.cause == TURN),
            ])
        })
        .map(drop)
        .map_err(told)
}

pub(super) fn get(connection: &Connection, id: &SessionId) -> Result<Option<AgentRow>, LogError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM agent WHERE session = ?1"))
        .and_then(|mut select| select.query_row([id.as_str()], read).optional())
        .map_err(told)?
        .transpose()
}

pub(super) fn list(connection: &Connection, query: &AgentQuery) -> Result<Vec<AgentRow>, LogError> {
    let (condition, of): (String, String) = match query {
        AgentQuery::Below(id) => (
            "root = ?1 OR session IN (WITH RECURSIVE below (session) AS (SELECT session FROM agent WHERE parent = ?1 \
             UNION SELECT agent.session FROM agent JOIN below ON agent.parent = below.session) SELECT session FROM below)"
                .to_owned(),
            id.to_string(),
        ),
        AgentQuery::Children(id) => ("parent = ?1".to_owned(), id.to_string()),
        AgentQuery::Undelivered(id) => (
            format!("parent = ?1 AND delivered = 0 AND state NOT IN {ACTIVE}"),
            id.to_string(),
        ),
        AgentQuery::Recent(trees) => (
            "root IN (SELECT root FROM agent GROUP BY root ORDER BY max(seen_at) DESC LIMIT ?1)".to_owned(),
            trees.to_string(),
        ),
    };
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE {condition} ORDER BY root, number");
    let mut select = connection.prepare_cached(&sql).map_err(told)?;
    let rows = match query {
        AgentQuery::Recent(trees) => select.query_map([i64::try_from(*trees).unwrap_or(i64::MAX)], read),
        _ => select.query_map([of], read),
    };
    rows.map_err(told)?.map(|row| row.map_err(told)?).collect()
}

pub(super) fn budget_left(connection: &Connection, id: &SessionId) -> Result<AgentBudget, LogError> {
    let Some(row) = get(connection, id)? else {
        return Ok(AgentBudget::default());
    };
    Ok(minus(row.budget, &used(connection, id, Some(&row))?))
}

pub(super) fn set_worktree(
    connection: &Connection,
    id: &SessionId,
    folder: Option<&str>,
) -> Result<(), LogError> {
    connection
        .execute(
            "UPDATE agent SET worktree = ?2 WHERE session = ?1",
            params![id.as_str(), folder],
        )
        .map(drop)
        .map_err(told)
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
    }))
}
