//! The file of an index: a header, one record after another, and a hash over all of it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use windlass_sandbox::{read_regular, sha256_hex};

use crate::index::Index;
use crate::record::{Record, Stamp, Unpacker, put_number};

const MAGIC: &[u8; 8] = b"windlcix";
/// Increases with every change of the format or of the words that are stored.
const VERSION: u64 = 1;
const HASH: usize = 32;
/// Maximum size of the file.
const MAX_SIZE: u64 = 1 << 30;
/// Ending of the name of an index.
const ENDING: &str = "index";
/// Number of other indexes to look at for workspaces that are gone.
const MAX_OTHERS: usize = 64;

/// Reason an index file cannot be used. It is built again in any case.
#[derive(Debug, thiserror::Error)]
pub enum StoredIndexError {
    /// There is none.
    #[error("there is no index yet")]
    Missing,
    /// It has another format: an older or newer Windlass wrote it.
    #[error("another version of Windlass wrote it")]
    Version,
    /// It is damaged.
    #[error("{0}")]
    Damaged(&'static str),
    /// It cannot be read.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Returns the file of the index of a workspace, in a folder of indexes.
pub fn index_file(folder: &Path, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let name = sha256_hex(root.as_os_str().as_bytes());
    folder.join(format!("{}.{ENDING}", name.get(..32).unwrap_or(&name)))
}

/// Reads an index of a workspace.
///
/// # Errors
/// If there is none, or it is unusable.
pub(crate) fn load(file: &Path, root: &Path) -> Result<Index, StoredIndexError> {
    let bytes = match read_regular(file, MAX_SIZE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoredIndexError::Missing),
        other => other?,
    };
    let rest = bytes.strip_prefix(MAGIC);
    let mut header = Unpacker(rest.ok_or(StoredIndexError::Damaged("it is not an index of Windlass"))?);
    if header.number() != Some(VERSION) {
        return Err(StoredIndexError::Version);
    }
    let content = bytes
        .len()
        .checked_sub(HASH)
        .and_then(|end| bytes.split_at_checked(end));
    let (content, hash) = content.ok_or(StoredIndexError::Damaged("it is cut off"))?;
    if blake3::hash(content).as_bytes() != hash {
        return Err(StoredIndexError::Damaged("its checksum does not fit"));
    }
    let mut from = Unpacker(content);
    parse(&mut from, root).ok_or(StoredIndexError::Damaged(
        "it is about another folder or incomplete",
    ))
}

fn parse(from: &mut Unpacker<'_>, root: &Path) -> Option<Index> {
    from.bytes(MAGIC.len())?;
    from.number()?;
    let is_partial = from.number()? == 1;
    if text(from)? != root.to_string_lossy() {
        return None;
    }
    let count = from.size()?;
    let mut records = Vec::with_capacity(count.min(1 << 20));
    for _ in 0..count {
        let path = text(from)?.into();
        let stamp = Stamp {
            size: from.number()?,
            modified: from.number()? as i64,
            changed: from.number()? as i64,
            inode: from.number()?,
        };
        let digest = from.number()?;
        let length = from.size()?;
        let packed = from.bytes(length)?.into();
        records.push(Record {
            path,
            stamp,
            digest,
            packed,
        });
    }
    from.0.is_empty().then_some(Index { records, is_partial })
}

fn text<'a>(from: &mut Unpacker<'a>) -> Option<&'a str> {
    let length = from.size()?;
    std::str::from_utf8(from.bytes(length)?).ok()
}

/// Writes an index. Readers see the old file or the new one, never a part.
///
/// # Errors
/// If the system refuses.
pub(crate) fn save(index: &Index, file: &Path, root: &Path) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let bytes = encoded(index, root);
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut out| out.write_all(&bytes))
        .and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn encoded(index: &Index, root: &Path) -> Vec<u8> {
    let sizes = index
        .records
        .iter()
        .map(|record| record.packed.len() + record.path.len() + 64);
    let mut out = Vec::with_capacity(sizes.sum::<usize>() + 256);
    out.extend_from_slice(MAGIC);
    put_number(&mut out, VERSION);
    put_number(&mut out, u64::from(index.is_partial));
    put_text(&mut out, &root.to_string_lossy());
    put_number(&mut out, index.records.len() as u64);
    for record in &index.records {
        put_text(&mut out, &record.path);
        let Stamp {
            size,
            modified,
            changed,
            inode,
        } = record.stamp;
        for number in [size, modified as u64, changed as u64, inode, record.digest] {
            put_number(&mut out, number);
        }
        put_number(&mut out, record.packed.len() as u64);
        out.extend_from_slice(&record.packed);
    }
    let hash = blake3::hash(&out);
    out.extend_from_slice(hash.as_bytes());
    out
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Removes the indexes of workspaces that no longer exist.
pub(crate) fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().take(MAX_OTHERS) {
        let path = entry.path();
        let is_index = path.extension().is_some_and(|ending| ending == ENDING);
        if is_index && root_of(&path).is_some_and(|root| !root.exists()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Reads the workspace of an index from its header.
fn root_of(file: &Path) -> Option<PathBuf> {
    use std::io::Read;
    let mut head = Vec::new();
    fs::File::open(file)
        .ok()?
        .take(8_192)
        .read_to_end(&mut head)
        .ok()?;
    let mut from = Unpacker(head.strip_prefix(MAGIC)?);
    if from.number()? != VERSION {
        return None;
    }
    from.number()?;
    text(&mut from).map(PathBuf::from)
}
