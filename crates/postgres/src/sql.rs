//! Statements, prepared once per connection.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;

use super::failure::Fault;

/// Values of a statement.
pub(super) type Values<'a> = [&'a (dyn ToSql + Sync)];

/// Milliseconds since 1970 on the clock of the database.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Runs a statement, and returns its rows.
pub(super) async fn rows(
    client: &impl GenericClient,
    sql: &str,
    values: &Values<'_>,
) -> Result<Vec<Row>, Fault> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, values).await?)
}

/// Runs a statement, and returns its row, if any.
pub(super) async fn row(
    client: &impl GenericClient,
    sql: &str,
    values: &Values<'_>,
) -> Result<Option<Row>, Fault> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query_opt(&statement, values).await?)
}

/// Runs a statement, and returns its only row.
pub(super) async fn only(client: &impl GenericClient, sql: &str, values: &Values<'_>) -> Result<Row, Fault> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query_one(&statement, values).await?)
}

/// Runs a statement, and returns the number of rows it changed.
pub(super) async fn run(client: &impl GenericClient, sql: &str, values: &Values<'_>) -> Result<u64, Fault> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, values).await?)
}

/// Converts to signed integers. None of our numbers is too large.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit; 0 is none.
pub(super) fn limited(limit: usize) -> i64 {
    match limit {
        0 => i64::MAX,
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    }
}

/// Returns text as the database takes it: it has no NUL character.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// Same as [`clean`].
pub(super) fn cleaned(text: Option<&str>) -> Option<String> {
    text.map(clean)
}

/// Reads a number.
pub(super) fn number(row: &Row, index: usize) -> u64 {
    row.get::<_, i64>(index).unsigned_abs()
}

/// Reads a small number.
pub(super) fn small<T: TryFrom<i64> + Default>(row: &Row, index: usize) -> T {
    T::try_from(row.get::<_, i64>(index)).unwrap_or_default()
}

/// Reads a number that may be absent.
pub(super) fn maybe(row: &Row, index: usize) -> Option<u64> {
    row.get::<_, Option<i64>>(index).map(i64::unsigned_abs)
}

/// Reads a time.
pub(super) fn time(row: &Row, index: usize) -> Timestamp {
    Timestamp(number(row, index))
}

/// Reads the id of a session.
pub(super) fn session(row: &Row, index: usize) -> SessionId {
    SessionId::from(row.get::<_, String>(index))
}
