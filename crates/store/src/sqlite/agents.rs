//! SUB-4, SUB-5: the ledger of sub-agents. Limits and budgets are counted here, in the transaction that starts a
//! sub-agent.

mod rows;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentCounts, AgentLimits, AgentRow, LogError, NewAgent, SpawnError, Spawned,
};

pub(super) use self::rows::{get, list, reflect, set_worktree, spend};
use super::connection::execute;
use super::failure::told;
use super::lease;
use super::lease::signed;

/// States of sub-agents that have not ended.
const ACTIVE: &str = "('queued', 'running', 'waiting')";

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
    let root = new.root(above.as_ref()).clone();
    let counts = counted(connection, &root, &new.parent)?;
    let used = used(connection, (&root, &new.parent), above.as_ref())?;
    let (row, left) = new.admit(above.as_ref(), &counts, &used)?;
    let parent_key = parent_key.as_deref().unwrap_or(new.parent.as_str());
    let session = new.new_session(row.family.depth, parent_key);
    let opened = lease::create(connection, session, owner, now)?;
    insert(connection, &row)?;
    Ok(Spawned { opened, row, left })
}

/// Reserves the place of a sub-agent that has ended and starts again, unless a limit is reached.
pub(super) fn restart(
    connection: &Connection,
    id: &SessionId,
    limits: &AgentLimits,
    now: Timestamp,
) -> Result<AgentRow, SpawnError> {
    let row = get(connection, id)?.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let title = row.title();
    if row.status.state.is_active() {
        let state = row.status.state;
        return Err(SpawnError::Active { title, state });
    }
    counted(connection, &row.family.root, &row.family.parent)?.check(limits)?;
    let left = row
        .budget
        .minus(&used(connection, (&row.family.root, id), Some(&row))?);
    if let Some(what) = left.used_up() {
        return Err(SpawnError::UsedUp {
            title,
            what,
            of: row.budget,
        });
    }
    execute(
        connection,
        "UPDATE agent SET state = 'queued', started_at = ?2, seen_at = ?2 WHERE session = ?1",
        &[&id.as_str(), &signed(now.0)],
    )?;
    Ok(get(connection, id)?.unwrap_or(row))
}

fn counted(connection: &Connection, root: &SessionId, parent: &SessionId) -> Result<AgentCounts, LogError> {
    let number = |sql: &str, of: &SessionId| -> Result<u32, LogError> {
        connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([of.as_str()], |row| row.get(0)))
            .map_err(told)
    };
    let of_root = format!("SELECT count(*) FROM agent WHERE root = ?1 AND state IN {ACTIVE}");
    let of_parent = format!("SELECT count(*) FROM agent WHERE parent = ?1 AND state IN {ACTIVE}");
    Ok(AgentCounts {
        made: number("SELECT coalesce(max(number), 0) FROM agent WHERE root = ?1", root)?,
        running: number(&of_root, root)?,
        children: number(&of_parent, parent)?,
    })
}

/// Returns the amounts that an agent and those below it have used, or hold as their share while they run. The
/// use of a session that is no sub-agent itself does not count.
///
/// The sum of what was used is stored, and the rest of a share is held only by those that run. So this takes the
/// same time however many have ended.
fn used(
    connection: &Connection,
    (root, agent): (&SessionId, &SessionId),
    row: Option<&AgentRow>,
) -> Result<AgentBudget, LogError> {
    let sums = |row: &rusqlite::Row<'_>| -> rusqlite::Result<([i64; 3], f64)> {
        Ok(([row.get(0)?, row.get(1)?, row.get(2)?], row.get(3)?))
    };
    let below = connection
        .prepare_cached(
            "SELECT prompt_tokens + completion_tokens, turns, run_ms, cost_usd FROM descendants WHERE session = ?1",
        )
        .and_then(|mut select| select.query_row([agent.as_str()], sums).optional())
        .map_err(told)?;
    let (below, below_cost) = below.unwrap_or_default();
    // A running sub-agent holds the rest of its share, which covers everything below it.
    let sql = format!(
        "WITH RECURSIVE up (agent, at) AS (\
         SELECT session, parent FROM agent INDEXED BY agent_active WHERE root = ?1 AND state IN {ACTIVE} UNION ALL \
         SELECT up.agent, agent.parent FROM up JOIN agent ON agent.session = up.at \
         WHERE up.at <> ?2 AND agent.state NOT IN {ACTIVE}) \
         SELECT coalesce(sum(max(0, coalesce(budget_tokens, 0) - tokens - coalesce(prompt_tokens + completion_tokens, 0))), 0), \
         coalesce(sum(max(0, coalesce(budget_turns, 0) - agent.turns - coalesce(descendants.turns, 0))), 0), \
         coalesce(sum(max(0, coalesce(budget_seconds, 0) * 1000 - agent.run_ms - coalesce(descendants.run_ms, 0))), 0), \
         coalesce(sum(max(0.0, coalesce(budget_cost, 0.0) - agent.cost_usd - coalesce(descendants.cost_usd, 0.0))), 0.0) \
         FROM up JOIN agent ON agent.session = up.agent LEFT JOIN descendants ON descendants.session = up.agent \
         WHERE up.at = ?2"
    );
    let (held, held_cost) = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_row([root.as_str(), agent.as_str()], sums))
        .map_err(told)?;
    let own = row.map_or_else(AgentBudget::default, |row| row.spent);
    let [tokens, turns, run_ms] = [0, 1, 2].map(|place: usize| (below[place] + held[place]).unsigned_abs());
    Ok(AgentBudget {
        tokens: Some(tokens + own.tokens.unwrap_or_default()),
        cost_usd: Some(below_cost + held_cost + own.cost_usd.unwrap_or_default()),
        turns: Some(turns + own.turns.unwrap_or_default()),
        seconds: Some(run_ms / 1000 + own.seconds.unwrap_or_default()),
    })
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

pub(super) fn budget_left(connection: &Connection, id: &SessionId) -> Result<AgentBudget, LogError> {
    let Some(row) = get(connection, id)? else {
        return Ok(AgentBudget::default());
    };
    let used = used(connection, (&row.family.root, id), Some(&row))?;
    Ok(row.budget.minus(&used))
}
