//! Slots of scheduled jobs. Every change is one transaction, so that processes that share the database agree.

mod deliveries;

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    Claimed, Durability, JobFacts, JobQuery, JobStanding, LogError, MAX_SURPLUS, NewSlot, RUN_GRACE_MS,
    RunningSlot, SlotCause, SlotEnd, SlotKey, SlotRecord, SlotSession, SlotState, Slots,
};

use super::SqliteStore;
use super::failure::{damaged, told};
use super::lease::{lives, signed};

/// Maximum number of recorded slots per job; the oldest are removed first.
const KEPT: i64 = 1_000;

#[async_trait]
impl Slots for SqliteStore {
    async fn job_facts(&self, query: &JobQuery) -> Result<JobFacts, LogError> {
        let (query, clock) = (query.clone(), Arc::clone(&self.clock));
        let known = {
            let (query, clock) = (query.clone(), Arc::clone(&clock));
            self.readers
                .run(move |connection| known_facts(connection, &query, clock.now()))
                .await?
        };
        if let Some(facts) = known {
            return Ok(facts);
        }
        let work = move |connection: &Connection| {
            introduce(connection, &query)?;
            let facts = known_facts(connection, &query, clock.now())?;
            facts.ok_or_else(|| LogError::Failed(format!("the job {} was not recorded", query.job)))
        };
        self.writer.run(Durability::Process, work).await
    }

    async fn claim_slot(&self, new: &NewSlot) -> Result<Claimed, LogError> {
        let new = new.clone();
        let work = move |connection: &Connection| claim(connection, &new);
        // A slot that is forgotten in a power cut would run twice.
        self.writer.run(Durability::Disk, work).await
    }

    async fn take_over_slot(
        &self,
        key: &SlotKey,
        from: &str,
        owner: &str,
        until: Timestamp,
    ) -> Result<bool, LogError> {
        let (key, from, owner) = (key.clone(), from.to_owned(), owner.to_owned());
        let work = move |connection: &Connection| {
            let changed = connection.execute(
                "UPDATE cron_slot SET owner = ?4, until = ?5, attempts = attempts + 1 \
                 WHERE job = ?1 AND slot = ?2 AND state = 'running' AND owner = ?3",
                params![key.job, signed(key.slot.0), from, owner, signed(until.0)],
            );
            Ok(changed.map_err(told)? > 0)
        };
        self.writer.run(Durability::Disk, work).await
    }

    async fn end_slot(&self, end: &SlotEnd) -> Result<bool, LogError> {
        let end = end.clone();
        let work = move |connection: &Connection| finish(connection, &end);
        self.writer.run(Durability::Disk, work).await
    }

    async fn slots(&self, job: Option<&str>, limit: usize) -> Result<Vec<SlotRecord>, LogError> {
        let job = job.map(str::to_owned);
        self.readers
            .run(move |connection| records(connection, job.as_deref(), limit))
            .await
    }

    async fn set_standing(&self, job: &str, standing: &JobStanding) -> Result<(), LogError> {
        let (job, standing) = (job.to_owned(), standing.clone());
        let work = move |connection: &Connection| stand(connection, &job, &standing);
        self.writer.run(Durability::Process, work).await
    }
}

/// Records a new job, or a new definition of one.
fn introduce(connection: &Connection, query: &JobQuery) -> Result<(), LogError> {
    connection
        .execute(
            "INSERT INTO cron_job (job, definition, since) VALUES (?1, ?2, ?3) \
             ON CONFLICT (job) DO UPDATE SET definition = excluded.definition, since = excluded.since \
             WHERE definition <> excluded.definition",
            params![query.job, query.definition, signed(query.changed_at.0)],
        )
        .map(drop)
        .map_err(told)
}

/// Returns the facts, unless the job is new or its definition has changed.
fn known_facts(
    connection: &Connection,
    query: &JobQuery,
    now: Timestamp,
) -> Result<Option<JobFacts>, LogError> {
    let job = connection
        .prepare_cached("SELECT definition, since, failures, retry_at, disabled FROM cron_job WHERE job = ?1")
        .and_then(|mut select| {
            let row = |row: &Row<'_>| {
                let definition: String = row.get(0)?;
                let facts = JobFacts {
                    since: time(row, 1)?,
                    standing: JobStanding {
                        failures: row.get(2)?,
                        retry_at: maybe_time(row, 3)?,
                        disabled: row.get(4)?,
                    },
                    ..JobFacts::default()
                };
                Ok((definition, facts))
            };
            select.query_row([&query.job], row).optional()
        })
        .map_err(told)?;
    let Some((definition, facts)) = job else {
        return Ok(None);
    };
    if definition != query.definition {
        return Ok(None);
    }
    Ok(Some(JobFacts {
        last: last(connection, &query.job)?,
        last_ended: last_ended(connection, &query.job)?,
        running: running(connection, &query.job, now)?,
        spent_usd: spent(connection, query)?,
        surplus: surplus(connection, query)?,
        ..facts
    }))
}

/// Returns the last slot of the schedule. Slots that a person started do not count.
fn last(connection: &Connection, job: &str) -> Result<Option<(Timestamp, SlotState)>, LogError> {
    let found = connection
        .prepare_cached(
            "SELECT slot, state FROM cron_slot WHERE job = ?1 AND cause = 'schedule' ORDER BY slot DESC LIMIT 1",
        )
        .and_then(|mut select| {
            let row = |row: &Row<'_>| Ok((time(row, 0)?, row.get::<_, String>(1)?));
            select.query_row([job], row).optional()
        })
        .map_err(told)?;
    found.map(|(slot, name)| Ok((slot, state(&name)?))).transpose()
}

fn last_ended(connection: &Connection, job: &str) -> Result<Option<Timestamp>, LogError> {
    connection
        .prepare_cached("SELECT max(ended_at) FROM cron_slot WHERE job = ?1 AND owner IS NOT NULL")
        .and_then(|mut select| select.query_row([job], |row| maybe_time(row, 0)))
        .map_err(told)
}

fn running(connection: &Connection, job: &str, now: Timestamp) -> Result<Vec<RunningSlot>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT slot, owner, until, session, attempts FROM cron_slot WHERE job = ?1 AND state = 'running' \
             ORDER BY slot",
        )
        .map_err(told)?;
    let rows = select
        .query_map([job], |row| {
            let owner: String = row.get(1)?;
            Ok(RunningSlot {
                slot: time(row, 0)?,
                is_alive: lives(&owner, row.get(2)?, now),
                owner,
                session: session(row, 3)?,
                attempts: row.get(4)?,
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

/// Returns sessions of runs before those whose sessions are kept, unless somebody works in them.
fn surplus(connection: &Connection, query: &JobQuery) -> Result<Vec<SessionId>, LogError> {
    let Some(keep) = query.keep_sessions else {
        return Ok(Vec::new());
    };
    let mut select = connection
        .prepare_cached(
            "SELECT id FROM (\
               SELECT session.id AS id, session.updated_at AS changed, max(cron_slot.ended_at) AS ended, \
                 max(cron_slot.slot) AS slot FROM cron_slot JOIN session ON session.id = cron_slot.session \
               WHERE cron_slot.job = ?1 AND cron_slot.ended_at IS NOT NULL AND session.key IS NULL \
               GROUP BY session.id ORDER BY slot DESC LIMIT -1 OFFSET ?2) \
             WHERE changed <= ended + ?3 ORDER BY slot LIMIT ?4",
        )
        .map_err(told)?;
    let values = params![query.job, keep, signed(RUN_GRACE_MS), signed(MAX_SURPLUS as u64)];
    let rows = select
        .query_map(values, |row| Ok(SessionId::from(row.get::<_, String>(0)?)))
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

/// Returns the cost of a job's sessions since the start of the day, with those of their children.
fn spent(connection: &Connection, query: &JobQuery) -> Result<f64, LogError> {
    connection
        .prepare_cached(
            "WITH RECURSIVE below (id) AS (\
               SELECT DISTINCT session FROM cron_slot WHERE job = ?1 AND session IS NOT NULL AND \
                 coalesce(ended_at, started_at) >= ?2 \
               UNION SELECT session.id FROM session, below WHERE session.parent = below.id) \
             SELECT coalesce(sum(cost_usd), 0.0) FROM booking WHERE time >= ?2 AND session IN (SELECT id FROM below)",
        )
        .and_then(|mut select| select.query_row(params![query.job, signed(query.day.0)], |row| row.get(0)))
        .map_err(told)
}

fn claim(connection: &Connection, new: &NewSlot) -> Result<Claimed, LogError> {
    let is_run = new.state == SlotState::Running;
    if is_run {
        let others = running(connection, &new.key.job, new.time)?;
        let alive = others.iter().filter(|slot| slot.is_alive);
        let is_other = |slot: &&RunningSlot| slot.slot != new.key.slot;
        if alive.filter(is_other).count() >= new.max_running {
            return Ok(Claimed::Overlap);
        }
    }
    let time = signed(new.time.0);
    let added = connection
        .execute(
            "INSERT INTO cron_slot (job, slot, cause, state, owner, until, attempts, started_at, ended_at, detail) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
            params![
                new.key.job,
                signed(new.key.slot.0),
                cause_name(new.cause),
                new.state.name(),
                is_run.then_some(&new.owner),
                signed(new.until.0),
                time,
                (!is_run).then_some(time),
                new.detail
            ],
        )
        .map_err(told)?;
    if added == 0 {
        return Ok(Claimed::Taken);
    }
    let session = match &new.session {
        Some(wanted) => Some(give_session(connection, &new.key, wanted, new.time)?),
        None => None,
    };
    prune(connection, &new.key.job)?;
    Ok(Claimed::Won(session))
}

/// Creates the session of a run, or finds the one that continues, and records it with the slot.
fn give_session(
    connection: &Connection,
    key: &SlotKey,
    wanted: &SlotSession,
    now: Timestamp,
) -> Result<SessionId, LogError> {
    let known: Option<String> = match &wanted.key {
        Some(name) => connection
            .query_row("SELECT id FROM session WHERE key = ?1", [name], |row| row.get(0))
            .optional()
            .map_err(told)?,
        None => None,
    };
    let id = known.map_or_else(SessionId::generate, SessionId::from);
    connection
        .execute(
            "INSERT INTO session (id, title, key, place, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5) \
             ON CONFLICT (id) DO NOTHING",
            params![id.as_str(), wanted.title, wanted.key, wanted.place, signed(now.0)],
        )
        .map_err(told)?;
    connection
        .execute(
            "UPDATE cron_slot SET session = ?3 WHERE job = ?1 AND slot = ?2",
            params![key.job, signed(key.slot.0), id.as_str()],
        )
        .map_err(told)?;
    Ok(id)
}

fn finish(connection: &Connection, end: &SlotEnd) -> Result<bool, LogError> {
    let (job, slot) = (&end.key.job, signed(end.key.slot.0));
    let changed = connection
        .execute(
            "UPDATE cron_slot SET state = ?4, detail = ?5, output = ?6, ended_at = ?7, cost_usd = (\
               SELECT coalesce(sum(booking.cost_usd), 0.0) FROM booking \
               WHERE booking.session = cron_slot.session AND booking.time >= cron_slot.started_at) \
             WHERE job = ?1 AND slot = ?2 AND state = 'running' AND owner = ?3",
            params![
                job,
                slot,
                end.owner,
                end.state.name(),
                end.detail,
                end.output,
                signed(end.time.0)
            ],
        )
        .map_err(told)?;
    if changed == 0 {
        return Ok(false);
    }
    if let Some(standing) = &end.standing {
        stand(connection, job, standing)?;
    }
    deliveries::queue(connection, end)?;
    Ok(true)
}

fn stand(connection: &Connection, job: &str, standing: &JobStanding) -> Result<(), LogError> {
    connection
        .execute(
            "UPDATE cron_job SET failures = ?2, retry_at = ?3, disabled = ?4 WHERE job = ?1",
            params![
                job,
                standing.failures,
                standing.retry_at.map(|time| signed(time.0)),
                standing.disabled
            ],
        )
        .map(drop)
        .map_err(told)
}

/// Removes the oldest slots of a job, with their deliveries.
fn prune(connection: &Connection, job: &str) -> Result<(), LogError> {
    connection
        .prepare_cached(
            // A slot with a session of its own stays as long as the session, which is found by it when it is deleted.
            "DELETE FROM cron_slot WHERE job = ?1 AND state <> 'running' AND slot < (\
               SELECT slot FROM cron_slot WHERE job = ?1 ORDER BY slot DESC LIMIT 1 OFFSET ?2) \
             AND NOT EXISTS (SELECT 1 FROM session WHERE session.id = cron_slot.session AND session.key IS NULL)",
        )
        .and_then(|mut delete| delete.execute(params![job, KEPT - 1]))
        .map(drop)
        .map_err(told)
}

fn records(connection: &Connection, job: Option<&str>, limit: usize) -> Result<Vec<SlotRecord>, LogError> {
    let mut select = connection
        .prepare(
            "SELECT job, slot, cause, state, session, started_at, ended_at, cost_usd, detail, output FROM cron_slot \
             WHERE ?1 IS NULL OR job = ?1 ORDER BY slot DESC, job LIMIT ?2",
        )
        .map_err(told)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select
        .query_map(params![job, limit], |row| {
            let record = SlotRecord {
                key: SlotKey {
                    job: row.get(0)?,
                    slot: time(row, 1)?,
                },
                cause: match row.get::<_, String>(2)?.as_str() {
                    "manual" => SlotCause::Manual,
                    _ => SlotCause::Schedule,
                },
                state: SlotState::Running,
                session: session(row, 4)?,
                started_at: time(row, 5)?,
                ended_at: maybe_time(row, 6)?,
                cost_usd: row.get(7)?,
                detail: row.get(8)?,
                output: row.get(9)?,
                deliveries: Vec::new(),
            };
            Ok((record, row.get::<_, String>(3)?))
        })
        .map_err(told)?;
    rows.map(|row| {
        let (record, name) = row.map_err(told)?;
        Ok(SlotRecord {
            state: state(&name)?,
            deliveries: deliveries::of(connection, &record.key)?,
            ..record
        })
    })
    .collect()
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

fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp(row.get::<_, i64>(index)?.unsigned_abs()))
}

fn maybe_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    let time: Option<i64> = row.get(index)?;
    Ok(time.map(|time| Timestamp(time.unsigned_abs())))
}

fn session(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<SessionId>> {
    let id: Option<String> = row.get(index)?;
    Ok(id.map(SessionId::from))
}
