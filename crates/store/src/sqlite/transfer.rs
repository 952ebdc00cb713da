//! Sessions as rows, to be moved between databases without loss.

use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use windlass_core::id::SessionId;
use windlass_core::log::{Durability, LogError};
use windlass_postgres::transfer::{CopiedRows, CopiedTable, CopiedValue, SESSION_TABLES};

use super::failure::told;
use super::{SqliteStore, blobs, books, entries, read};

impl SqliteStore {
    /// Returns the rows of a session, table by table as in [`SESSION_TABLES`], as of one moment.
    pub(crate) async fn copied_session(&self, session: &SessionId) -> Result<Vec<CopiedRows>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| {
                let transaction = connection.unchecked_transaction().map_err(told)?;
                SESSION_TABLES
                    .iter()
                    .map(|table| rows(&transaction, table, Some(&id)))
                    .collect()
            })
            .await
    }

    /// Stores the rows of a session, all or none. The session must not exist.
    pub(crate) async fn keep_copied_session(
        &self,
        session: &SessionId,
        tables: Vec<CopiedRows>,
    ) -> Result<(), LogError> {
        let id = session.clone();
        let work = move |connection: &Connection| {
            // What a deleted session of this id has left.
            for table in ["booking", "goal_span"] {
                let sql = format!("DELETE FROM {table} WHERE session = ?1");
                connection.execute(&sql, [id.as_str()]).map_err(told)?;
            }
            for (table, rows) in SESSION_TABLES.iter().zip(&tables) {
                for row in rows {
                    insert(connection, table, row)?;
                }
            }
            books::sum_again(connection, &id)?;
            entries::index(connection, &id)
        };
        self.writer.run(Durability::Disk, work).await
    }

    /// Returns all rows of a table that belongs to no session.
    pub(crate) async fn copied_common(&self, table: &'static CopiedTable) -> Result<CopiedRows, LogError> {
        self.readers
            .run(move |connection| rows(connection, table, None))
            .await
    }

    /// Stores rows of a table that belongs to no session, unless they exist.
    pub(crate) async fn keep_copied_common(
        &self,
        table: &'static CopiedTable,
        rows: CopiedRows,
    ) -> Result<(), LogError> {
        let work =
            move |connection: &Connection| rows.iter().try_for_each(|row| insert(connection, table, row));
        self.writer.run(Durability::Disk, work).await
    }

    /// Stores a content by its digest, unless it exists.
    pub(crate) async fn keep_content(&self, content: Vec<u8>) -> Result<(), LogError> {
        let folder = Arc::clone(&self.blobs);
        read::off_thread(move || {
            let staged = blobs::stage(&folder, &mut content.as_slice())?;
            blobs::put(&folder, &staged)
        })
        .await
    }
}

fn rows(
    connection: &Connection,
    table: &CopiedTable,
    session: Option<&SessionId>,
) -> Result<CopiedRows, LogError> {
    let (columns, name, order) = (table.columns_list(), table.name, table.order);
    let condition = match session {
        Some(_) => format!("WHERE \"{}\" = ?1", table.session),
        None => String::new(),
    };
    let sql = format!("SELECT {columns} FROM {name} {condition} ORDER BY {order}");
    let mut select = connection.prepare(&sql).map_err(told)?;
    let key = session.map(SessionId::as_str);
    let found = select.query_map(params_from_iter(key), |row| {
        let values = (0..table.columns.len()).map(|place| {
            Ok(match row.get::<_, Value>(place)? {
                Value::Null => CopiedValue::Null,
                Value::Integer(number) => CopiedValue::Number(number),
                Value::Real(number) => CopiedValue::Real(number),
                Value::Text(text) => CopiedValue::Text(text),
                Value::Blob(bytes) => CopiedValue::Bytes(bytes),
            })
        });
        values.collect::<rusqlite::Result<Vec<_>>>()
    });
    found.and_then(Iterator::collect).map_err(told)
}

fn insert(connection: &Connection, table: &CopiedTable, row: &[CopiedValue]) -> Result<(), LogError> {
    let places = vec!["?"; table.columns.len()].join(", ");
    let conflict = if table.session.is_empty() {
        " ON CONFLICT DO NOTHING"
    } else {
        ""
    };
    let (name, columns) = (table.name, table.columns_list());
    let sql = format!("INSERT INTO {name} ({columns}) VALUES ({places}){conflict}");
    let values = table.columns.iter().zip(row).map(|(_, value)| Parameter(value));
    connection
        .prepare_cached(&sql)
        .and_then(|mut insert| insert.execute(params_from_iter(values)))
        .map(drop)
        .map_err(told)
}

struct Parameter<'a>(&'a CopiedValue);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            CopiedValue::Null => ValueRef::Null,
            CopiedValue::Number(number) => ValueRef::Integer(*number),
            CopiedValue::Real(number) => ValueRef::Real(*number),
            CopiedValue::Text(text) => ValueRef::Text(text.as_bytes()),
            CopiedValue::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
