//! Known state of a workspace: every path with the data that reveals a change. This is a cache of the last
//! scan; if it is lost, the next scan reads everything again.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, RawMode};

use super::node::{Bytes, Change, Digest, Node, Skip};

const MAGIC: &[u8; 8] = b"WLSCAN1\n";

/// Metadata that distinguishes two states of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mtime: i64,
    /// 0 if the file changed so shortly before the scan that it may have changed again unnoticed.
    pub(super) ctime: i64,
    pub(super) mode: u32,
}

impl Stat {
    /// Returns the kind of the file.
    pub(super) fn kind(&self) -> FileType {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::unnecessary_cast,
            reason = "the type of a mode differs from system to system"
        )]
        FileType::from_raw_mode(self.mode as RawMode)
    }
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Box<[u8]>,
    pub(super) stat: Stat,
    pub(super) node: Node,
}

/// Entries of a folder, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Folder {
    pub(super) entries: Vec<Entry>,
    /// True if version control ignores the folder.
    pub(super) ignored: bool,
}

/// All folders by path; the workspace itself is the empty path. Two indexes share the folders that did not
/// change between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) folders: HashMap<Arc<[u8]>, Arc<Folder>>,
}

impl Index {
    /// Returns the bytes of stored content: in total, and in ignored folders.
    pub(super) fn kept(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        for folder in self.folders.values() {
            let size: u64 = folder
                .entries
                .iter()
                .map(|entry| match entry.node {
                    Node::File { size, .. } => size,
                    _ => 0,
                })
                .sum();
            sums.0 += size;
            sums.1 += if folder.ignored { size } else { 0 };
        }
        sums
    }

    /// Returns the differences in `later`, by path.
    pub(super) fn diff(&self, later: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let none = Folder::default();
        for (path, before) in &self.folders {
            match later.folders.get(path) {
                Some(after) if Arc::ptr_eq(before, after) => {}
                Some(after) => compare(path, before, after, &mut changes),
                None => compare(path, before, &none, &mut changes),
            }
        }
        for (path, after) in &later.folders {
            if !self.folders.contains_key(path) {
                compare(path, &none, after, &mut changes);
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    /// Reads an index from a file. Returns an empty index if the file is missing or damaged.
    pub(super) fn read(file: &Path) -> Self {
        fs::read(file)
            .ok()
            .and_then(|bytes| decode(&bytes))
            .unwrap_or_default()
    }

    /// Writes the index atomically.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut written, &encode(self))?;
        written.persist(file).map_err(|error| error.error)?;
        Ok(())
    }
}

fn compare(path: &[u8], before: &Folder, after: &Folder, changes: &mut Vec<Change>) {
    let (mut old, mut new) = (before.entries.iter().peekable(), after.entries.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.name.cmp(&new.name),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let nodes = (before.map(|entry| &entry.node), after.map(|entry| &entry.node));
        if nodes.0 != nodes.1
            && let Some(entry) = before.or(after)
        {
            changes.push(Change {
                path: Bytes::join(path, &entry.name),
                before: nodes.0.cloned(),
                after: nodes.1.cloned(),
            });
        }
    }
}

fn encode(index: &Index) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 << 16);
    out.extend_from_slice(MAGIC);
    number(&mut out, index.folders.len() as u64);
    for (path, folder) in &index.folders {
        bytes(&mut out, path);
        out.push(u8::from(folder.ignored));
        number(&mut out, folder.entries.len() as u64);
        for entry in &folder.entries {
            bytes(&mut out, &entry.name);
            for value in [
                entry.stat.inode,
                entry.stat.size,
                entry.stat.mtime.cast_unsigned(),
                entry.stat.ctime.cast_unsigned(),
                u64::from(entry.stat.mode),
            ] {
                number(&mut out, value);
            }
            node(&mut out, &entry.node);
        }
    }
    let digest = Digest::of(&out);
    out.extend_from_slice(&digest.0);
    out
}

fn node(out: &mut Vec<u8>, node: &Node) {
    match node {
        Node::File { mode, digest, size } => {
            out.push(0);
            number(out, u64::from(*mode));
            out.extend_from_slice(&digest.0);
            number(out, *size);
        }
        Node::Link { target } => {
            out.push(1);
            bytes(out, &target.0);
        }
        Node::Folder { mode } => {
            out.push(2);
            number(out, u64::from(*mode));
        }
        Node::Skipped {
            why,
            mode,
            size,
            mtime,
        } => {
            out.push(3);
            out.push(*why as u8);
            number(out, u64::from(*mode));
            number(out, *size);
            number(out, mtime.cast_unsigned());
        }
    }
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    number(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn decode(all: &[u8]) -> Option<Index> {
    let (content, digest) = all.split_at_checked(all.len().checked_sub(32)?)?;
    if Digest::of(content).0 != *digest {
        return None;
    }
    let mut reader = Reader(content.strip_prefix(MAGIC)?);
    let mut index = Index::default();
    for _ in 0..reader.number()? {
        let path = reader.bytes()?;
        let ignored = reader.take(1)?.first() == Some(&1);
        let count = reader.number()?;
        let mut entries = Vec::with_capacity(usize::try_from(count.min(1 << 20)).ok()?);
        for _ in 0..count {
            entries.push(reader.entry()?);
        }
        index
            .folders
            .insert(Arc::from(path), Arc::new(Folder { entries, ignored }));
    }
    reader.0.is_empty().then_some(index)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn entry(&mut self) -> Option<Entry> {
        Some(Entry {
            name: Box::from(self.bytes()?),
            stat: Stat {
                inode: self.number()?,
                size: self.number()?,
                mtime: self.number()?.cast_signed(),
                ctime: self.number()?.cast_signed(),
                mode: self.small()?,
            },
            node: self.node()?,
        })
    }

    fn node(&mut self) -> Option<Node> {
        Some(match self.take(1)? {
            [0] => Node::File {
                mode: self.small()?,
                digest: Digest(self.take(32)?.try_into().ok()?),
                size: self.number()?,
            },
            [1] => Node::Link {
                target: Bytes(self.bytes()?.to_vec()),
            },
            [2] => Node::Folder { mode: self.small()? },
            [3] => Node::Skipped {
                why: match self.take(1)? {
                    [0] => Skip::Large,
                    [1] => Skip::Full,
                    [2] => Skip::Ignored,
                    [3] => Skip::Unreadable,
                    _ => Skip::Special,
                },
                mode: self.small()?,
                size: self.number()?,
                mtime: self.number()?.cast_signed(),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Index {
        let stat = Stat {
            inode: 7,
            size: 3,
            mtime: -5,
            ctime: 9,
            mode: 0o100_644,
        };
        let entry = |name: &[u8], node| Entry {
            name: Box::from(name),
            stat,
            node,
        };
        let nodes = vec![
            entry(
                b"a\xff",
                Node::File {
                    mode: 0o644,
                    digest: Digest::of(b"x"),
                    size: 1,
                },
            ),
            entry(
                b"l",
                Node::Link {
                    target: Bytes(b"to".to_vec()),
                },
            ),
            entry(b"s", Node::Folder { mode: 0o755 }),
            entry(
                b"z",
                Node::Skipped {
                    why: Skip::Ignored,
                    mode: 1,
                    size: 2,
                    mtime: -3,
                },
            ),
        ];
        let folder = Folder {
            entries: nodes,
            ignored: false,
        };
        let inner = Folder {
            entries: Vec::new(),
            ignored: true,
        };
        Index {
            folders: [
                (Arc::from(&b""[..]), Arc::new(folder)),
                (Arc::from(&b"s"[..]), Arc::new(inner)),
            ]
            .into(),
        }
    }

    /// SES-11: the index survives a round trip, and a damaged one counts as missing.
    #[test]
    fn survives_or_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index");
        let index = sample();
        index.write(&file).unwrap();
        let read = Index::read(&file);
        assert_eq!(read.folders, index.folders);
        assert!(index.diff(&read).is_empty());
        let whole = fs::read(&file).unwrap();
        for cut in [0, 7, 40, whole.len() - 1] {
            assert!(decode(&whole[..cut]).is_none(), "{cut}");
        }
        for place in [8, 30, whole.len() - 3] {
            let mut bent = whole.clone();
            bent[place] ^= 1;
            assert!(decode(&bent).is_none(), "{place}");
        }
        assert!(Index::read(&folder.path().join("none")).folders.is_empty());
    }
}
