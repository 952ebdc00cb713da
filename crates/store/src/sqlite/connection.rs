//! Opens a database, the same way for every caller.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use windlass_core::log::LogError;

use super::failure::told;

/// Maximum time to wait for a writer in another process.
const PATIENCE: Duration = Duration::from_secs(20);

/// Creates the folder of a database, private to the user, if it does not exist.
pub(super) fn make_folder(path: &Path) -> Result<(), LogError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> LogError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        std::io::ErrorKind::StorageFull => LogError::Full(text),
        _ => LogError::ReadOnly(text),
    }
}

/// Opens a database for writing. Creates it, private to the user, if it does not exist.
pub(super) fn open(path: &Path) -> Result<Connection, LogError> {
    if !path.exists() {
        let made = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(refused(path, &error));
            }
            _ => {}
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(told)?;
    prepare(&connection)?;
    // A write-ahead log lets readers read during a write. On file systems where it cannot work, such as
    // network ones, SQLite silently keeps the rollback journal, and two processes would destroy each other's
    // work.
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(told)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(LogError::Foreign(format!(
            "{}: this file system cannot hold the database (no write-ahead log); set WINDLASS_HOME to a local folder",
            path.display()
        )));
    }
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(told)?;
    Ok(connection)
}

/// Opens a database read-only.
pub(super) fn reader(path: &Path) -> Result<Connection, LogError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(told)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), LogError> {
    connection.busy_timeout(PATIENCE).map_err(told)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection
        .pragma_update(None, "cache_size", -4000)
        .map_err(told)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(told)
}
