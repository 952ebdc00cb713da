//! The indexed form of one file: its definitions, and the words of its path, its definitions and its chunks, packed
//! into one piece of memory that is also its form on disk.

use std::sync::Arc;

use crate::definitions::{Definition, DefinitionKind, Finder};
use crate::language::Language;
use crate::words;

/// Size from which a piece of a file is a chunk of its own, in bytes.
const MIN_CHUNK: usize = 400;
/// Maximum size of a chunk in bytes; a line is not split.
const MAX_CHUNK: usize = 6_000;
/// Maximum number of chunks of a file.
const MAX_CHUNKS: usize = 4_000;

/// Identity of a file's contents, as the file system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds; [`Stamp::UNSETTLED`] if the file changed too shortly before it was read.
    pub(crate) modified: i64,
    pub(crate) changed: i64,
    pub(crate) inode: u64,
}

impl Stamp {
    /// Never equal to the time of a file.
    pub(crate) const UNSETTLED: i64 = i64::MIN;
}

/// An indexed file.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Path below the workspace, with slashes.
    pub(crate) path: Arc<str>,
    pub(crate) stamp: Stamp,
    /// First bytes of the hash of the contents.
    pub(crate) digest: u64,
    pub(crate) packed: Arc<[u8]>,
}

/// A set of words with counts, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bag<'a> {
    /// Number of words.
    pub(crate) length: u32,
    hashes: &'a [u8],
    counts: &'a [u8],
}

impl Bag<'_> {
    /// Calls `visit` with each word and its count.
    pub(crate) fn each(&self, mut visit: impl FnMut(u32, u32)) {
        for (hash, count) in self.hashes.chunks_exact(4).zip(self.counts) {
            let hash = <[u8; 4]>::try_from(hash).map(u32::from_le_bytes);
            visit(hash.unwrap_or_default(), u32::from(*count));
        }
    }
}

/// A stored chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredChunk<'a> {
    /// First line, from 1.
    pub(crate) first: u32,
    /// Last line.
    pub(crate) last: u32,
    pub(crate) bag: Bag<'a>,
}

/// The parts of a packed record.
#[derive(Debug)]
pub(crate) struct Unpacked<'a> {
    pub(crate) path: Bag<'a>,
    pub(crate) names: Bag<'a>,
    pub(crate) chunks: Vec<StoredChunk<'a>>,
}

/// Packs the contents of a file. Without a text, only its path is indexed.
pub(crate) fn pack(finder: &mut Finder, path: &str, text: Option<&str>) -> Arc<[u8]> {
    let language = Language::of(path).unwrap_or(Language::Data);
    let text = text.filter(|_| language != Language::Data).unwrap_or_default();
    let definitions = finder.find(language, text);
    let mut out = Packer::default();
    out.number(definitions.len());
    for definition in &definitions {
        out.0.push(definition.kind as u8);
        out.number(usize::try_from(definition.line).unwrap_or_default());
        out.number(definition.name.len());
        out.0.extend_from_slice(definition.name.as_bytes());
    }
    out.bag(words::hashes_of(path));
    let mut names: Vec<&str> = definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    out.bag(names.iter().flat_map(|name| words::hashes_of(name)).collect());
    let chunks = split(text, &definitions);
    out.number(chunks.len());
    for (first, last, text) in chunks {
        out.number(first);
        out.number(last - first);
        out.bag(words::hashes_of(text));
    }
    out.0.into()
}

/// Splits a text at its definitions. Returns the first line, the last line and the text of each chunk.
fn split<'a>(text: &'a str, definitions: &[Definition]) -> Vec<(usize, usize, &'a str)> {
    let mut starts = definitions
        .iter()
        .map(|definition| definition.line as usize)
        .peekable();
    let mut chunks = Vec::new();
    let (mut first, mut from, mut at) = (1, 0, 0);
    let mut last = 1;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let mut is_start = false;
        while starts.next_if(|start| *start <= number).is_some() {
            is_start = true;
        }
        let size = at - from;
        if (is_start && size > MIN_CHUNK) || (size > 0 && size + line.len() > MAX_CHUNK) {
            chunks.push((first, last, text.get(from..at).unwrap_or_default()));
            (first, from) = (number, at);
            if chunks.len() >= MAX_CHUNKS {
                return chunks;
            }
        }
        at += line.len();
        last = number;
    }
    if at > from {
        chunks.push((first, last, text.get(from..at).unwrap_or_default()));
    }
    chunks
}

#[derive(Default)]
struct Packer(Vec<u8>);

impl Packer {
    fn number(&mut self, number: usize) {
        put_number(&mut self.0, number as u64);
    }

    fn bag(&mut self, mut hashes: Vec<u32>) {
        self.number(hashes.len());
        hashes.sort_unstable();
        let mut counts: Vec<u8> = Vec::new();
        let mut unique: Vec<u32> = Vec::new();
        for hash in hashes {
            match (unique.last(), counts.last_mut()) {
                (Some(last), Some(count)) if *last == hash => *count = count.saturating_add(1),
                _ => {
                    unique.push(hash);
                    counts.push(1);
                }
            }
        }
        self.number(unique.len());
        for hash in unique {
            self.0.extend_from_slice(&hash.to_le_bytes());
        }
        self.0.extend_from_slice(&counts);
    }
}

/// Appends a number, seven bits per byte.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads packed values; every method returns `None` at the end of the bytes.
pub(crate) struct Unpacker<'a>(pub(crate) &'a [u8]);

impl<'a> Unpacker<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bag(&mut self) -> Option<Bag<'a>> {
        let length = self.small()?;
        let unique = self.size()?;
        Some(Bag {
            length,
            hashes: self.bytes(unique.checked_mul(4)?)?,
            counts: self.bytes(unique)?,
        })
    }

    fn definition(&mut self) -> Option<Definition> {
        let kind = DefinitionKind::from_number(*self.bytes(1)?.first()?)?;
        let line = self.small()?;
        let length = self.size()?;
        let name = std::str::from_utf8(self.bytes(length)?).ok()?.to_owned();
        Some(Definition { name, kind, line })
    }

    fn skip_definitions(&mut self) -> Option<()> {
        for _ in 0..self.size()? {
            self.bytes(1)?;
            self.number()?;
            let length = self.size()?;
            self.bytes(length)?;
        }
        Some(())
    }
}

impl Record {
    /// Returns the definitions.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let mut from = Unpacker(&self.packed);
        let count = from.size().unwrap_or_default();
        std::iter::from_fn(|| from.definition()).take(count).collect()
    }

    /// Calls `visit` with each definition's name.
    pub(crate) fn names(&self, mut visit: impl FnMut(&[u8])) {
        let mut from = Unpacker(&self.packed);
        let mut read = || {
            for _ in 0..from.size()? {
                from.bytes(1)?;
                from.number()?;
                let length = from.size()?;
                visit(from.bytes(length)?);
            }
            Some(())
        };
        read();
    }

    /// Returns the words, or `None` if the record is damaged.
    pub(crate) fn unpack(&self) -> Option<Unpacked<'_>> {
        let mut from = Unpacker(&self.packed);
        from.skip_definitions()?;
        let path = from.bag()?;
        let names = from.bag()?;
        let count = from.size()?;
        let mut chunks = Vec::with_capacity(count.min(MAX_CHUNKS));
        for _ in 0..count {
            let first = from.small()?;
            let last = first.checked_add(from.small()?)?;
            let bag = from.bag()?;
            chunks.push(StoredChunk { first, last, bag });
        }
        Some(Unpacked { path, names, chunks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str, text: &str) -> Record {
        Record {
            path: path.into(),
            stamp: Stamp {
                size: 0,
                modified: 0,
                changed: 0,
                inode: 0,
            },
            digest: 0,
            packed: pack(&mut Finder::default(), path, Some(text)),
        }
    }

    #[test]
    fn a_record_has_what_was_packed() {
        let body = "    x = 1\n".repeat(60);
        let text = format!("import os\n\ndef first():\n{body}\ndef second():\n{body}");
        let record = record("shop/cart.py", &text);
        let names: Vec<String> = record.definitions().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["first", "second"]);
        let parts = record.unpack().expect("whole");
        assert_eq!(parts.path.length, 3);
        let lines: Vec<(u32, u32)> = parts
            .chunks
            .iter()
            .map(|chunk| (chunk.first, chunk.last))
            .collect();
        assert_eq!(lines, [(1, 64), (65, 125)]);
    }

    #[test]
    fn a_long_file_without_definitions_is_split_and_a_cut_record_is_refused() {
        let record = record("a.txt", &"some words here\n".repeat(2_000));
        let count = record.unpack().expect("whole").chunks.len();
        assert!(count > 4, "{count}");
        for length in 0..record.packed.len() - 1 {
            let cut = Record {
                packed: record.packed.get(..length).expect("shorter").into(),
                ..record.clone()
            };
            assert!(cut.unpack().is_none(), "{length}");
        }
    }
}
