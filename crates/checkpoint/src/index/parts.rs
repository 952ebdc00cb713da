//! DIST-5: the index in parts with their digests, so that another machine gets only those that changed.
//!
//! A folder belongs to the part that the digest of its path selects. A part is a piece of an index file: the records of
//! its folders, without stamps, which mean nothing elsewhere. All parts after each other are the index.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::format::{self, Kind, MAGIC};
use super::{Index, Stat};
use crate::node::{Digest, Node};

/// Entries of a part, on average.
const ENTRIES: usize = 64;
/// Most parts of an index.
const MOST: usize = 1_024;

/// A part of the index.
#[derive(Debug, Default)]
pub(in super::super) struct IndexPart {
    pub(in super::super) bytes: Vec<u8>,
    /// Files in it: digest and size.
    pub(in super::super) files: Vec<(Digest, u64)>,
}

/// Returns the number of the part of a folder.
fn number(path: &[u8], count: usize) -> usize {
    let [first, second, ..] = Digest::of(path).0;
    usize::from(u16::from_le_bytes([first, second])) % count
}

impl Index {
    /// Returns a good number of parts.
    pub(in super::super) fn part_count(&self) -> usize {
        (self.entries / ENTRIES).next_power_of_two().clamp(1, MOST)
    }

    /// Returns the parts with folders that changed since the last call, by number; all parts if `is_first`.
    pub(in super::super) fn changed_parts(
        &mut self,
        count: usize,
        is_first: bool,
    ) -> io::Result<BTreeMap<usize, IndexPart>> {
        let changed = self.changed.replace(HashSet::new()).filter(|_| !is_first);
        let mut parts: BTreeMap<usize, Vec<&Arc<[u8]>>> = BTreeMap::new();
        match &changed {
            Some(changed) => changed.iter().for_each(|path| {
                parts.entry(number(path, count)).or_default();
            }),
            None => (0..count).for_each(|part| {
                parts.entry(part).or_default();
            }),
        }
        if !parts.is_empty() {
            for path in self.folders.keys() {
                if let Some(part) = parts.get_mut(&number(path, count)) {
                    part.push(path);
                }
            }
        }
        let part = |(number, mut paths): (usize, Vec<&Arc<[u8]>>)| {
            paths.sort_unstable();
            Ok((number, self.part(&paths)?))
        };
        parts.into_iter().map(part).collect()
    }

    fn part(&self, paths: &[&Arc<[u8]>]) -> io::Result<IndexPart> {
        let mut part = IndexPart::default();
        for path in paths {
            let Some(mut folder) = self.folder(path)? else {
                continue;
            };
            for entry in &mut folder.entries {
                // The node is read from the rest.
                let Stat { size, mode, .. } = entry.stat;
                entry.stat = Stat {
                    size,
                    mode,
                    ..Stat::default()
                };
                if let Node::File { digest, size, .. } = entry.node {
                    part.files.push((digest, size));
                }
            }
            format::record(&mut part.bytes, Kind::Folder, path, |out| {
                format::folder(out, &folder);
            });
        }
        Ok(part)
    }

    /// Writes parts to a file, and opens it.
    pub(in super::super) fn of_parts(file: &Path, parts: &[Vec<u8>]) -> io::Result<Self> {
        let mut bytes = MAGIC.to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        format::record(&mut bytes, Kind::Whole, b"", |_| {});
        fs::write(file, bytes)?;
        let index = Self::open(file);
        match index.is_whole() {
            true => Ok(index),
            false => Err(index.damaged()),
        }
    }
}
