//! Stores sessions: their logs, their costs, an index for search, and contents too large for the log.
//!
//! This crate implements the ports of [`windlass_core::log`] on SQLite, and chooses between it and Postgres, which the
//! `postgres` crate implements. No SQL, no file path and no type of a database leaves either of them.
//!
//! - [`open`] returns the store at a URL; [`begin`] does the same without waiting for it.
//! - [`copy()`] moves sessions from one store to another.
//! - [`owner`] names this process as an owner of sessions.
//! - [`maintenance`] checks, copies and compacts a SQLite database.
//!
//! With SQLite, one thread writes. Writes that arrive while it is busy share the next transaction, so many sessions cost
//! little more than one. Readers never wait for it. `docs/store.md` describes the tables.

mod copy;
mod location;
mod sqlite;

use std::ffi::OsStr;
use std::sync::Arc;

use windlass_core::clock::Clock;
use windlass_core::log::{LogError, Store};
use windlass_postgres::PostgresStore;

use self::location::Location;
use self::sqlite::SqliteStore;

pub use self::copy::{CopyReport, copy};
pub use self::sqlite::owner;

/// Maintenance of a SQLite database, by its path.
pub mod maintenance {
    pub use crate::sqlite::{Health, backup, check, vacuum};
}

/// Opens a store and waits until it is open. Blocks the thread meanwhile.
///
/// | URL | store |
/// |---|---|
/// | `sqlite:<path>`, `sqlite://<path>`, or a path | SQLite database in this file, created if it does not exist; older versions are migrated |
/// | `ephemeral:` | new SQLite database in a temporary folder, removed with the last handle |
/// | `ephemeral:/folder` | the same, below this folder |
/// | `postgres://user:password@host:port/database` | Postgres database, whose tables are created or migrated; shared by processes and machines |
///
/// `clock` decides when the lease of a session in SQLite expires; Postgres uses its own.
///
/// # Errors
/// When the URL has another scheme, the file is not a Windlass database, the database is newer than this program or
/// cannot be reached, or access is refused.
pub fn open(url: impl AsRef<OsStr>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, LogError> {
    Ok(match start(url.as_ref(), clock)? {
        Started::Sqlite(store) => {
            store.wait()?;
            Arc::new(store)
        }
        Started::Postgres(store) => {
            store.wait()?;
            Arc::new(store)
        }
    })
}

/// Starts to open a store and returns at once. Requests made meanwhile wait, and fail if the store cannot be
/// opened; [`Lifecycle::ready`](windlass_core::log::Lifecycle::ready) returns the cause.
///
/// # Errors
/// When the URL has an unsupported scheme, or the system refuses to create the folder or a thread.
pub fn begin(url: impl AsRef<OsStr>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, LogError> {
    Ok(match start(url.as_ref(), clock)? {
        Started::Sqlite(store) => Arc::new(store),
        Started::Postgres(store) => Arc::new(store),
    })
}

/// Returns true if a URL names a database that is shared over the network, not a file.
///
/// # Errors
/// When the URL has an unsupported scheme.
pub fn is_shared(url: impl AsRef<OsStr>) -> Result<bool, LogError> {
    Ok(matches!(Location::parse(url.as_ref())?, Location::Postgres(_)))
}

/// Returns a URL as it may be shown to people: without a password.
///
/// # Errors
/// When the URL is not valid.
pub fn shown(url: impl AsRef<OsStr>) -> Result<String, LogError> {
    match Location::parse(url.as_ref())? {
        Location::Sqlite(path) => Ok(path.display().to_string()),
        Location::Ephemeral(_) => Ok("a temporary database".to_owned()),
        Location::Postgres(url) => windlass_postgres::shown(&url),
    }
}

enum Started {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

fn start(url: &OsStr, clock: Arc<dyn Clock>) -> Result<Started, LogError> {
    Ok(match Location::parse(url)? {
        Location::Sqlite(path) => Started::Sqlite(SqliteStore::begin(&path, clock)?),
        Location::Ephemeral(parent) => Started::Sqlite(SqliteStore::ephemeral(parent.as_deref(), clock)?),
        Location::Postgres(url) => {
            Started::Postgres(PostgresStore::begin(&url, clock, sqlite::is_alive_anywhere)?)
        }
    })
}
