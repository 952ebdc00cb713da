//! Opens a database, the same way for every caller.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ToSql};
use windlass_core::log::LogError;

use super::failure::told;
use super::schema;

/// Maximum time to wait for a writer in another process.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Start of the name of a database that is being created.
const NEW: &str = ".windlass-new-";

/// Age at which nobody works on a new database any more.
const STALE: Duration = Duration::from_secs(3600);

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
        ErrorKind::StorageFull => LogError::Full(text),
        _ => LogError::ReadOnly(text),
    }
}

/// Opens a database for writing. Creates it, private to the user, if it does not exist.
pub(super) fn open(path: &Path) -> Result<Connection, LogError> {
    if !path.exists() {
        create(path)?;
    }
    refuse_damaged(path)?;
    let connection = writable(path)?;
    schema::migrate(&connection)?;
    Ok(connection)
}

/// Creates a database with all its tables, complete or not at all: an empty file is always damage.
fn create(path: &Path) -> Result<(), LogError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    remove_stale(folder);
    let file = tempfile::Builder::new().prefix(NEW).tempfile_in(folder);
    // Closed, because SQLite's locks are gone when any handle of the process is closed.
    let file = file.map_err(|error| refused(path, &error))?.into_temp_path();
    let connection = writable(&file)?;
    schema::create(&connection)?;
    connection.close().map_err(|(_, error)| told(error))?;
    match file.persist_noclobber(path) {
        // Another process was faster.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(refused(path, &error.error)),
        Ok(()) => Ok(()),
    }
}

/// Removes files of processes that were killed while they created a database.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_new = entry.file_name().to_string_lossy().starts_with(NEW);
        let age = entry.metadata().and_then(|data| data.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        if is_new && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Refuses what SQLite would take for a new database, or wait for: a file without a byte, a log that is not one,
/// and anything that is not a regular file.
fn refuse_damaged(path: &Path) -> Result<(), LogError> {
    let damaged = |why: &str| LogError::Damaged {
        what: format!("the database {}", path.display()),
        why: why.to_owned(),
    };
    match fs::metadata(path) {
        Ok(data) if !data.is_file() => Err(LogError::Foreign(format!(
            "{} is not a regular file, so it cannot be the database; move it away",
            path.display()
        ))),
        Ok(data) if data.len() == 0 => Err(damaged("the file is empty: the sessions in it are lost")),
        Ok(_) if has_foreign_log(path) => Err(damaged(
            "the file beside it that ends in -wal, which has the last changes, is not a write-ahead log",
        )),
        _ => Ok(()),
    }
}

/// Returns true if the write-ahead log starts with something else than one does. SQLite silently drops such a log,
/// with the sessions in it. Zeros are left by a power failure and mean that nothing was in it.
fn has_foreign_log(path: &Path) -> bool {
    const MAGIC: [u8; 3] = [0x37, 0x7f, 0x06];
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let mut start = [0; 32];
    let read = fs::File::open(name).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && !start.starts_with(&MAGIC) && start.iter().any(|byte| *byte != 0)
}

fn writable(path: &Path) -> Result<Connection, LogError> {
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
    refuse_damaged(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(told)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), LogError> {
    connection.busy_timeout(PATIENCE).map_err(told)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Without this, a statement with a variable in `LIMIT` or next to a partial index is parsed again each time it runs.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(told)?;
    connection
        .pragma_update(None, "cache_size", -4000)
        .map_err(told)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(told)
}

/// Runs a statement with values. The statement is parsed once for each connection.
pub(super) fn execute(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<(), LogError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map(drop)
        .map_err(told)
}

/// Runs several statements on one state of the database. The file is locked once, and not by each statement.
pub(super) fn at_once<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, LogError>,
) -> Result<T, LogError> {
    if !connection.is_autocommit() {
        return read(connection);
    }
    execute(connection, "BEGIN", &[])?;
    let found = read(connection);
    let ended = execute(connection, "COMMIT", &[]);
    found.and_then(|found| ended.map(|()| found))
}
