//! DIST-7: the audit log, and what users have spent.

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Transaction};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    AuditColumns, AuditHash, AuditHead, AuditLog, AuditQuery, AuditRecord, AuditRow, LogError, Spent,
    SpentBy, UserLedger, UserName,
};

use super::failure::Fault;
use super::sql::{clean, limited, number, only, rows, run, signed};
use super::{PostgresStore, books};

#[async_trait]
impl AuditLog for PostgresStore {
    async fn audit(&self, records: Vec<AuditRecord>, hash: AuditHash) -> Result<(), LogError> {
        self.write(async move |transaction, again| add(transaction, &records, hash, again).await)
            .await
    }

    async fn audited(&self, query: &AuditQuery) -> Result<Vec<AuditRow>, LogError> {
        let query = query.clone();
        self.read(async move |client| select(client, &query).await).await
    }

    async fn audit_head(&self) -> Result<AuditHead, LogError> {
        self.read(async move |client| head(client, "").await).await
    }

    async fn prune_audit(&self, before: Timestamp) -> Result<u64, LogError> {
        self.write(async move |transaction, _| prune(transaction, before).await)
            .await
    }
}

#[async_trait]
impl UserLedger for PostgresStore {
    async fn spent_by(&self, user: &UserName, since: Timestamp, by: SpentBy) -> Result<Vec<Spent>, LogError> {
        let user = user.clone();
        self.read(async move |client| books::spent_by(client, &user, since, by).await)
            .await
    }
}

async fn add(
    client: &Transaction<'_>,
    records: &[AuditRecord],
    hash: AuditHash,
    again: bool,
) -> Result<(), Fault> {
    // The lock orders the rows of all servers.
    let mut last = head(client, "FOR UPDATE").await?;
    let first = last.number;
    let mut rows = Vec::with_capacity(records.len());
    for record in records {
        let record = AuditRecord {
            action: clean(&record.action),
            ..record.clone()
        };
        rows.push((last.next(&record, hash)?, record));
    }
    if again && is_stored(client, &rows).await? {
        return Ok(());
    }
    for (row, record) in &rows {
        let sql = "INSERT INTO audit (number, previous, content, hash, time, user_name, session, action) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        run(
            client,
            sql,
            &[
                &signed(row.number),
                &row.previous,
                &row.content,
                &row.hash,
                &signed(record.time.0),
                &record.user.as_str(),
                &record.session.as_ref().map(SessionId::as_str),
                &record.action,
            ],
        )
        .await?;
    }
    let sql = "UPDATE audit_head SET number = $1, hash = $2 WHERE number = $3";
    run(client, sql, &[&signed(last.number), &last.hash, &signed(first)])
        .await
        .map(drop)
}

/// Returns true if an attempt whose commit was in doubt has stored the records.
async fn is_stored(client: &impl GenericClient, wanted: &[(AuditRow, AuditRecord)]) -> Result<bool, Fault> {
    let Some((row, _)) = wanted.first() else {
        return Ok(true);
    };
    let count = signed(wanted.len() as u64);
    let sql = "SELECT content FROM audit WHERE number > $1 AND content = $2 LIMIT 1";
    // Other servers may have added rows since.
    let after = signed(row.number).saturating_sub(1_000 + count);
    Ok(!rows(client, sql, &[&after, &row.content]).await?.is_empty())
}

async fn head(client: &impl GenericClient, lock: &str) -> Result<AuditHead, Fault> {
    let sql = format!("SELECT number, hash, pruned, pruned_hash FROM audit_head {lock}");
    let row = only(client, &sql, &[]).await?;
    Ok(AuditHead {
        number: number(&row, 0),
        hash: row.get(1),
        pruned: number(&row, 2),
        pruned_hash: row.get(3),
    })
}

async fn select(client: &impl GenericClient, query: &AuditQuery) -> Result<Vec<AuditRow>, Fault> {
    let order = if query.is_latest { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT number, previous, content, hash, time, user_name, session, action FROM audit WHERE number > $1 AND ($2::text IS NULL OR user_name = $2) \
         AND ($3::text IS NULL OR session = $3) AND ($4::text IS NULL OR action = $4) \
         AND ($5::bigint IS NULL OR time >= $5) ORDER BY number {order} LIMIT $6"
    );
    let found = rows(
        client,
        &sql,
        &[
            &signed(query.after),
            &query.user.as_ref().map(UserName::as_str),
            &query.session.as_ref().map(SessionId::as_str),
            &query.action.as_deref().map(clean),
            &query.since.map(|since| signed(since.0)),
            &limited(query.limit),
        ],
    )
    .await?;
    let row = |row: &tokio_postgres::Row| AuditRow {
        number: number(row, 0),
        previous: row.get(1),
        content: row.get(2),
        hash: row.get(3),
        selected_by: AuditColumns {
            time: row.get(4),
            user: row.get(5),
            session: row.get(6),
            action: row.get(7),
        },
    };
    let mut rows: Vec<AuditRow> = found.iter().map(row).collect();
    rows.sort_by_key(|row| row.number);
    Ok(rows)
}

async fn prune(client: &Transaction<'_>, before: Timestamp) -> Result<u64, Fault> {
    // Rows are removed from the start only: up to the first one that is young enough.
    head(client, "FOR UPDATE").await?;
    let sql = "UPDATE audit_head SET (pruned, pruned_hash) = (SELECT old.number, old.hash FROM audit old \
        WHERE old.number < coalesce((SELECT min(young.number) FROM audit young WHERE young.time >= $1), old.number + 1) \
        ORDER BY old.number DESC LIMIT 1) WHERE EXISTS (SELECT 1 FROM audit old \
        WHERE old.number < coalesce((SELECT min(young.number) FROM audit young WHERE young.time >= $1), old.number + 1))";
    run(client, sql, &[&signed(before.0)]).await?;
    let sql = "DELETE FROM audit WHERE number <= (SELECT pruned FROM audit_head)";
    run(client, sql, &[]).await
}
