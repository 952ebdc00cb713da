//! DIST-8: moves sessions between databases.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::Arc;

use windlass_core::clock::Clock;
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, SessionInfo, SessionQuery, Store};
use windlass_postgres::PostgresStore;
use windlass_postgres::transfer::{BOOKINGS, COMMON_TABLES, CopiedRows, CopiedTable, CopiedValue};

use crate::sqlite::SqliteStore;
use crate::{Started, start};

/// Result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyReport {
    /// Number of sessions that were copied.
    pub copied: u64,
    /// Number of sessions that were there already.
    pub present: u64,
}

/// Copies every session from one store to another, with everything that belongs to it: entries, costs, attachments,
/// recorded exchanges, sub-agents, goals; and the costs of deleted sessions, preferences and the record of scheduled jobs. Each session is written as a
/// whole or not at all, so a copy that was stopped can be run again. `told` is called before each session with its
/// number, the number of all, and the session.
///
/// # Errors
/// When a session is in use, exists in the target with other content, or either store cannot be used. Before the first
/// session is written, all are checked.
pub async fn copy(
    from: impl AsRef<OsStr>,
    to: impl AsRef<OsStr>,
    clock: Arc<dyn Clock>,
    mut told: impl FnMut(usize, usize, &SessionInfo),
) -> Result<CopyReport, LogError> {
    let from = Side::open(from.as_ref(), Arc::clone(&clock)).await?;
    let to = Side::open(to.as_ref(), clock).await?;
    let all = SessionQuery {
        children: true,
        ..SessionQuery::default()
    };
    let mut sessions = from.store().list(&all).await?;
    let ids: HashSet<String> = sessions.iter().map(|info| info.id.to_string()).collect();
    // Parents before their children.
    sessions.sort_by(|left, right| (left.created_at, &left.id).cmp(&(right.created_at, &right.id)));
    let mut report = CopyReport::default();
    let mut open = Vec::new();
    for info in sessions {
        if let Some(owner) = from.store().holder(&info.id).await? {
            let session = info.id;
            return Err(LogError::Busy { session, owner });
        }
        match to.store().get(&info.id).await? {
            None => open.push(info),
            Some(known) => {
                check(&from, &to, &known.id).await?;
                report.present += 1;
            }
        }
    }
    let count = open.len();
    for (number, info) in open.iter().enumerate() {
        told(number + 1, count, info);
        let tables = from.session(&info.id).await?;
        for attachment in from.store().attachments(&info.id).await? {
            let content = from.store().content(&attachment.address).await?;
            let content = content.ok_or_else(|| LogError::Damaged {
                what: format!("session {}", info.id),
                why: format!("the content of its attachment {} is missing", attachment.name),
            })?;
            to.keep_content(&attachment.address, content).await?;
        }
        to.keep_session(&info.id, tables).await?;
        report.copied += 1;
    }
    copy_left_costs(&from, &to, &ids).await?;
    for table in COMMON_TABLES {
        to.keep_common(table, from.common(table).await?).await?;
    }
    Ok(report)
}

/// Copies the costs of sessions that were deleted, which count for the limits of a day. Those of a session that has costs
/// in the target were copied before.
async fn copy_left_costs(from: &Side, to: &Side, present: &HashSet<String>) -> Result<(), LogError> {
    let session = |row: &Vec<CopiedValue>| match row.first() {
        Some(CopiedValue::Text(session)) => session.clone(),
        _ => String::new(),
    };
    let known: HashSet<String> = to.common(&BOOKINGS).await?.iter().map(session).collect();
    let mut left = from.common(&BOOKINGS).await?;
    left.retain(|row| !present.contains(&session(row)) && !known.contains(&session(row)));
    to.keep_common(&BOOKINGS, left).await
}

/// Refuses a session that exists in both stores with different content.
async fn check(from: &Side, to: &Side, id: &SessionId) -> Result<(), LogError> {
    let (left, right) = (from.session(id).await?, to.session(id).await?);
    if left == right {
        return Ok(());
    }
    Err(LogError::Failed(format!(
        "session {id} exists in the target with other content; nothing was copied. Delete one of the two with `windlass \
         sessions delete {id}`, and copy again"
    )))
}

enum Side {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl Side {
    async fn open(url: &OsStr, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        let side = match start(url, clock)? {
            Started::Sqlite(store) => Self::Sqlite(store),
            Started::Postgres(store) => Self::Postgres(store),
        };
        side.store().ready().await?;
        Ok(side)
    }

    fn store(&self) -> &dyn Store {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
        }
    }

    async fn session(&self, id: &SessionId) -> Result<Vec<CopiedRows>, LogError> {
        match self {
            Self::Sqlite(store) => store.copied_session(id).await,
            Self::Postgres(store) => store.copied_session(id).await,
        }
    }

    async fn keep_session(&self, id: &SessionId, tables: Vec<CopiedRows>) -> Result<(), LogError> {
        match self {
            Self::Sqlite(store) => store.keep_copied_session(id, tables).await,
            Self::Postgres(store) => store.keep_copied_session(id, tables).await,
        }
    }

    async fn common(&self, table: &'static CopiedTable) -> Result<CopiedRows, LogError> {
        match self {
            Self::Sqlite(store) => store.copied_common(table).await,
            Self::Postgres(store) => store.copied_common(table).await,
        }
    }

    async fn keep_common(&self, table: &'static CopiedTable, rows: CopiedRows) -> Result<(), LogError> {
        match self {
            Self::Sqlite(store) => store.keep_copied_common(table, rows).await,
            Self::Postgres(store) => store.keep_copied_common(table, rows).await,
        }
    }

    async fn keep_content(&self, address: &str, content: Vec<u8>) -> Result<(), LogError> {
        match self {
            Self::Sqlite(store) => store.keep_content(content).await,
            Self::Postgres(store) => store.keep_content(address, content).await,
        }
    }
}
