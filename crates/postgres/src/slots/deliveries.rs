//! Results that are to be delivered.

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    Delivered, Deliveries, Delivery, DeliveryRecord, LogError, SlotEnd, SlotKey, SlotSession,
};

use super::{give_session, is_own};
use crate::PostgresStore;
use crate::failure::Fault;
use crate::sql::{clean, row, rows, run, signed, small, time};

/// Time for one attempt to deliver, after which another process may try, in milliseconds.
const ATTEMPT: u64 = 60_000;

#[async_trait]
impl Deliveries for PostgresStore {
    async fn due_delivery(&self, owner: &str, now: Timestamp) -> Result<Option<Delivery>, LogError> {
        let owner = owner.to_owned();
        self.write(async move |transaction, _| take(transaction, &owner, now).await)
            .await
    }

    async fn settle_delivery(&self, id: i64, outcome: &Delivered) -> Result<(), LogError> {
        let outcome = outcome.clone();
        self.write(async move |transaction, _| settle(transaction, id, &outcome).await)
            .await
    }

    async fn link_slot(
        &self,
        key: &SlotKey,
        owner: &str,
        session: &SlotSession,
    ) -> Result<Option<SessionId>, LogError> {
        let (key, owner, wanted) = (key.clone(), owner.to_owned(), session.clone());
        self.thread
            .run(async move |context| {
                let now = context.clock.now();
                context
                    .write(async |transaction, again| {
                        if !is_own(transaction, &key, &owner).await? {
                            return Ok(None);
                        }
                        let sql = "SELECT session FROM cron_slot WHERE job = $1 AND slot = $2 AND session IS NOT NULL";
                        let linked = row(transaction, sql, &[&key.job, &signed(key.slot.0)]).await?;
                        if let Some(linked) = linked.filter(|_| again) {
                            return Ok(Some(SessionId::from(linked.get::<_, String>(0))));
                        }
                        give_session(transaction, &key, &wanted, now).await.map(Some)
                    })
                    .await
            })
            .await
    }
}

/// Adds the deliveries of a run that ended.
pub(super) async fn queue(client: &impl GenericClient, end: &SlotEnd) -> Result<(), Fault> {
    for (target, body) in &end.deliveries {
        let sql = "INSERT INTO cron_delivery (job, slot, target, body, next_at) VALUES ($1, $2, $3, $4, $5)";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
            &end.key.job,
            &signed(end.key.slot.0),
            &clean(target),
            &clean(body),
            &signed(end.time.0),
        ];
        run(client, sql, &values).await?;
    }
    Ok(())
}

/// Returns the deliveries of a slot.
pub(super) async fn of(client: &impl GenericClient, key: &SlotKey) -> Result<Vec<DeliveryRecord>, Fault> {
    let sql =
        "SELECT target, state, attempts, detail FROM cron_delivery WHERE job = $1 AND slot = $2 ORDER BY id";
    let found = rows(client, sql, &[&key.job, &signed(key.slot.0)]).await?;
    let delivery = |row: &tokio_postgres::Row| DeliveryRecord {
        target: row.get(0),
        state: row.get(1),
        attempts: small(row, 2),
        detail: row.get(3),
    };
    Ok(found.iter().map(delivery).collect())
}

/// Takes a delivery. It is due again when the attempt takes too long, as that of a process that has ended.
async fn take(client: &impl GenericClient, owner: &str, now: Timestamp) -> Result<Option<Delivery>, Fault> {
    let sql = "UPDATE cron_delivery SET owner = $1, next_at = $3, attempts = attempts + 1 WHERE id = (\
          SELECT id FROM cron_delivery WHERE state = 'waiting' AND next_at <= $2 ORDER BY next_at, id LIMIT 1 \
          FOR UPDATE SKIP LOCKED) \
        RETURNING id, job, slot, target, body, attempts - 1";
    let found = row(client, sql, &[&owner, &signed(now.0), &signed(now.0 + ATTEMPT)]).await?;
    Ok(found.map(|row| Delivery {
        id: row.get(0),
        key: SlotKey {
            job: row.get(1),
            slot: time(&row, 2),
        },
        target: row.get(3),
        body: row.get(4),
        attempts: small(&row, 5),
    }))
}

async fn settle(client: &impl GenericClient, id: i64, outcome: &Delivered) -> Result<(), Fault> {
    let (state, next_at, detail) = match outcome {
        Delivered::Yes => ("delivered", None, ""),
        Delivered::Again(time, why) => ("waiting", Some(signed(time.0)), why.as_str()),
        Delivered::Never(why) => ("failed", None, why.as_str()),
    };
    let sql = "UPDATE cron_delivery SET state = $2, next_at = coalesce($3, next_at), detail = $4, owner = NULL, \
        body = CASE WHEN $2 = 'waiting' THEN body ELSE '' END WHERE id = $1";
    run(client, sql, &[&id, &state, &next_at, &clean(detail)])
        .await
        .map(drop)
}
