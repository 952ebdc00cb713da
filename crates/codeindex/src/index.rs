//! A snapshot of the index of a workspace, and the steps that bring it up to date.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use windlass_sandbox::{Roots, folder, read_open};

use crate::definitions::Finder;
use crate::language::Language;
use crate::record::{Record, Stamp, pack};
use crate::walk;

/// Size of the largest file whose contents are indexed.
pub(crate) const MAX_FILE: u64 = 1 << 20;
/// Average length of a line from which a file counts as generated.
const GENERATED_LINE: usize = 400;
/// A file that changed this shortly before it was read may change again without a new time, in nanoseconds.
const UNSETTLED: i64 = 50_000_000;
/// Maximum number of threads.
const MAX_THREADS: usize = 4;

/// The workspace that is indexed, and its limits.
#[derive(Debug, Clone)]
pub struct IndexedFolder {
    /// The folder, with every link followed.
    pub root: PathBuf,
    /// Opens files; leaves out the denied ones.
    pub files: Arc<Roots>,
    /// Maximum number of files.
    pub max_files: usize,
}

/// An index at one moment.
#[derive(Debug, Default)]
pub struct Index {
    /// Sorted by path.
    pub(crate) records: Vec<Record>,
    /// True if the workspace has more files than the limit.
    pub(crate) is_partial: bool,
}

/// Differences that an update found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexChanges {
    /// Files that are new or have other contents.
    pub read: usize,
    /// Files that are gone.
    pub removed: usize,
    /// True if the stored index should be written again.
    pub is_stale: bool,
}

/// Contents of an index in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSize {
    /// Files.
    pub files: usize,
    /// Definitions.
    pub definitions: usize,
    /// Bytes in memory.
    pub bytes: usize,
}

impl Index {
    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.records.len()
    }

    /// Returns true if the workspace has more files than the limit, so that some are missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(|record| &*record.path)
    }

    /// Counts the contents.
    pub fn size(&self) -> IndexSize {
        let mut definitions = 0;
        let mut bytes = 0;
        for record in &self.records {
            record.names(|_| definitions += 1);
            bytes += record.packed.len() + record.path.len() + size_of::<Record>();
        }
        IndexSize {
            files: self.records.len(),
            definitions,
            bytes,
        }
    }

    /// Returns the index with the changes in the folder since this one. Only names and times are read of files that
    /// have not changed. Returns `None` when `stop` is set.
    pub fn updated(&self, folder: &IndexedFolder, stop: &AtomicBool) -> Option<(Self, IndexChanges)> {
        let started = folder::stamp_time();
        let walked = walk::files(folder, stop)?;
        self.with(folder, walked, Vec::new(), started, stop)
    }

    /// Like [`Self::updated`], but looks only at the given paths. Whoever gives them knows that nothing else changed.
    pub(crate) fn updated_at(
        &self,
        folder: &IndexedFolder,
        paths: &BTreeSet<String>,
        stop: &AtomicBool,
    ) -> Option<(Self, IndexChanges)> {
        let started = folder::stamp_time();
        let mut walked = walk::files_at(folder, paths, stop)?;
        walked.is_partial = self.is_partial;
        let others = self
            .records
            .iter()
            .filter(|record| !paths.contains(&*record.path));
        self.with(folder, walked, others.cloned().collect(), started, stop)
    }

    /// Returns the index with the files that a walk found, and `records` besides.
    fn with(
        &self,
        folder: &IndexedFolder,
        walked: walk::Walked,
        mut records: Vec<Record>,
        started: i64,
        stop: &AtomicBool,
    ) -> Option<(Self, IndexChanges)> {
        let old: HashMap<&str, &Record> = self
            .records
            .iter()
            .map(|record| (&*record.path, record))
            .collect();
        records.reserve(walked.files.len());
        let mut open = Vec::new();
        for (path, stamp) in walked.files {
            match old.get(path.as_str()) {
                Some(record) if record.stamp == stamp => records.push((*record).clone()),
                known => open.push((path, stamp, known.copied())),
            }
        }
        let kept = records.len();
        let read = read_all(folder, &open, started, stop)?;
        let changed = read.iter().filter(|(_, is_new)| *is_new).count();
        let known = read
            .iter()
            .filter(|(record, _)| old.contains_key(&*record.path))
            .count();
        records.extend(read.into_iter().map(|(record, _)| record));
        records.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let removed = self.records.len().saturating_sub(kept + known);
        let changes = IndexChanges {
            read: changed,
            removed,
            is_stale: !open.is_empty() || removed > 0,
        };
        Some((
            Self {
                records,
                is_partial: walked.is_partial,
            },
            changes,
        ))
    }
}

type Open<'a> = (String, Stamp, Option<&'a Record>);

/// Reads files on several threads. The second value of each is true if its contents are new.
fn read_all(
    folder: &IndexedFolder,
    open: &[Open<'_>],
    started: i64,
    stop: &AtomicBool,
) -> Option<Vec<(Record, bool)>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(open.len()));
    let work = || {
        let mut finder = Finder::default();
        let mut mine = Vec::new();
        while !stop.load(Ordering::Relaxed)
            && let Some(item) = open.get(next.fetch_add(1, Ordering::Relaxed))
        {
            mine.extend(read_one(folder, &mut finder, item, started));
        }
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut mine);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MAX_THREADS).min(open.len() / 16 + 1);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    (!stop.load(Ordering::Relaxed)).then_some(done)
}

/// Reads one file. `None` if it is denied, gone or not a regular file.
fn read_one(
    folder: &IndexedFolder,
    finder: &mut Finder,
    (path, stamp, known): &Open<'_>,
    started: i64,
) -> Option<(Record, bool)> {
    let mut stamp = *stamp;
    if stamp.modified.max(stamp.changed) > started.saturating_sub(UNSETTLED) {
        stamp.modified = Stamp::UNSETTLED;
    }
    let (bytes, is_cut) = match Language::of(path) {
        Some(_) if stamp.size <= MAX_FILE => read(folder, path).ok()?,
        // The file is only opened, to find out if it may be.
        _ => {
            folder.files.open_walked(&folder.root.join(path)).ok()?;
            (Vec::new(), true)
        }
    };
    let digest = digest(&bytes, is_cut);
    let path: Arc<str> = path.as_str().into();
    if let Some(known) = known
        && known.digest == digest
    {
        let packed = Arc::clone(&known.packed);
        return Some((
            Record {
                path,
                stamp,
                digest,
                packed,
            },
            false,
        ));
    }
    let text = readable(&bytes, is_cut);
    let packed = pack(finder, &path, text.as_deref());
    Some((
        Record {
            path,
            stamp,
            digest,
            packed,
        },
        true,
    ))
}

pub(crate) fn read(folder: &IndexedFolder, path: &str) -> io::Result<(Vec<u8>, bool)> {
    let file = folder.files.open_walked(&folder.root.join(Path::new(path)));
    read_open(file.map_err(io::Error::other)?, MAX_FILE)
}

fn digest(bytes: &[u8], is_cut: bool) -> u64 {
    let hash = blake3::hash(bytes);
    let first = hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
    u64::from_le_bytes(first) ^ u64::from(is_cut)
}

/// Returns the text of a file that people write: not binary, not generated.
fn readable(bytes: &[u8], is_cut: bool) -> Option<std::borrow::Cow<'_, str>> {
    let head = bytes.get(..bytes.len().min(8_192)).unwrap_or_default();
    if is_cut || head.contains(&0) {
        return None;
    }
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    (bytes.len() / lines < GENERATED_LINE || bytes.len() < 4_096).then(|| String::from_utf8_lossy(bytes))
}
