//! DIST-7: the audit log, and what users have spent.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    AuditColumns, AuditHash, AuditHead, AuditLog, AuditQuery, AuditRecord, AuditRow, Durability, LogError,
    Spent, SpentBy, UserLedger, UserName,
};

use super::failure::told;
use super::lease::signed;
use super::{SqliteStore, books};

#[async_trait]
impl AuditLog for SqliteStore {
    async fn audit(&self, records: Vec<AuditRecord>, hash: AuditHash) -> Result<(), LogError> {
        let work = move |connection: &Connection| add(connection, &records, hash);
        self.writer.run(Durability::Disk, work).await
    }

    async fn audited(&self, query: &AuditQuery) -> Result<Vec<AuditRow>, LogError> {
        let query = query.clone();
        self.readers.run(move |connection| rows(connection, &query)).await
    }

    async fn audit_head(&self) -> Result<AuditHead, LogError> {
        self.readers.run(head).await
    }

    async fn prune_audit(&self, before: Timestamp) -> Result<u64, LogError> {
        let work = move |connection: &Connection| prune(connection, before);
        self.writer.run(Durability::Disk, work).await
    }
}

#[async_trait]
impl UserLedger for SqliteStore {
    async fn spent_by(&self, user: &UserName, since: Timestamp, by: SpentBy) -> Result<Vec<Spent>, LogError> {
        let user = user.clone();
        self.readers
            .run(move |connection| books::spent_by(connection, &user, since, by))
            .await
    }
}

fn add(connection: &Connection, records: &[AuditRecord], hash: AuditHash) -> Result<(), LogError> {
    let mut last = head(connection)?;
    let mut insert = connection
        .prepare_cached(
            "INSERT INTO audit (number, previous, content, hash, time, user_name, session, action) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .map_err(told)?;
    for record in records {
        let row = last.next(record, hash)?;
        insert
            .execute(params![
                signed(row.number),
                row.previous,
                row.content,
                row.hash,
                signed(record.time.0),
                record.user.as_str(),
                record.session.as_ref().map(SessionId::as_str),
                record.action
            ])
            .map_err(told)?;
    }
    connection
        .execute(
            "UPDATE audit_head SET number = ?1, hash = ?2",
            params![signed(last.number), last.hash],
        )
        .map(drop)
        .map_err(told)
}

fn head(connection: &Connection) -> Result<AuditHead, LogError> {
    let number = |value: i64| value.unsigned_abs();
    connection
        .query_row(
            "SELECT number, hash, pruned, pruned_hash FROM audit_head",
            [],
            |row| {
                Ok(AuditHead {
                    number: number(row.get(0)?),
                    hash: row.get(1)?,
                    pruned: number(row.get(2)?),
                    pruned_hash: row.get(3)?,
                })
            },
        )
        .map_err(told)
}

fn rows(connection: &Connection, query: &AuditQuery) -> Result<Vec<AuditRow>, LogError> {
    let order = if query.is_latest { "DESC" } else { "ASC" };
    let limit = match query.limit {
        0 => i64::MAX,
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    };
    let mut select = connection
        .prepare_cached(&format!(
            "SELECT number, previous, content, hash, time, user_name, session, action FROM audit WHERE number > ?1 AND (?2 IS NULL OR user_name = ?2) \
             AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR action = ?4) AND (?5 IS NULL OR time >= ?5) \
             ORDER BY number {order} LIMIT ?6"
        ))
        .map_err(told)?;
    let found = select
        .query_map(
            params![
                signed(query.after),
                query.user.as_ref().map(UserName::as_str),
                query.session.as_ref().map(SessionId::as_str),
                query.action,
                query.since.map(|since| signed(since.0)),
                limit
            ],
            |row| {
                Ok(AuditRow {
                    number: row.get::<_, i64>(0)?.unsigned_abs(),
                    previous: row.get(1)?,
                    content: row.get(2)?,
                    hash: row.get(3)?,
                    selected_by: AuditColumns {
                        time: row.get(4)?,
                        user: row.get(5)?,
                        session: row.get(6)?,
                        action: row.get(7)?,
                    },
                })
            },
        )
        .map_err(told)?;
    let mut rows: Vec<AuditRow> = found.collect::<Result<_, _>>().map_err(told)?;
    rows.sort_by_key(|row| row.number);
    Ok(rows)
}

fn prune(connection: &Connection, before: Timestamp) -> Result<u64, LogError> {
    // Rows are removed from the start only: up to the first one that is young enough.
    connection
        .execute(
            "UPDATE audit_head SET (pruned, pruned_hash) = (SELECT number, hash FROM audit WHERE number < \
             coalesce((SELECT min(number) FROM audit WHERE time >= ?1), number + 1) ORDER BY number DESC LIMIT 1) \
             WHERE EXISTS (SELECT 1 FROM audit WHERE number < coalesce((SELECT min(number) FROM audit WHERE time >= ?1), number + 1))",
            params![signed(before.0)],
        )
        .map_err(told)?;
    connection
        .execute(
            "DELETE FROM audit WHERE number <= (SELECT pruned FROM audit_head)",
            [],
        )
        .map(|gone| u64::try_from(gone).unwrap_or_default())
        .map_err(told)
}
