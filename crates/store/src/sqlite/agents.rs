//! SUB-4, SUB-5: the ledger of sub-agents. Limits and budgets are counted here, in the transaction that starts a
//! sub-agent.

mod rows;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentFamily, AgentLimits, AgentRow, AgentStatus, AgentsLeft, LogError, NewAgent, SpawnError,
    Spawned,
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
    let depth = above.as_ref().map_or(0, |above| above.family.depth) + 1;
    let root = above
        .as_ref()
        .map_or(&new.parent, |above| &above.family.root)
        .clone();
    let counts = counted(connection, &root, &new.parent)?;
    if depth > new.limits.max_spawn_depth {
        let most = new.limits.max_spawn_depth;
        return Err(SpawnError::Depth { depth, most });
    }
    if counts.made >= new.limits.max_agents {
        let (made, most) = (counts.made, new.limits.max_agents);
        return Err(SpawnError::Agents { made, most });
    }
    check_running(&new.limits, &counts)?;
    let budget = match &above {
        Some(above) => above.budget,
        None => new.limits.budget,
    };
    let left = minus(budget, &used(connection, (&root, &new.parent), above.as_ref())?);
    let running = free(&new.limits, &counts);
    let share = share(budget, left, new.asks, running)?;
    let parent_key = parent_key.as_deref().unwrap_or(new.parent.as_str());
    let opened = lease::create(connection, new.new_session(depth, parent_key), owner, now)?;
    let row = row(new, (root, depth), (counts.made, share));
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
    check_running(
        limits,
        &counted(connection, &row.family.root, &row.family.parent)?,
    )?;
    let left = minus(row.budget, &used(connection, (&row.family.root, id), Some(&row))?);
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

/// Numbers of sub-agents.
struct Counts {
    /// In the tree, so far. The last one has this number.
    made: u32,
    /// Running in the tree.
    running: u32,
    /// Running, of the same parent.
    children: u32,
}

fn counted(connection: &Connection, root: &SessionId, parent: &SessionId) -> Result<Counts, LogError> {
    let number = |sql: &str, of: &SessionId| -> Result<u32, LogError> {
        connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([of.as_str()], |row| row.get(0)))
            .map_err(told)
    };
    let of_root = format!("SELECT count(*) FROM agent WHERE root = ?1 AND state IN {ACTIVE}");
    let of_parent = format!("SELECT count(*) FROM agent WHERE parent = ?1 AND state IN {ACTIVE}");
    Ok(Counts {
        made: number("SELECT coalesce(max(number), 0) FROM agent WHERE root = ?1", root)?,
        running: number(&of_root, root)?,
        children: number(&of_parent, parent)?,
    })
}

/// Refuses a further running sub-agent if there are enough.
fn check_running(limits: &AgentLimits, counts: &Counts) -> Result<(), SpawnError> {
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
fn free(limits: &AgentLimits, counts: &Counts) -> u32 {
    let beside = limits.max_children.saturating_sub(counts.children);
    beside.min(limits.max_concurrent.saturating_sub(counts.running))
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

fn row(new: &NewAgent, (root, depth): (SessionId, u8), (made, budget): (u32, AgentBudget)) -> AgentRow {
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
            number: made + 1,
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

pub(super) fn budget_left(connection: &Connection, id: &SessionId) -> Result<AgentBudget, LogError> {
    let Some(row) = get(connection, id)? else {
        return Ok(AgentBudget::default());
    };
    Ok(minus(
        row.budget,
        &used(connection, (&row.family.root, id), Some(&row))?,
    ))
}
