//! Encoding of the index file: a log of records, each with a checksum. A later record replaces earlier ones.
//!
//! The entries of a folder have a fixed size and are sorted by name, so that one of them is found without
//! reading the others; names and link targets follow behind them.

use super::{Entry, Folder, Names, Stat};
use crate::node::{Bytes, Digest, Node, Skip};
use crate::tree::skipped;

pub(super) const MAGIC: &[u8; 8] = b"WLSCAN2\n";
/// Kind, bytes of the path, bytes of the body, checksum.
pub(super) const HEAD: usize = 1 + 4 + 8 + CHECKSUM;
const CHECKSUM: usize = 16;
/// Number of entries and a byte that is 1 if the folder is ignored.
pub(super) const FOLDER_HEAD: usize = 4 + 1;
/// Place and length of the name, kind, stamp, digest or place of a link target, size.
pub(super) const ENTRY: usize = 4 + 4 + 1 + 4 * 8 + 4 + 32 + 8;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// All entries of a folder.
    Folder = 0,
    /// Some entries of a folder. One that is marked as gone has no file any more.
    Names = 1,
    /// A folder that does not exist any more.
    Gone = 2,
    /// Everything before this record describes the whole workspace.
    Whole = 3,
}

/// Start of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) path: usize,
    pub(super) body: usize,
    checksum: [u8; CHECKSUM],
}

/// Appends a record.
pub(super) fn record(out: &mut Vec<u8>, kind: Kind, path: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(kind as u8);
    number(out, path.len());
    let sizes = out.len();
    out.extend_from_slice(&[0; 8 + CHECKSUM]);
    out.extend_from_slice(path);
    let body = out.len();
    write(out);
    let length = (out.len() - body) as u64;
    put(out, sizes, &length.to_le_bytes());
    let sum = checksum(
        out.get(start..start + 13).unwrap_or_default(),
        out.get(start + HEAD..).unwrap_or_default(),
    );
    put(out, sizes + 8, &sum);
}

fn put(out: &mut [u8], place: usize, bytes: &[u8]) {
    if let Some(room) = out.get_mut(place..place + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

fn checksum(head: &[u8], rest: &[u8]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(rest);
    let mut sum = [0; CHECKSUM];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

impl Head {
    pub(super) fn read(bytes: &[u8; HEAD]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Self {
            kind: match reader.byte()? {
                0 => Kind::Folder,
                1 => Kind::Names,
                2 => Kind::Gone,
                3 => Kind::Whole,
                _ => return None,
            },
            path: reader.small()? as usize,
            body: usize::try_from(reader.large()?).ok()?,
            checksum: reader.take(CHECKSUM)?.try_into().ok()?,
        })
    }

    /// Returns true if the record is undamaged. `rest` is its path and body.
    pub(super) fn fits(&self, bytes: &[u8; HEAD], rest: &[u8]) -> bool {
        checksum(bytes.get(..13).unwrap_or_default(), rest) == self.checksum
    }
}

/// Writes the body of a folder.
pub(super) fn folder(out: &mut Vec<u8>, folder: &Folder) {
    number(out, folder.entries.len());
    out.push(u8::from(folder.ignored));
    entries(out, folder.entries.iter());
}

/// Reads the body of a folder.
pub(super) fn read_folder(body: &[u8]) -> Option<Folder> {
    let mut reader = Reader(body);
    let count = reader.small()? as usize;
    let ignored = reader.byte()? == 1;
    let (records, texts) = reader.0.split_at_checked(count.checked_mul(ENTRY)?)?;
    let entries = records
        .chunks_exact(ENTRY)
        .map(|record| read_entry(record, texts, 0));
    Some(Folder {
        entries: entries.collect::<Option<_>>()?,
        ignored,
    })
}

/// Writes the body of changed names: first the names that are gone, then the entries.
pub(super) fn names(out: &mut Vec<u8>, names: &[(Box<[u8]>, Option<Entry>)]) {
    let gone = names.iter().filter(|(_, entry)| entry.is_none());
    number(out, gone.clone().count());
    for (name, _) in gone {
        number(out, name.len());
        out.extend_from_slice(name);
    }
    let there = names.iter().filter_map(|(_, entry)| entry.as_ref());
    number(out, there.clone().count());
    entries(out, there);
}

/// Reads the body of changed names.
pub(super) fn read_names(body: &[u8]) -> Option<Names> {
    let mut reader = Reader(body);
    let mut names = Vec::new();
    for _ in 0..reader.small()? {
        let length = reader.small()? as usize;
        names.push((Box::from(reader.take(length)?), None));
    }
    let count = reader.small()? as usize;
    let (records, texts) = reader.0.split_at_checked(count.checked_mul(ENTRY)?)?;
    for record in records.chunks_exact(ENTRY) {
        let entry = read_entry(record, texts, 0)?;
        names.push((entry.name.clone(), Some(entry)));
    }
    Some(names)
}

fn entries<'a>(out: &mut Vec<u8>, entries: impl Iterator<Item = &'a Entry> + Clone) {
    let mut text = 0;
    for entry in entries.clone() {
        number(out, text);
        number(out, entry.name.len());
        text += entry.name.len();
        let (kind, digest, size) = match &entry.node {
            Node::File { digest, size, .. } => (0, digest.0, *size),
            Node::Link { target } => {
                let mut place = [0; 32];
                put(&mut place, 0, &(text as u64).to_le_bytes());
                text += target.0.len();
                (1, place, target.0.len() as u64)
            }
            Node::Folder { .. } => (2, [0; 32], 0),
            Node::Skipped { why, .. } => (3 + *why as u8, [0; 32], 0),
        };
        out.push(kind);
        let stat = &entry.stat;
        for value in [
            stat.inode,
            stat.size,
            stat.mtime.cast_unsigned(),
            stat.ctime.cast_unsigned(),
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&stat.mode.to_le_bytes());
        out.extend_from_slice(&digest);
        out.extend_from_slice(&size.to_le_bytes());
    }
    for entry in entries {
        out.extend_from_slice(&entry.name);
        if let Node::Link { target } = &entry.node {
            out.extend_from_slice(&target.0);
        }
    }
}

/// Returns the place and the length of an entry's name behind the entries.
pub(super) fn name_place(record: &[u8]) -> Option<(usize, usize)> {
    let mut reader = Reader(record);
    Some((reader.small()? as usize, reader.small()? as usize))
}

/// Returns where an entry's texts start, and how many bytes they have.
pub(super) fn text_place(record: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = name_place(record)?;
    let is_link = record.get(8) == Some(&1);
    let target = Reader(record.get(ENTRY - 8..)?).large()?;
    let target = if is_link { usize::try_from(target).ok()? } else { 0 };
    Some((start, length.checked_add(target)?))
}

/// Reads one entry. `texts` is what is behind the entries, from the byte `base` on.
pub(super) fn read_entry(record: &[u8], texts: &[u8], base: usize) -> Option<Entry> {
    let text = |start: usize, length: usize| {
        let start = start.checked_sub(base)?;
        texts.get(start..start.checked_add(length)?)
    };
    let mut reader = Reader(record);
    let name = Box::from(text(reader.small()? as usize, reader.small()? as usize)?);
    let kind = reader.byte()?;
    let stat = Stat {
        inode: reader.large()?,
        size: reader.large()?,
        mtime: reader.large()?.cast_signed(),
        ctime: reader.large()?.cast_signed(),
        mode: reader.small()?,
    };
    let digest: [u8; 32] = reader.take(32)?.try_into().ok()?;
    let size = reader.large()?;
    let mode = stat.mode & 0o7777;
    let node = match kind {
        0 => Node::File {
            mode,
            digest: Digest(digest),
            size,
        },
        1 => {
            let start = usize::try_from(Reader(&digest).large()?).ok()?;
            Node::Link {
                target: Bytes(text(start, usize::try_from(size).ok()?)?.to_vec()),
            }
        }
        2 => Node::Folder { mode },
        3 => skipped(Skip::Large, &stat),
        4 => skipped(Skip::Full, &stat),
        5 => skipped(Skip::Ignored, &stat),
        6 => skipped(Skip::Unreadable, &stat),
        7 => skipped(Skip::Special, &stat),
        _ => return None,
    };
    Some(Entry { name, stat, node })
}

/// Appends a small number. Paths and folders with more than 4 billion parts do not exist.
fn number(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn large(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}
