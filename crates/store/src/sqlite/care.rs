//! Maintenance of a database.

use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;
use windlass_core::event::Event;
use windlass_core::log::LogError;

use super::failure::told;
use super::{blobs, connection, schema};

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Version of the tables.
    pub version: usize,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of entries.
    pub entries: u64,
    /// Problems, one per line. Everything else can still be read.
    pub problems: Vec<String>,
}

/// Reads everything and reports problems. Changes nothing.
///
/// # Errors
/// When the file is not a Windlass database, is newer than this program, or cannot be read at all.
pub fn check(path: &Path) -> Result<Health, LogError> {
    let connection = connection::reader(path)?;
    let version = schema::version(&connection)?;
    let mut health = Health {
        version,
        ..Health::default()
    };
    if version > schema::newest() {
        return Err(LogError::Foreign(format!(
            "the database has version {version}, but this program supports only versions up to {}; use a newer Windlass",
            schema::newest()
        )));
    }
    let mut structure = connection.prepare("PRAGMA integrity_check(20)").map_err(told)?;
    let lines = structure
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(told)?;
    for line in lines {
        match line {
            Ok(line) if line == "ok" => {}
            Ok(line) => health.problems.push(line),
            Err(error) => health.problems.push(error.to_string()),
        }
    }
    let count = |table: &str| -> Result<u64, LogError> {
        let count: i64 = connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .map_err(told)?;
        Ok(count.unsigned_abs())
    };
    health.sessions = count("session")?;
    health.entries = count("entry")?;
    entries(&connection, &mut health)?;
    Ok(health)
}

/// Checks that every entry is readable and that the numbers of each session have no gap.
fn entries(connection: &Connection, health: &mut Health) -> Result<(), LogError> {
    let mut select = connection
        .prepare("SELECT session, seq, payload FROM entry ORDER BY session, seq")
        .map_err(told)?;
    let mut rows = select.query([]).map_err(told)?;
    let mut last = (String::new(), 0);
    while let Some(row) = rows.next().map_err(told)? {
        let (session, seq): (String, i64) = (row.get(0).map_err(told)?, row.get(1).map_err(told)?);
        let expected = if session == last.0 { last.1 + 1 } else { 1 };
        if seq != expected {
            let problem = format!("session {session}: found entry {seq} where entry {expected} was expected");
            health.problems.push(problem);
        }
        let payload: Result<String, _> = row.get(2);
        let why = match &payload {
            Ok(text) => serde_json::from_str::<Event>(text)
                .err()
                .map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            health
                .problems
                .push(format!("session {session}: entry {seq}: {why}"));
        }
        last = (session, seq);
    }
    Ok(())
}

/// Copies a database, which may be in use, to a new file: complete, and as of one moment.
///
/// # Errors
/// When the target exists, or either file cannot be used.
pub fn backup(path: &Path, target: &Path) -> Result<(), LogError> {
    let from = connection::reader(path)?;
    schema::version(&from)?;
    // Private to the user, like the database itself.
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target);
    made.map_err(|error| match error.kind() {
        ErrorKind::StorageFull => LogError::Full(error.to_string()),
        _ => LogError::Failed(format!("{}: {error}; nothing was written", target.display())),
    })?;
    let mut into = Connection::open(target).map_err(told)?;
    let done = Backup::new(&from, &mut into)
        .and_then(|backup| backup.run_to_completion(1000, Duration::from_millis(1), None))
        .map_err(told);
    if done.is_err() {
        // We created the file, and half a backup is worth nothing.
        let _ = std::fs::remove_file(target);
    }
    done
}

/// Returns unused space to the file system, and removes contents that are attached to no session.
///
/// # Errors
/// When another process uses the database, or it cannot be written.
pub fn vacuum(path: &Path) -> Result<(), LogError> {
    connection::make_folder(path)?;
    let connection = connection::open(path)?;
    // Nothing is attached meanwhile.
    connection.execute_batch("BEGIN IMMEDIATE").map_err(told)?;
    let swept = blobs::sweep_all(&connection, &blobs::folder(path));
    connection.execute_batch("COMMIT").map_err(told)?;
    swept?;
    connection
        .execute_batch(
            "INSERT INTO said (said) VALUES ('optimize'); VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .map_err(told)
}
