//! Stores sessions: their logs, their costs, an index for search, and contents too large for the log.
//!
//! This crate implements the ports of [`windlass_core::log`]. SQLite is the only implementation. No SQL, no
//! file path and no type of the database leaves the crate, so another database can replace SQLite.
//!
//! - [`open`] returns the store at a URL; [`begin`] does the same without waiting for it.
//! - [`owner`] names this process as an owner of sessions.
//! - [`maintenance`] checks, copies and compacts a SQLite database.
//!
//! One thread writes. Writes that arrive while it is busy share the next transaction, so many sessions cost
//! little more than one. Readers never wait for it. `docs/store.md` describes the tables.

mod location;
mod sqlite;

use std::ffi::OsStr;
use std::sync::Arc;

use windlass_core::clock::Clock;
use windlass_core::log::{LogError, Store};

use self::location::Location;
use self::sqlite::SqliteStore;

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
///
/// `clock` decides when the lease of a session expires.
///
/// # Errors
/// When the URL has another scheme, the file is not a Windlass database or is newer than this program, or the
/// system refuses access.
pub fn open(url: impl AsRef<OsStr>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, LogError> {
    let store = start(url.as_ref(), clock)?;
    store.wait()?;
    Ok(Arc::new(store))
}

/// Starts to open a store and returns at once. Requests made meanwhile wait, and fail if the store cannot be
/// opened; [`Lifecycle::ready`](windlass_core::log::Lifecycle::ready) returns the cause.
///
/// # Errors
/// When the URL has an unsupported scheme, or the system refuses to create the folder or a thread.
pub fn begin(url: impl AsRef<OsStr>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, LogError> {
    Ok(Arc::new(start(url.as_ref(), clock)?))
}

fn start(url: &OsStr, clock: Arc<dyn Clock>) -> Result<SqliteStore, LogError> {
    match Location::parse(url)? {
        Location::Sqlite(path) => SqliteStore::begin(&path, clock),
        Location::Ephemeral(parent) => SqliteStore::ephemeral(parent.as_deref(), clock),
    }
}
