//! SUB-4, SUB-5: the ledger of sub-agents. Limits and budgets are counted in the transaction that starts a sub-agent,
//! under a lock on the session at the top of its tree.

mod rows;

use deadpool_postgres::{GenericClient, Transaction};
use windlass_core::clock::Timestamp;
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentCounts, AgentLimits, AgentRow, AgentsLeft, Lease, LogError, NewAgent, Opened,
    SpawnError, Spawned,
};

pub(super) use self::rows::{get, list, reflect, set_worktree};
use super::failure::Fault;
use super::sql::{clean, cleaned, number, only, row, run, signed, small};
use super::{find, lease};

/// States of sub-agents that have not ended.
const ACTIVE: &str = "('queued', 'running', 'waiting')";

/// Creates a sub-agent, unless a limit is reached. A refusal writes nothing.
pub(super) async fn spawn(
    client: &Transaction<'_>,
    new: &NewAgent,
    owner: &str,
    again: bool,
) -> Result<Result<Spawned, SpawnError>, Fault> {
    if again && let Some(made) = spawned(client, new, owner).await? {
        return Ok(Ok(made));
    }
    let above = get(client, &new.parent).await?;
    let root = new.root(above.as_ref()).clone();
    lock(client, &root).await?;
    let sql = "SELECT key FROM session WHERE id = $1";
    let parent = row(client, sql, &[&new.parent.as_str()]).await?;
    let parent = parent.ok_or_else(|| LogError::Unknown(new.parent.clone()))?;
    let parent_key: Option<String> = parent.get(0);
    let counts = counted(client, &root, &new.parent).await?;
    let used = used(client, (&root, &new.parent), above.as_ref()).await?;
    let (row, left) = match new.admit(above.as_ref(), &counts, &used) {
        Ok(admitted) => admitted,
        Err(refused) => return Ok(Err(refused)),
    };
    let parent_key = parent_key.as_deref().unwrap_or(new.parent.as_str());
    let session = new.new_session(row.family.depth, parent_key);
    let opened = lease::create(client, &session, owner, false).await?;
    insert(client, &row).await?;
    Ok(Ok(Spawned { opened, row, left }))
}

/// Returns the sub-agent that an earlier attempt created, if it did.
async fn spawned(client: &Transaction<'_>, new: &NewAgent, owner: &str) -> Result<Option<Spawned>, Fault> {
    let sql = "SELECT 1 FROM session WHERE id = $1 AND owner = $2 AND fence = 1";
    if row(client, sql, &[&new.session.as_str(), &owner])
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let (info, agent) = (
        find::get(client, &new.session).await?,
        get(client, &new.session).await?,
    );
    let (Some(info), Some(row)) = (info, agent) else {
        return Ok(None);
    };
    let lease = Lease {
        session: new.session.clone(),
        owner: owner.to_owned(),
        fence: 1,
    };
    Ok(Some(Spawned {
        opened: Opened {
            lease,
            info,
            entries: Vec::new(),
            draft: None,
            dropped: None,
        },
        row,
        left: AgentsLeft::default(),
    }))
}

/// Keeps other processes from starting sub-agents of the same tree meanwhile.
async fn lock(client: &Transaction<'_>, root: &SessionId) -> Result<(), Fault> {
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended('agents ' || $1, 0))";
    only(client, sql, &[&root.as_str()]).await.map(drop)
}

/// Reserves the place of a sub-agent that has ended and starts again, unless a limit is reached.
pub(super) async fn restart(
    client: &Transaction<'_>,
    id: &SessionId,
    limits: &AgentLimits,
    (now, again): (Timestamp, bool),
) -> Result<Result<AgentRow, SpawnError>, Fault> {
    let row = get(client, id).await?;
    let row = row.ok_or_else(|| LogError::Unknown(id.clone()))?;
    lock(client, &row.family.root).await?;
    let row = get(client, id).await?.unwrap_or(row);
    let title = row.title();
    let state = row.status.state;
    if state.is_active() {
        // Reserved by the first attempt.
        let is_own = again && state == windlass_core::log::AgentState::Queued && row.seen_at == now;
        return Ok(if is_own {
            Ok(row)
        } else {
            Err(SpawnError::Active { title, state })
        });
    }
    let counts = counted(client, &row.family.root, &row.family.parent).await?;
    if let Err(refused) = counts.check(limits) {
        return Ok(Err(refused));
    }
    let used = used(client, (&row.family.root, id), Some(&row)).await?;
    if let Some(what) = row.budget.minus(&used).used_up() {
        let of = row.budget;
        return Ok(Err(SpawnError::UsedUp { title, what, of }));
    }
    let sql = "UPDATE agent SET state = 'queued', started_at = $2, seen_at = $2 WHERE session = $1";
    run(client, sql, &[&id.as_str(), &signed(now.0)]).await?;
    Ok(Ok(get(client, id).await?.unwrap_or(row)))
}

async fn counted(
    client: &impl GenericClient,
    root: &SessionId,
    parent: &SessionId,
) -> Result<AgentCounts, Fault> {
    let sql = format!(
        "SELECT (SELECT coalesce(max(number), 0) FROM agent WHERE root = $1), \
         (SELECT count(*) FROM agent WHERE root = $1 AND state IN {ACTIVE}), \
         (SELECT count(*) FROM agent WHERE parent = $2 AND state IN {ACTIVE})"
    );
    let counts = only(client, &sql, &[&root.as_str(), &parent.as_str()]).await?;
    Ok(AgentCounts {
        made: small(&counts, 0),
        running: small(&counts, 1),
        children: small(&counts, 2),
    })
}

/// Returns the amounts that an agent and those below it have used, or hold as their share while they run. The
/// use of a session that is no sub-agent itself does not count.
async fn used(
    client: &impl GenericClient,
    (root, agent): (&SessionId, &SessionId),
    row: Option<&AgentRow>,
) -> Result<AgentBudget, Fault> {
    let sql = "SELECT prompt_tokens + completion_tokens, turns, run_ms, cost_usd FROM descendants($1)";
    let below = only(client, sql, &[&agent.as_str()]).await?;
    // A running sub-agent holds the rest of its share, which covers everything below it.
    let sql = format!(
        "WITH RECURSIVE up (agent, at) AS (\
         SELECT session, parent FROM agent WHERE root = $1 AND state IN {ACTIVE} UNION ALL \
         SELECT up.agent, agent.parent FROM up JOIN agent ON agent.session = up.at \
         WHERE up.at <> $2 AND agent.state NOT IN {ACTIVE}) \
         SELECT coalesce(sum(greatest(0, coalesce(budget_tokens, 0) - tokens - below.prompt_tokens - below.completion_tokens)), 0)::bigint, \
         coalesce(sum(greatest(0, coalesce(budget_turns, 0) - agent.turns - below.turns)), 0)::bigint, \
         coalesce(sum(greatest(0, coalesce(budget_seconds, 0) * 1000 - agent.run_ms - below.run_ms)), 0)::bigint, \
         coalesce(sum(greatest(0.0, coalesce(budget_cost, 0.0) - agent.cost_usd - below.cost_usd)), 0.0)::float8 \
         FROM up JOIN agent ON agent.session = up.agent CROSS JOIN LATERAL descendants(up.agent) AS below WHERE up.at = $2"
    );
    let held = only(client, &sql, &[&root.as_str(), &agent.as_str()]).await?;
    let own = row.map_or_else(AgentBudget::default, |row| row.spent);
    let [tokens, turns, run_ms] = [0, 1, 2].map(|place| number(&below, place) + number(&held, place));
    let cost = below.get::<_, f64>(3) + held.get::<_, f64>(3);
    Ok(AgentBudget {
        tokens: Some(tokens + own.tokens.unwrap_or_default()),
        cost_usd: Some(cost + own.cost_usd.unwrap_or_default()),
        turns: Some(turns + own.turns.unwrap_or_default()),
        seconds: Some(run_ms / 1000 + own.seconds.unwrap_or_default()),
    })
}

async fn insert(client: &impl GenericClient, row: &AgentRow) -> Result<(), Fault> {
    let AgentRow {
        family, job, budget, ..
    } = row;
    let sql = "INSERT INTO agent (session, root, parent, call, number, depth, name, type, task, background, wake, place, \
        worktree, state, budget_tokens, budget_cost, budget_turns, budget_seconds, created_at, started_at, seen_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'queued', $14, $15, $16, $17, $18, $18, $18)";
    run(
        client,
        sql,
        &[
            &row.session.as_str(),
            &family.root.as_str(),
            &family.parent.as_str(),
            &cleaned(family.call.as_ref().map(CallId::as_str)),
            &i64::from(family.number),
            &i64::from(family.depth),
            &clean(&job.name),
            &clean(&job.kind),
            &clean(&job.task),
            &job.background,
            &job.wake,
            &clean(&job.place),
            &cleaned(job.worktree.as_deref()),
            &budget.tokens.map(signed),
            &budget.cost_usd,
            &budget.turns.map(signed),
            &budget.seconds.map(signed),
            &signed(row.created_at.0),
        ],
    )
    .await?;
    // It has the place of the session above, so that the same servers can take it over.
    let sql =
        "UPDATE session SET home = (SELECT above.home FROM session above WHERE above.id = $2) WHERE id = $1";
    run(client, sql, &[&row.session.as_str(), &family.parent.as_str()])
        .await
        .map(drop)
}

pub(super) async fn budget_left(client: &impl GenericClient, id: &SessionId) -> Result<AgentBudget, Fault> {
    let Some(row) = get(client, id).await? else {
        return Ok(AgentBudget::default());
    };
    let used = used(client, (&row.family.root, id), Some(&row)).await?;
    Ok(row.budget.minus(&used))
}
