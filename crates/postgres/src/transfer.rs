//! Sessions as rows, to be moved between databases without loss.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;
use windlass_core::id::SessionId;
use windlass_core::log::LogError;

use super::failure::Fault;
use super::sql::{row, rows, run};
use super::{PostgresStore, entries};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum CopiedValue {
    /// No value.
    Null,
    /// A number, a time, or a switch.
    Number(i64),
    /// A fraction.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number or a time.
    Number,
    /// A switch; a number in SQLite.
    Switch,
    /// A fraction.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

use ColumnKind::{Bytes, Number, Real, Switch, Text};

/// A table that is copied.
#[derive(Debug)]
pub struct CopiedTable {
    /// Its name in both databases.
    pub name: &'static str,
    /// Column with the session, or nothing for a table that belongs to no session.
    pub session: &'static str,
    /// Columns that give the order of the rows.
    pub order: &'static str,
    /// Columns that are copied.
    pub columns: &'static [(&'static str, ColumnKind)],
}

/// Rows of a table.
pub type CopiedRows = Vec<Vec<CopiedValue>>;

/// Tables of a session, in the order in which they are written.
pub const SESSION_TABLES: &[CopiedTable] = &[
    CopiedTable {
        name: "session",
        session: "id",
        order: "id",
        columns: &[
            ("id", Text),
            ("parent", Text),
            ("title", Text),
            ("name", Text),
            ("key", Text),
            ("place", Text),
            ("standing", Text),
            ("provider", Text),
            ("model", Text),
            ("messages", Number),
            ("prompt_tokens", Number),
            ("completion_tokens", Number),
            ("context_tokens", Number),
            ("cost_usd", Real),
            ("summary", Text),
            ("base_seq", Number),
            ("last_seq", Number),
            ("created_at", Number),
            ("updated_at", Number),
            ("exchanges", Number),
            ("exchange_bytes", Number),
            ("exchanges_full", Switch),
            ("user_name", Text),
        ],
    },
    CopiedTable {
        name: "entry",
        session: "session",
        order: "seq",
        columns: &[
            ("session", Text),
            ("seq", Number),
            ("kind", Text),
            ("message", Text),
            ("payload", Text),
            ("time", Number),
        ],
    },
    CopiedTable {
        name: "draft",
        session: "session",
        order: "session",
        columns: &[("session", Text), ("payload", Text), ("time", Number)],
    },
    CopiedTable {
        name: "exchange",
        session: "session",
        order: "number",
        columns: &[
            ("session", Text),
            ("number", Number),
            ("time", Number),
            ("provider", Text),
            ("model", Text),
            ("frame", Text),
            ("last", Text),
            ("shared", Number),
            ("request", Bytes),
            ("digest", Text),
            ("status", Number),
            ("form", Text),
            ("answer", Bytes),
            ("cut", Text),
        ],
    },
    CopiedTable {
        name: "attachment",
        session: "session",
        order: "time, name",
        columns: &[
            ("session", Text),
            ("name", Text),
            ("address", Text),
            ("bytes", Number),
            ("time", Number),
        ],
    },
    CopiedTable {
        name: "agent",
        session: "session",
        order: "session",
        columns: &[
            ("session", Text),
            ("root", Text),
            ("parent", Text),
            ("call", Text),
            ("number", Number),
            ("depth", Number),
            ("name", Text),
            ("type", Text),
            ("task", Text),
            ("background", Switch),
            ("wake", Switch),
            ("place", Text),
            ("worktree", Text),
            ("state", Text),
            ("reason", Text),
            ("waiting_on", Text),
            ("result", Text),
            ("delivered", Switch),
            ("budget_tokens", Number),
            ("budget_cost", Real),
            ("budget_turns", Number),
            ("budget_seconds", Number),
            ("tokens", Number),
            ("cost_usd", Real),
            ("turns", Number),
            ("run_ms", Number),
            ("created_at", Number),
            ("started_at", Number),
            ("ended_at", Number),
            ("seen_at", Number),
            ("claims", Text),
        ],
    },
    CopiedTable {
        name: "goal",
        session: "session",
        order: "session",
        columns: &[
            ("session", Text),
            ("text", Text),
            ("state", Text),
            ("reason", Text),
            ("message", Text),
            ("turns", Number),
            ("max_turns", Number),
            ("verification", Text),
            ("started_at", Number),
            ("updated_at", Number),
        ],
    },
    CopiedTable {
        name: "goal_span",
        session: "session",
        order: "since",
        columns: &[("session", Text), ("since", Number), ("until", Number)],
    },
    BOOKINGS,
];

/// The costs. Those of a deleted session stay, so that a limit per day counts them.
pub const BOOKINGS: CopiedTable = CopiedTable {
    name: "booking",
    session: "session",
    order: "time, input, output",
    columns: &[
        ("session", Text),
        ("time", Number),
        ("provider", Text),
        ("model", Text),
        ("cause", Text),
        ("input", Number),
        ("output", Number),
        ("cache_read", Number),
        ("cache_write", Number),
        ("cost_usd", Real),
        ("user_name", Text),
    ],
};

/// Tables that belong to no session. Rows that exist in the target stay as they are.
pub const COMMON_TABLES: &[CopiedTable] = &[
    CopiedTable {
        name: "frame",
        session: "",
        order: "digest",
        columns: &[("digest", Text), ("text", Text)],
    },
    CopiedTable {
        name: "preference",
        session: "",
        order: "scope, name",
        columns: &[("scope", Text), ("name", Text), ("value", Text)],
    },
    CopiedTable {
        name: "cron_job",
        session: "",
        order: "job",
        columns: &[
            ("job", Text),
            ("definition", Text),
            ("since", Number),
            ("failures", Number),
            ("retry_at", Number),
            ("disabled", Text),
        ],
    },
    CopiedTable {
        name: "cron_slot",
        session: "",
        order: "job, slot",
        columns: &[
            ("job", Text),
            ("slot", Number),
            ("cause", Text),
            ("state", Text),
            ("session", Text),
            ("owner", Text),
            ("until", Number),
            ("attempts", Number),
            ("started_at", Number),
            ("ended_at", Number),
            ("cost_usd", Real),
            ("detail", Text),
            ("output", Text),
        ],
    },
];

impl CopiedTable {
    /// Returns the names of the columns, for a statement.
    pub fn columns_list(&self) -> String {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        names.join(", ")
    }
}

impl PostgresStore {
    /// Returns the rows of a session, table by table as in [`SESSION_TABLES`], as of one moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn copied_session(&self, session: &SessionId) -> Result<Vec<CopiedRows>, LogError> {
        let id = session.clone();
        self.write(async move |transaction, _| {
            transaction
                .batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await?;
            let mut tables = Vec::with_capacity(SESSION_TABLES.len());
            for table in SESSION_TABLES {
                tables.push(read(transaction, table, Some(&id)).await?);
            }
            Ok(tables)
        })
        .await
    }

    /// Stores the rows of a session, all or none. The session must not exist.
    ///
    /// # Errors
    /// Fails if they cannot be written, or its key belongs to another session.
    pub async fn keep_copied_session(
        &self,
        session: &SessionId,
        tables: Vec<CopiedRows>,
    ) -> Result<(), LogError> {
        let id = session.clone();
        self.write(async move |transaction, again| {
            let known = row(
                transaction,
                "SELECT 1 FROM session WHERE id = $1",
                &[&id.as_str()],
            )
            .await?;
            if again && known.is_some() {
                return Ok(());
            }
            // What a deleted session of this id has left.
            for sql in [
                "DELETE FROM booking WHERE session = $1",
                "DELETE FROM goal_span WHERE session = $1",
            ] {
                run(transaction, sql, &[&id.as_str()]).await?;
            }
            for (table, rows) in SESSION_TABLES.iter().zip(&tables) {
                for row in rows {
                    insert(transaction, table, row).await?;
                }
            }
            // The index and the place of the next entry follow from the rows.
            entries::index(transaction, &id).await
        })
        .await
    }

    /// Returns all rows of a table that belongs to no session.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn copied_common(&self, table: &'static CopiedTable) -> Result<CopiedRows, LogError> {
        self.read(async move |client| read(client, table, None).await)
            .await
    }

    /// Stores rows of a table that belongs to no session, unless they exist.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub async fn keep_copied_common(
        &self,
        table: &'static CopiedTable,
        rows: CopiedRows,
    ) -> Result<(), LogError> {
        self.write(async move |transaction, _| {
            for row in &rows {
                insert(transaction, table, row).await?;
            }
            Ok(())
        })
        .await
    }

    /// Stores a content by its digest, unless it exists.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub async fn keep_content(&self, address: &str, content: Vec<u8>) -> Result<(), LogError> {
        let address = address.to_owned();
        self.write(async move |transaction, _| {
            super::blobs::keep_bytes(transaction, &address, &content).await
        })
        .await
    }
}

async fn read(
    client: &impl GenericClient,
    table: &CopiedTable,
    session: Option<&SessionId>,
) -> Result<CopiedRows, Fault> {
    let (columns, name, order) = (table.columns_list(), table.name, table.order);
    let found = match session {
        Some(session) => {
            let of = table.session;
            let sql = format!("SELECT {columns} FROM {name} WHERE \"{of}\" = $1 ORDER BY {order}");
            rows(client, &sql, &[&session.as_str()]).await?
        }
        None => {
            rows(
                client,
                &format!("SELECT {columns} FROM {name} ORDER BY {order}"),
                &[],
            )
            .await?
        }
    };
    let value = |row: &tokio_postgres::Row, place: usize, kind: ColumnKind| match kind {
        Number => row.get::<_, Option<i64>>(place).map(CopiedValue::Number),
        Switch => row
            .get::<_, Option<bool>>(place)
            .map(|on| CopiedValue::Number(on.into())),
        Real => row.get::<_, Option<f64>>(place).map(CopiedValue::Real),
        Text => row.get::<_, Option<String>>(place).map(CopiedValue::Text),
        Bytes => row.get::<_, Option<Vec<u8>>>(place).map(CopiedValue::Bytes),
    };
    let copied = |row: &tokio_postgres::Row| {
        let columns = table.columns.iter().enumerate();
        let values = columns.map(|(place, (_, kind))| value(row, place, *kind).unwrap_or(CopiedValue::Null));
        values.collect()
    };
    Ok(found.iter().map(copied).collect())
}

async fn insert(client: &Transaction<'_>, table: &CopiedTable, row: &[CopiedValue]) -> Result<(), Fault> {
    let mut names = table.columns_list();
    let mut places: Vec<String> = (1..=table.columns.len())
        .map(|place| format!("${place}"))
        .collect();
    // Columns that only this database has.
    match table.name {
        "booking" => {
            names.push_str(", id");
            places.push("gen_random_uuid()::text".to_owned());
        }
        "entry" | "draft" => {
            names.push_str(", fence");
            places.push("0".to_owned());
        }
        _ => {}
    }
    let conflict = if table.session.is_empty() {
        " ON CONFLICT DO NOTHING"
    } else {
        ""
    };
    let sql = format!(
        "INSERT INTO {} ({names}) VALUES ({}){conflict}",
        table.name,
        places.join(", ")
    );
    let values: Vec<Box<dyn ToSql + Sync + Send>> = table
        .columns
        .iter()
        .zip(row)
        .map(|((_, kind), value)| parameter(*kind, value))
        .collect();
    let values: Vec<&(dyn ToSql + Sync)> = values
        .iter()
        .map(|value| &**value as &(dyn ToSql + Sync))
        .collect();
    run(client, &sql, &values).await.map(drop)
}

fn parameter(kind: ColumnKind, value: &CopiedValue) -> Box<dyn ToSql + Sync + Send> {
    match (kind, value) {
        (Switch, CopiedValue::Number(number)) => Box::new(*number != 0),
        (Real, CopiedValue::Number(number)) => Box::new(super::search::real(*number)),
        (_, CopiedValue::Number(number)) => Box::new(*number),
        (_, CopiedValue::Real(number)) => Box::new(*number),
        (_, CopiedValue::Text(text)) => Box::new(super::sql::clean(text)),
        (_, CopiedValue::Bytes(bytes)) => Box::new(bytes.clone()),
        (Number, CopiedValue::Null) => Box::new(None::<i64>),
        (Switch, CopiedValue::Null) => Box::new(None::<bool>),
        (Real, CopiedValue::Null) => Box::new(None::<f64>),
        (Text, CopiedValue::Null) => Box::new(None::<String>),
        (Bytes, CopiedValue::Null) => Box::new(None::<Vec<u8>>),
    }
}
