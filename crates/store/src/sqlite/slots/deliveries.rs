//! Results that are to be delivered.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    Delivered, Deliveries, Delivery, DeliveryRecord, Durability, LogError, SlotEnd, SlotKey, SlotSession,
};

use super::super::SqliteStore;
use super::super::failure::told;
use super::super::lease::signed;
use super::{give_session, time};

/// Time for one attempt to deliver, after which another process may try, in milliseconds.
const ATTEMPT: u64 = 60_000;

#[async_trait]
impl Deliveries for SqliteStore {
    async fn due_delivery(&self, owner: &str, now: Timestamp) -> Result<Option<Delivery>, LogError> {
        let is_due = self
            .readers
            .run(move |connection| is_due(connection, now))
            .await?;
        if !is_due {
            return Ok(None);
        }
        let owner = owner.to_owned();
        let work = move |connection: &Connection| take(connection, &owner, now);
        self.writer.run(Durability::Process, work).await
    }

    async fn settle_delivery(&self, id: i64, outcome: &Delivered) -> Result<(), LogError> {
        let outcome = outcome.clone();
        let work = move |connection: &Connection| settle(connection, id, &outcome);
        self.writer.run(Durability::Process, work).await
    }

    async fn link_slot(
        &self,
        key: &SlotKey,
        owner: &str,
        session: &SlotSession,
    ) -> Result<Option<SessionId>, LogError> {
        let (key, owner, session) = (key.clone(), owner.to_owned(), session.clone());
        let clock = Arc::clone(&self.clock);
        let work = move |connection: &Connection| {
            let own: Option<i64> = connection
                .query_row(
                    "SELECT 1 FROM cron_slot WHERE job = ?1 AND slot = ?2 AND owner = ?3 AND state = 'running'",
                    params![key.job, signed(key.slot.0), owner],
                    |row| row.get(0),
                )
                .optional()
                .map_err(told)?;
            match own {
                Some(_) => give_session(connection, &key, &session, clock.now()).map(Some),
                None => Ok(None),
            }
        };
        self.writer.run(Durability::Disk, work).await
    }
}

/// Adds the deliveries of a run that ended.
pub(super) fn queue(connection: &Connection, end: &SlotEnd) -> Result<(), LogError> {
    for (target, body) in &end.deliveries {
        connection
            .execute(
                "INSERT INTO cron_delivery (job, slot, target, body, next_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    end.key.job,
                    signed(end.key.slot.0),
                    target,
                    body,
                    signed(end.time.0)
                ],
            )
            .map_err(told)?;
    }
    Ok(())
}

/// Returns the deliveries of a slot.
pub(super) fn of(connection: &Connection, key: &SlotKey) -> Result<Vec<DeliveryRecord>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT target, state, attempts, detail FROM cron_delivery WHERE job = ?1 AND slot = ?2 ORDER BY id",
        )
        .map_err(told)?;
    let rows = select
        .query_map(params![key.job, signed(key.slot.0)], |row| {
            Ok(DeliveryRecord {
                target: row.get(0)?,
                state: row.get(1)?,
                attempts: row.get(2)?,
                detail: row.get(3)?,
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

fn is_due(connection: &Connection, now: Timestamp) -> Result<bool, LogError> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM cron_delivery WHERE state = 'waiting' AND next_at <= ?1)",
        )
        .and_then(|mut select| select.query_row([signed(now.0)], |row| row.get(0)))
        .map_err(told)
}

/// Takes a delivery. It is due again when the attempt takes too long, as that of a process that has ended.
fn take(connection: &Connection, owner: &str, now: Timestamp) -> Result<Option<Delivery>, LogError> {
    connection
        .prepare_cached(
            "UPDATE cron_delivery SET owner = ?1, next_at = ?3, attempts = attempts + 1 WHERE id = (\
               SELECT id FROM cron_delivery WHERE state = 'waiting' AND next_at <= ?2 ORDER BY next_at, id LIMIT 1) \
             RETURNING id, job, slot, target, body, attempts - 1",
        )
        .and_then(|mut update| {
            let values = params![owner, signed(now.0), signed(now.0 + ATTEMPT)];
            update
                .query_row(values, |row| {
                    Ok(Delivery {
                        id: row.get(0)?,
                        key: SlotKey {
                            job: row.get(1)?,
                            slot: time(row, 2)?,
                        },
                        target: row.get(3)?,
                        body: row.get(4)?,
                        attempts: row.get(5)?,
                    })
                })
                .optional()
        })
        .map_err(told)
}

fn settle(connection: &Connection, id: i64, outcome: &Delivered) -> Result<(), LogError> {
    let (state, next_at, detail) = match outcome {
        Delivered::Yes => ("delivered", None, ""),
        Delivered::Again(time, why) => ("waiting", Some(signed(time.0)), why.as_str()),
        Delivered::Never(why) => ("failed", None, why.as_str()),
    };
    connection
        .execute(
            "UPDATE cron_delivery SET state = ?2, next_at = coalesce(?3, next_at), detail = ?4, owner = NULL, \
             body = CASE ?2 WHEN 'waiting' THEN body ELSE '' END WHERE id = ?1",
            params![id, state, next_at, detail],
        )
        .map(drop)
        .map_err(told)
}
