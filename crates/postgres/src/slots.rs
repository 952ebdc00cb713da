//! Slots of scheduled jobs. Every change is one transaction, so that processes and machines agree.

mod deliveries;

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    Claimed, JobFacts, JobQuery, JobStanding, LogError, MAX_SURPLUS, NewSlot, RUN_GRACE_MS, RunningSlot,
    SlotCause, SlotEnd, SlotKey, SlotRecord, SlotSession, SlotState, Slots,
};

use super::failure::{Fault, damaged};
use super::sql::{clean, cleaned, limited, maybe, only, row, rows, run, signed, small, time};
use super::{Liveness, PostgresStore};

/// Maximum number of recorded slots per job; the oldest are removed first.
const KEPT: i64 = 1_000;

#[async_trait]
impl Slots for PostgresStore {
    async fn job_facts(&self, query: &JobQuery) -> Result<JobFacts, LogError> {
        let query = query.clone();
        self.thread
            .run(async move |context| {
                let (lives, now) = (context.lives, context.clock.now());
                let known = context
                    .read(async |client| known_facts(client, &query, (lives, now)).await)
                    .await?;
                if let Some(facts) = known {
                    return Ok(facts);
                }
                context
                    .write(async |transaction, _| {
                        introduce(transaction, &query).await?;
                        let facts = known_facts(transaction, &query, (lives, now)).await?;
                        let missing = || LogError::Failed(format!("the job {} was not recorded", query.job));
                        Ok(facts.ok_or_else(missing)?)
                    })
                    .await
            })
            .await
    }

    async fn claim_slot(&self, new: &NewSlot) -> Result<Claimed, LogError> {
        let new = new.clone();
        self.thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .write(async |transaction, again| claim(transaction, &new, (lives, again)).await)
                    .await
            })
            .await
    }

    async fn take_over_slot(
        &self,
        key: &SlotKey,
        from: &str,
        owner: &str,
        until: Timestamp,
    ) -> Result<bool, LogError> {
        let (key, from, owner) = (key.clone(), from.to_owned(), owner.to_owned());
        self.write(async move |transaction, again| {
            let slot = signed(key.slot.0);
            let sql = "UPDATE cron_slot SET owner = $4, until = $5, attempts = attempts + 1 \
                       WHERE job = $1 AND slot = $2 AND state = 'running' AND owner = $3";
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&key.job, &slot, &from, &owner, &signed(until.0)];
            if run(transaction, sql, &values).await? > 0 {
                return Ok(true);
            }
            Ok(again && is_own(transaction, &key, &owner).await?)
        })
        .await
    }

    async fn end_slot(&self, end: &SlotEnd) -> Result<bool, LogError> {
        let end = end.clone();
        self.write(async move |transaction, again| finish(transaction, &end, again).await)
            .await
    }

    async fn slots(&self, job: Option<&str>, limit: usize) -> Result<Vec<SlotRecord>, LogError> {
        let job = cleaned(job);
        self.read(async move |client| records(client, job.as_deref(), limit).await)
            .await
    }

    async fn set_standing(&self, job: &str, standing: &JobStanding) -> Result<(), LogError> {
        let (job, standing) = (job.to_owned(), standing.clone());
        self.write(async move |transaction, _| stand(transaction, &job, &standing).await)
            .await
    }
}

/// Returns true if this process runs the slot.
async fn is_own(client: &impl GenericClient, key: &SlotKey, owner: &str) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM cron_slot WHERE job = $1 AND slot = $2 AND owner = $3 AND state = 'running'";
    let found = row(client, sql, &[&key.job, &signed(key.slot.0), &owner]).await?;
    Ok(found.is_some())
}

/// Records a new job, or a new definition of one.
async fn introduce(client: &impl GenericClient, query: &JobQuery) -> Result<(), Fault> {
    let sql = "INSERT INTO cron_job (job, definition, since) VALUES ($1, $2, $3) \
        ON CONFLICT (job) DO UPDATE SET definition = excluded.definition, since = excluded.since \
        WHERE cron_job.definition <> excluded.definition";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&query.job, &clean(&query.definition), &signed(query.changed_at.0)];
    run(client, sql, &values).await.map(drop)
}

/// Returns the facts, unless the job is new or its definition has changed.
async fn known_facts(
    client: &impl GenericClient,
    query: &JobQuery,
    (lives, now): (Liveness, Timestamp),
) -> Result<Option<JobFacts>, Fault> {
    let sql = "SELECT definition, since, failures, retry_at, disabled FROM cron_job WHERE job = $1";
    let job = row(client, sql, &[&query.job]).await?;
    let Some(job) = job.filter(|job| job.get::<_, &str>(0) == clean(&query.definition)) else {
        return Ok(None);
    };
    let sql =
        "SELECT slot, state FROM cron_slot WHERE job = $1 AND cause = 'schedule' ORDER BY slot DESC LIMIT 1";
    let last = row(client, sql, &[&query.job]).await?;
    let last = last.map(|row| Ok::<_, LogError>((time(&row, 0), state(row.get(1))?)));
    let sql = "SELECT max(ended_at) FROM cron_slot WHERE job = $1 AND owner IS NOT NULL";
    let last_ended = maybe(&only(client, sql, &[&query.job]).await?, 0);
    Ok(Some(JobFacts {
        since: time(&job, 1),
        standing: JobStanding {
            failures: small(&job, 2),
            retry_at: maybe(&job, 3).map(Timestamp),
            disabled: job.get(4),
        },
        last: last.transpose()?,
        last_ended: last_ended.map(Timestamp),
        running: running(client, &query.job, (lives, now)).await?,
        spent_usd: spent(client, query).await?,
        surplus: surplus(client, query).await?,
    }))
}

async fn running(
    client: &impl GenericClient,
    job: &str,
    (lives, now): (Liveness, Timestamp),
) -> Result<Vec<RunningSlot>, Fault> {
    let sql = "SELECT slot, owner, until, session, attempts FROM cron_slot WHERE job = $1 AND state = 'running' ORDER BY slot";
    let found = rows(client, sql, &[&job]).await?;
    let slot = |row: &Row| {
        let owner: String = row.get(1);
        RunningSlot {
            slot: time(row, 0),
            is_alive: lives(&owner, row.get::<_, i64>(2) > signed(now.0)),
            owner,
            session: row.get::<_, Option<String>>(3).map(SessionId::from),
            attempts: small(row, 4),
        }
    };
    Ok(found.iter().map(slot).collect())
}

/// Returns sessions of runs before those whose sessions are kept, unless somebody works in them.
async fn surplus(client: &impl GenericClient, query: &JobQuery) -> Result<Vec<SessionId>, Fault> {
    let Some(keep) = query.keep_sessions else {
        return Ok(Vec::new());
    };
    let sql = "SELECT id FROM (\
          SELECT session.id AS id, session.updated_at AS changed, max(cron_slot.ended_at) AS ended, \
            max(cron_slot.slot) AS slot FROM cron_slot JOIN session ON session.id = cron_slot.session COLLATE \"C\" \
          WHERE cron_slot.job = $1 AND cron_slot.ended_at IS NOT NULL AND session.key IS NULL \
          GROUP BY session.id, session.updated_at ORDER BY slot DESC OFFSET $2) AS older \
        WHERE changed <= ended + $3 ORDER BY slot LIMIT $4";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [
        &query.job,
        &i64::from(keep),
        &signed(RUN_GRACE_MS),
        &limited(MAX_SURPLUS),
    ];
    let found = rows(client, sql, &values).await?;
    Ok(found
        .iter()
        .map(|row| SessionId::from(row.get::<_, String>(0)))
        .collect())
}

/// Returns the cost of a job's sessions since the start of the day, with those of their children.
async fn spent(client: &impl GenericClient, query: &JobQuery) -> Result<f64, Fault> {
    let sql = "WITH RECURSIVE below (id) AS (\
          SELECT DISTINCT session COLLATE \"C\" FROM cron_slot WHERE job = $1 AND session IS NOT NULL AND \
            coalesce(ended_at, started_at) >= $2 \
          UNION SELECT session.id FROM session JOIN below ON session.parent = below.id) \
        SELECT coalesce(sum(cost_usd), 0) FROM booking WHERE time >= $2 AND session IN (SELECT id FROM below)";
    Ok(only(client, sql, &[&query.job, &signed(query.day.0)])
        .await?
        .get(0))
}

async fn claim(
    client: &Transaction<'_>,
    new: &NewSlot,
    (lives, again): (Liveness, bool),
) -> Result<Claimed, Fault> {
    // Runs of one job are counted and claimed one after the other.
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended('job ' || $1, 0))";
    only(client, sql, &[&new.key.job]).await?;
    let slot = signed(new.key.slot.0);
    let is_run = new.state == SlotState::Running;
    if again {
        let sql = "SELECT session FROM cron_slot WHERE job = $1 AND slot = $2 AND started_at = $3 \
                   AND owner IS NOT DISTINCT FROM $4 AND state = $5";
        let owner = is_run.then_some(&new.owner);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
            &new.key.job,
            &slot,
            &signed(new.time.0),
            &owner,
            &new.state.name(),
        ];
        if let Some(own) = row(client, sql, &values).await? {
            return Ok(Claimed::Won(own.get::<_, Option<String>>(0).map(SessionId::from)));
        }
    }
    if is_run {
        let others = running(client, &new.key.job, (lives, new.time)).await?;
        let alive = others.iter().filter(|slot| slot.is_alive);
        if alive.filter(|slot| slot.slot != new.key.slot).count() >= new.max_running {
            return Ok(Claimed::Overlap);
        }
    }
    let time = signed(new.time.0);
    let sql = "INSERT INTO cron_slot (job, slot, cause, state, owner, until, attempts, started_at, ended_at, detail) \
        VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING";
    let added = run(
        client,
        sql,
        &[
            &new.key.job,
            &slot,
            &cause_name(new.cause),
            &new.state.name(),
            &is_run.then_some(&new.owner),
            &signed(new.until.0),
            &time,
            &(!is_run).then_some(time),
            &clean(&new.detail),
        ],
    )
    .await?;
    if added == 0 {
        return Ok(Claimed::Taken);
    }
    let session = match &new.session {
        Some(wanted) => Some(give_session(client, &new.key, wanted, new.time).await?),
        None => None,
    };
    prune(client, &new.key.job).await?;
    Ok(Claimed::Won(session))
}

/// Creates the session of a run, or finds the one that continues, and records it with the slot.
async fn give_session(
    client: &impl GenericClient,
    key: &SlotKey,
    wanted: &SlotSession,
    now: Timestamp,
) -> Result<SessionId, Fault> {
    let name = cleaned(wanted.key.as_deref());
    let known = match &name {
        Some(name) => row(client, "SELECT id FROM session WHERE key = $1", &[name]).await?,
        None => None,
    };
    let known = known.map(|row| SessionId::from(row.get::<_, String>(0)));
    let id = known.unwrap_or_else(SessionId::generate);
    let sql = "INSERT INTO session (id, title, key, place, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5) \
        ON CONFLICT (id) DO NOTHING";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
        &id.as_str(),
        &clean(&wanted.title),
        &name,
        &clean(&wanted.place),
        &signed(now.0),
    ];
    run(client, sql, &values).await?;
    let sql = "UPDATE cron_slot SET session = $3 WHERE job = $1 AND slot = $2";
    run(client, sql, &[&key.job, &signed(key.slot.0), &id.as_str()]).await?;
    Ok(id)
}

async fn finish(client: &Transaction<'_>, end: &SlotEnd, again: bool) -> Result<bool, Fault> {
    let (job, slot) = (&end.key.job, signed(end.key.slot.0));
    let sql = "UPDATE cron_slot SET state = $4, detail = $5, output = $6, ended_at = $7, cost_usd = (\
          SELECT coalesce(sum(booking.cost_usd), 0) FROM booking \
          WHERE booking.session = cron_slot.session AND booking.time >= cron_slot.started_at) \
        WHERE job = $1 AND slot = $2 AND state = 'running' AND owner = $3";
    let (state, ended) = (end.state.name(), signed(end.time.0));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] = [
        job,
        &slot,
        &end.owner,
        &state,
        &clean(&end.detail),
        &clean(&end.output),
        &ended,
    ];
    if run(client, sql, &values).await? == 0 {
        let sql = "SELECT 1 FROM cron_slot WHERE job = $1 AND slot = $2 AND owner = $3 AND state = $4 AND ended_at = $5";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [job, &slot, &end.owner, &state, &ended];
        return Ok(again && row(client, sql, &values).await?.is_some());
    }
    if let Some(standing) = &end.standing {
        stand(client, job, standing).await?;
    }
    deliveries::queue(client, end).await?;
    Ok(true)
}

async fn stand(client: &impl GenericClient, job: &str, standing: &JobStanding) -> Result<(), Fault> {
    let sql = "UPDATE cron_job SET failures = $2, retry_at = $3, disabled = $4 WHERE job = $1";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [
        &job,
        &i64::from(standing.failures),
        &standing.retry_at.map(|time| signed(time.0)),
        &cleaned(standing.disabled.as_deref()),
    ];
    run(client, sql, &values).await.map(drop)
}

/// Removes the oldest slots of a job, with their deliveries. A slot with a session of its own stays as long as the
/// session, which is found by it when it is deleted.
async fn prune(client: &impl GenericClient, job: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM cron_slot WHERE job = $1 AND state <> 'running' AND slot < (\
        SELECT slot FROM cron_slot WHERE job = $1 ORDER BY slot DESC LIMIT 1 OFFSET $2) \
        AND NOT EXISTS (SELECT 1 FROM session WHERE session.id = cron_slot.session COLLATE \"C\" AND session.key IS NULL)";
    run(client, sql, &[&job, &(KEPT - 1)]).await.map(drop)
}

async fn records(
    client: &impl GenericClient,
    job: Option<&str>,
    limit: usize,
) -> Result<Vec<SlotRecord>, Fault> {
    let sql = "SELECT job, slot, cause, state, session, started_at, ended_at, cost_usd, detail, output FROM cron_slot \
        WHERE $1::text IS NULL OR job = $1 ORDER BY slot DESC, job LIMIT $2";
    let limit = if limit == 0 { 0 } else { limited(limit) };
    let mut records = Vec::new();
    for row in rows(client, sql, &[&job, &limit]).await? {
        let key = SlotKey {
            job: row.get(0),
            slot: time(&row, 1),
        };
        records.push(SlotRecord {
            cause: match row.get::<_, &str>(2) {
                "manual" => SlotCause::Manual,
                _ => SlotCause::Schedule,
            },
            state: state(row.get(3))?,
            session: row.get::<_, Option<String>>(4).map(SessionId::from),
            started_at: time(&row, 5),
            ended_at: maybe(&row, 6).map(Timestamp),
            cost_usd: row.get(7),
            detail: row.get(8),
            output: row.get(9),
            deliveries: deliveries::of(client, &key).await?,
            key,
        });
    }
    Ok(records)
}

fn state(name: &str) -> Result<SlotState, LogError> {
    SlotState::named(name).ok_or_else(|| damaged("a slot of a job", format!("unknown state `{name}`")))
}

fn cause_name(cause: SlotCause) -> &'static str {
    match cause {
        SlotCause::Schedule => "schedule",
        SlotCause::Manual => "manual",
    }
}
