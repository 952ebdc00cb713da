//! Contents addressed by their digest, stored as files beside the database.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use windlass_core::log::LogError;

use super::failure::damaged;

/// Returns the folder of a database's contents.
pub(super) fn folder(database: &Path) -> PathBuf {
    database.with_file_name("blobs")
}

/// Stores a content. A content that already exists is not written again.
pub(super) fn put(folder: &Path, content: &[u8]) -> Result<String, LogError> {
    let address = blake3::hash(content).to_hex().to_string();
    let place = place(folder, &address);
    if place.exists() {
        return Ok(address);
    }
    write(&place, content).map_err(|error| match error.kind() {
        ErrorKind::StorageFull => LogError::Full(error.to_string()),
        _ => LogError::Failed(format!("{}: {error}", place.display())),
    })?;
    Ok(address)
}

fn write(place: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!(".new-{}", uuid::Uuid::new_v4().simple()));
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let written = file
        .write_all(content)
        .and_then(|()| fs::rename(&temporary, place));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns the content at an address, after checking that it is unchanged.
pub(super) fn get(folder: &Path, address: &str) -> Result<Option<Vec<u8>>, LogError> {
    let is_address = address.len() == 64 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_address {
        return Ok(None);
    }
    let content = match fs::read(place(folder, address)) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::Failed(error.to_string())),
    };
    if blake3::hash(&content).to_hex().as_str() != address {
        return Err(damaged(
            format!("the content {address}"),
            "it does not match its digest",
        ));
    }
    Ok(Some(content))
}

/// Two levels, so that no folder grows without bound.
fn place(folder: &Path, address: &str) -> PathBuf {
    let (start, rest) = address.split_at_checked(2).unwrap_or(("", address));
    folder.join(start).join(rest)
}
