//! Contents addressed by their digest, stored as files beside the database.
//!
//! A file is moved into place in the transaction that attaches it, and removed in a transaction that finds it
//! attached nowhere. Only one process writes to the database at a time, so no attached file is removed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Attachment, BlobLimits, LogError};

use super::failure::{damaged, told};
use super::lease::signed;

/// Prefix of files that are still being written.
const UNFINISHED: &str = ".new-";
const BUFFER: usize = 64 * 1024;

/// Returns the folder of a database's contents.
pub(super) fn folder(database: &Path) -> PathBuf {
    database.with_file_name("blobs")
}

/// A content that is written but not in place yet. The file is removed with this value.
pub(super) struct Staged {
    file: PathBuf,
    address: String,
    bytes: u64,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Fails once the file is in place.
        let _ = fs::remove_file(&self.file);
    }
}

/// Writes a content to a temporary file and computes its digest.
pub(super) fn stage(folder: &Path, content: &mut dyn Read) -> Result<Staged, LogError> {
    let file = folder.join(format!("{UNFINISHED}{}", uuid::Uuid::new_v4().simple()));
    let mut staged = Staged {
        file,
        address: String::new(),
        bytes: 0,
    };
    write(folder, content, &mut staged).map_err(|error| failed(folder, &error))?;
    Ok(staged)
}

fn write(folder: &Path, content: &mut dyn Read, staged: &mut Staged) -> io::Result<()> {
    make_folder(folder)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&staged.file)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        hasher.update(piece);
        file.write_all(piece)?;
        staged.bytes += u64::try_from(count).unwrap_or_default();
    }
    staged.address = hasher.finalize().to_hex().to_string();
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn failed(place: &Path, error: &io::Error) -> LogError {
    match error.kind() {
        ErrorKind::StorageFull => LogError::Full(error.to_string()),
        _ => LogError::Failed(format!("{}: {error}", place.display())),
    }
}

/// Attaches a content to a session and moves it into place. Returns the attachment, and the addresses of
/// attachments that had to make room: [`sweep`] removes their files once this is committed.
pub(super) fn attach(
    connection: &Connection,
    folder: &Path,
    (session, name): (&SessionId, &str),
    staged: &Staged,
    (limits, time): (BlobLimits, Timestamp),
) -> Result<(Attachment, Vec<String>), LogError> {
    let known: Option<i64> = connection
        .query_row("SELECT 1 FROM session WHERE id = ?1", [session.as_str()], |row| {
            row.get(0)
        })
        .optional()
        .map_err(told)?;
    if known.is_none() {
        return Err(LogError::Unknown(session.clone()));
    }
    let gone = make_room(connection, session, staged.bytes, limits)?;
    connection
        .execute(
            "INSERT INTO attachment (session, name, address, bytes, time) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                session.as_str(),
                name,
                staged.address,
                signed(staged.bytes),
                signed(time.0)
            ],
        )
        .map_err(told)?;
    let place = place(folder, &staged.address);
    make_folder(place.parent().unwrap_or(folder))
        .and_then(|()| fs::rename(&staged.file, &place))
        .map_err(|error| failed(&place, &error))?;
    let attachment = Attachment {
        name: name.to_owned(),
        address: staged.address.clone(),
        bytes: staged.bytes,
        time,
    };
    Ok((attachment, gone))
}

/// Moves a content into place, before the session that it is attached to is stored.
pub(super) fn put(folder: &Path, staged: &Staged) -> Result<(), LogError> {
    let place = place(folder, &staged.address);
    make_folder(place.parent().unwrap_or(folder))
        .and_then(|()| fs::rename(&staged.file, &place))
        .map_err(|error| failed(&place, &error))
}

/// Detaches the oldest attachments of other sessions until one more of this size fits.
fn make_room(
    connection: &Connection,
    session: &SessionId,
    bytes: u64,
    limits: BlobLimits,
) -> Result<Vec<String>, LogError> {
    let (mut count, mut total): (u64, u64) = connection
        .query_row(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM attachment",
            [],
            |row| {
                Ok((
                    row.get::<_, i64>(0)?.unsigned_abs(),
                    row.get::<_, i64>(1)?.unsigned_abs(),
                ))
            },
        )
        .map_err(told)?;
    let mut gone = Vec::new();
    while count >= limits.count || total.saturating_add(bytes) > limits.bytes {
        let oldest: Option<(i64, String, i64)> = connection
            .query_row(
                "SELECT rowid, address, bytes FROM attachment WHERE session <> ?1 ORDER BY time, rowid LIMIT 1",
                [session.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()
            .map_err(told)?;
        let Some((row, address, size)) = oldest else {
            return Err(LogError::Full(
                "the limit for stored contents is reached".to_owned(),
            ));
        };
        connection
            .execute("DELETE FROM attachment WHERE rowid = ?1", [row])
            .map_err(told)?;
        count -= 1;
        total = total.saturating_sub(size.unsigned_abs());
        gone.push(address);
    }
    Ok(gone)
}

/// Returns the attachments of a session, newest first.
pub(super) fn attachments(connection: &Connection, session: &SessionId) -> Result<Vec<Attachment>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT name, address, bytes, time FROM attachment WHERE session = ?1 ORDER BY time DESC, rowid DESC",
        )
        .map_err(told)?;
    let rows = select
        .query_map([session.as_str()], |row| {
            Ok(Attachment {
                name: row.get(0)?,
                address: row.get(1)?,
                bytes: row.get::<_, i64>(2)?.unsigned_abs(),
                time: Timestamp(row.get::<_, i64>(3)?.unsigned_abs()),
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

/// Removes the files of these contents, unless they are attached.
pub(super) fn sweep(connection: &Connection, folder: &Path, addresses: &[String]) -> Result<(), LogError> {
    let mut select = connection
        .prepare_cached("SELECT 1 FROM attachment WHERE address = ?1")
        .map_err(told)?;
    for address in addresses {
        if is_address(address) && !select.exists([address]).map_err(told)? {
            // A file that stays only takes space; `vacuum` tries again.
            let _ = fs::remove_file(place(folder, address));
        }
    }
    Ok(())
}

/// Removes every file that is attached nowhere, and what a killed process left unfinished.
pub(super) fn sweep_all(connection: &Connection, folder: &Path) -> Result<(), LogError> {
    let entries = |folder: &Path| {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        found.filter_map(|entry| entry.file_name().into_string().ok())
    };
    let mut addresses = Vec::new();
    for name in entries(folder) {
        if name.starts_with(UNFINISHED) {
            let _ = fs::remove_file(folder.join(&name));
        } else {
            addresses.extend(entries(&folder.join(&name)).map(|rest| format!("{name}{rest}")));
        }
    }
    sweep(connection, folder, &addresses)
}

/// Returns a part of the content at an address.
pub(super) fn read_at(
    folder: &Path,
    address: &str,
    offset: u64,
    limit: usize,
) -> Result<Option<Vec<u8>>, LogError> {
    let read = |mut file: File| {
        let mut part = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.take(u64::try_from(limit).unwrap_or(u64::MAX))
            .read_to_end(&mut part)?;
        Ok(part)
    };
    open(folder, address)?
        .map(|file| read(file).map_err(|error: io::Error| LogError::Failed(error.to_string())))
        .transpose()
}

/// Returns the content at an address, after checking that it is unchanged.
pub(super) fn get(folder: &Path, address: &str) -> Result<Option<Vec<u8>>, LogError> {
    let Some(mut file) = open(folder, address)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content)
        .map_err(|error| LogError::Failed(error.to_string()))?;
    if blake3::hash(&content).to_hex().as_str() != address {
        return Err(damaged(
            format!("the content {address}"),
            "it does not match its digest",
        ));
    }
    Ok(Some(content))
}

fn open(folder: &Path, address: &str) -> Result<Option<File>, LogError> {
    if !is_address(address) {
        return Ok(None);
    }
    match File::open(place(folder, address)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::Failed(error.to_string())),
    }
}

fn is_address(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Two levels, so that no folder grows without bound.
fn place(folder: &Path, address: &str) -> PathBuf {
    let (start, rest) = address.split_at_checked(2).unwrap_or(("", address));
    folder.join(start).join(rest)
}
