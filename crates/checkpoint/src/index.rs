//! Known state of a workspace: every path with the data that reveals a change. This is a cache of the last
//! scan; if it is lost, the next scan reads everything again.
//!
//! The entries stay in the index file. In memory there is one place per folder, and what changed in a folder
//! since it was written as a whole. So an update costs as much as what changed, in time and on the disk.

mod draft;
mod format;
mod parts;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, RawMode};

pub(super) use self::draft::{Draft, Extent, Previous};
use self::format::{ENTRY, FOLDER_HEAD, HEAD, Head, Kind, MAGIC};
pub(super) use self::parts::IndexPart;
use super::node::{Bytes, Change, Node};

/// Bytes of replaced records that are not worth writing the file again for.
const SLACK: u64 = 4 << 20;

/// Metadata that distinguishes two states of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

impl Entry {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.node, Node::Folder { .. })
    }

    /// Returns the bytes of content that are stored.
    fn kept(&self) -> u64 {
        match self.node {
            Node::File { size, .. } => size,
            _ => 0,
        }
    }
}

/// Entries of a folder, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Folder {
    pub(super) entries: Vec<Entry>,
    /// True if version control ignores the folder.
    pub(super) ignored: bool,
}

/// Names in a folder that changed, with their new entries.
pub(super) type Names = Vec<(Box<[u8]>, Option<Entry>)>;

/// The same by name.
type Since = BTreeMap<Box<[u8]>, Option<Entry>>;

/// A folder of which the entries are in the file.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Place of the folder's body in the file.
    offset: u64,
    length: u64,
    /// Number of entries in the body.
    written: u32,
    ignored: bool,
    /// Number of entries, and bytes of stored content, with the changes since.
    entries: u32,
    kept: u64,
    /// Names that changed since the folder was written.
    since: Option<Box<Since>>,
}

/// All folders by path; the workspace itself is the empty path.
#[derive(Debug)]
pub(super) struct Index {
    file: PathBuf,
    /// The file, for reading and for appending.
    log: Option<File>,
    folders: HashMap<Arc<[u8]>, Known>,
    entries: usize,
    kept: u64,
    kept_ignored: u64,
    /// Bytes of the file as far as it is known, and bytes in it that are not replaced.
    length: u64,
    live: u64,
    is_whole: bool,
    is_damaged: bool,
    /// Folders that changed since they were last asked for; `None` if all count as changed.
    changed: Option<HashSet<Arc<[u8]>>>,
}

impl Index {
    /// Opens the index in a file. It is empty if the file is missing; what is damaged is left out.
    pub(super) fn open(file: &Path) -> Self {
        let mut index = Self {
            file: file.to_owned(),
            log: None,
            folders: HashMap::new(),
            entries: 0,
            kept: 0,
            kept_ignored: 0,
            length: 0,
            live: 0,
            is_whole: false,
            is_damaged: false,
            changed: None,
        };
        if let Ok(log) = File::options().read(true).append(true).open(file) {
            index.is_damaged = index.load(&log).is_none();
            index.is_whole &= !index.is_damaged;
            index.log = Some(log);
        }
        index
    }

    /// Reads every record. Returns `None` if one is damaged; what was read until then is used.
    fn load(&mut self, log: &File) -> Option<()> {
        let end = log.metadata().ok()?.len();
        let mut reader = BufReader::with_capacity(1 << 18, log);
        let mut magic = [0; MAGIC.len()];
        reader.read_exact(&mut magic).ok().filter(|()| magic == *MAGIC)?;
        self.length = MAGIC.len() as u64;
        let (mut bytes, mut rest) = ([0; HEAD], Vec::new());
        while self.length < end {
            reader.read_exact(&mut bytes).ok()?;
            let head = Head::read(&bytes)?;
            let size = head.path.checked_add(head.body)?;
            let next = self.length + (HEAD + size) as u64;
            if next > end {
                return None;
            }
            rest.resize(size, 0);
            reader
                .read_exact(&mut rest)
                .ok()
                .filter(|()| head.fits(&bytes, &rest))?;
            let (path, body) = rest.split_at_checked(head.path)?;
            let offset = self.length + (HEAD + head.path) as u64;
            self.length = next;
            match head.kind {
                Kind::Folder => {
                    let folder = format::read_folder(body)?;
                    let known = Known::of(&folder, offset, body.len() as u64);
                    self.set(Arc::from(path), known);
                }
                Kind::Names => self.change(log, path, format::read_names(body)?).ok()?,
                Kind::Gone => self.forget(path),
                Kind::Whole => self.is_whole = true,
            }
        }
        Some(())
    }

    /// Returns true if the index describes the whole workspace as of some moment.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the number of files and folders.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the bytes of stored content: in total, and in ignored folders.
    pub(super) fn kept(&self) -> (u64, u64) {
        (self.kept, self.kept_ignored)
    }

    /// Returns whether version control ignores a known folder.
    pub(super) fn ignores(&self, path: &[u8]) -> Option<bool> {
        self.folders.get(path).map(|known| known.ignored)
    }

    /// Returns the entries of a folder.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<Option<Folder>> {
        let Some(known) = self.folders.get(path) else {
            return Ok(None);
        };
        let mut folder = self.written(known)?;
        if let Some(since) = &known.since {
            let mut all: BTreeMap<_, _> = folder
                .entries
                .into_iter()
                .map(|entry| (entry.name.clone(), entry))
                .collect();
            for (name, entry) in &**since {
                match entry {
                    Some(entry) => all.insert(name.clone(), entry.clone()),
                    None => all.remove(name),
                };
            }
            folder.entries = all.into_values().collect();
        }
        Ok(Some(folder))
    }

    fn written(&self, known: &Known) -> io::Result<Folder> {
        let mut body = vec![0; usize::try_from(known.length).map_err(io::Error::other)?];
        let log = self.log.as_ref().ok_or_else(|| self.damaged())?;
        log.read_exact_at(&mut body, known.offset)?;
        format::read_folder(&body).ok_or_else(|| self.damaged())
    }

    /// Returns one entry of a folder, without reading the others.
    pub(super) fn entry(&self, path: &[u8], name: &[u8]) -> io::Result<Option<Entry>> {
        let Some(known) = self.folders.get(path) else {
            return Ok(None);
        };
        let log = self.log.as_ref().ok_or_else(|| self.damaged())?;
        self.find(log, known, name)
    }

    /// Searches for an entry of a folder.
    fn find(&self, log: &File, known: &Known, name: &[u8]) -> io::Result<Option<Entry>> {
        if let Some(entry) = known.since.as_ref().and_then(|since| since.get(name)) {
            return Ok(entry.clone());
        }
        let first = known.offset + FOLDER_HEAD as u64;
        let texts = first + u64::from(known.written) * ENTRY as u64;
        let (mut low, mut high) = (0, known.written);
        let mut record = [0; ENTRY];
        while low < high {
            let middle = low + (high - low) / 2;
            log.read_exact_at(&mut record, first + u64::from(middle) * ENTRY as u64)?;
            let (base, size) = format::text_place(&record).ok_or_else(|| self.damaged())?;
            if base as u64 + size as u64 > known.length {
                return Err(self.damaged());
            }
            let mut text = vec![0; size];
            log.read_exact_at(&mut text, texts + base as u64)?;
            let entry = format::read_entry(&record, &text, base).ok_or_else(|| self.damaged())?;
            match (*entry.name).cmp(name) {
                std::cmp::Ordering::Equal => return Ok(Some(entry)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    fn damaged(&self) -> io::Error {
        let text = format!("{} is damaged", self.file.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    /// Calls `visit` with a folder and every folder below it, each with its path.
    pub(super) fn below(&self, path: &[u8], mut visit: impl FnMut(&[u8], Folder)) -> io::Result<()> {
        let mut paths = vec![path.to_vec()];
        while let Some(path) = paths.pop() {
            let Some(folder) = self.folder(&path)? else {
                continue;
            };
            let inner = folder.entries.iter().filter(|entry| entry.is_folder());
            paths.extend(inner.map(|entry| Bytes::join(&path, &entry.name).0));
            visit(&path, folder);
        }
        Ok(())
    }

    fn set(&mut self, path: Arc<[u8]>, known: Known) {
        self.forget(&path);
        self.note(&path);
        self.count(&known, 1);
        self.live += known.length + path.len() as u64;
        self.folders.insert(path, known);
    }

    fn forget(&mut self, path: &[u8]) {
        if let Some((path, old)) = self.folders.remove_entry(path) {
            self.count(&old, -1);
            self.live = self.live.saturating_sub(old.length + path.len() as u64);
            self.note(&path);
        }
    }

    /// Remembers that a folder changed, if somebody asks.
    fn note(&mut self, path: &Arc<[u8]>) {
        if let Some(changed) = &mut self.changed {
            changed.insert(Arc::clone(path));
        }
    }

    fn count(&mut self, known: &Known, sign: i64) {
        let add = |sum: u64, value: u64| sum.saturating_add_signed(sign * value.cast_signed());
        self.entries = usize::try_from(add(self.entries as u64, u64::from(known.entries))).unwrap_or(0);
        self.kept = add(self.kept, known.kept);
        if known.ignored {
            self.kept_ignored = add(self.kept_ignored, known.kept);
        }
    }

    /// Changes single names of a folder.
    fn change(&mut self, log: &File, path: &[u8], names: Names) -> io::Result<()> {
        let Some((path, mut known)) = self.folders.remove_entry(path) else {
            return Ok(());
        };
        self.count(&known, -1);
        for (name, entry) in names {
            let old = self.find(log, &known, &name)?;
            let was = (old.is_some(), old.as_ref().map_or(0, Entry::kept));
            let is = (entry.is_some(), entry.as_ref().map_or(0, Entry::kept));
            known.entries = known.entries.saturating_sub(u32::from(was.0)) + u32::from(is.0);
            known.kept = known.kept.saturating_sub(was.1) + is.1;
            known.since.get_or_insert_default().insert(name, entry);
        }
        self.count(&known, 1);
        self.note(&path);
        self.folders.insert(path, known);
        Ok(())
    }

    /// Returns true if the file at the index's path is not the one that is open.
    fn is_replaced(&self) -> bool {
        let identity = |data: fs::Metadata| (data.dev(), data.ino());
        let open = self.log.as_ref().and_then(|log| log.metadata().ok());
        open.map(identity) != fs::metadata(&self.file).ok().map(identity)
    }
}

impl Known {
    fn of(folder: &Folder, offset: u64, length: u64) -> Self {
        let entries = u32::try_from(folder.entries.len()).unwrap_or(u32::MAX);
        Self {
            offset,
            length,
            written: entries,
            ignored: folder.ignored,
            entries,
            kept: folder.entries.iter().map(Entry::kept).sum(),
            since: None,
        }
    }

    /// Returns true if writing the whole folder pays off.
    fn is_worn(&self) -> bool {
        let changed = self.since.as_ref().map_or(0, |since| since.len());
        changed * 4 > self.written as usize + 64
    }
}

/// Adds the differences between two states of a folder that matter for undo.
pub(super) fn compare(path: &[u8], before: &Folder, after: &Folder, changes: &mut Vec<Change>) {
    for (before, after) in pairs(before, after) {
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

/// Returns the names with different entries in two states of a folder.
pub(super) fn differing(before: &Folder, after: &Folder) -> Names {
    let differing = pairs(before, after).filter(|(before, after)| before != after);
    let name = |(before, after): (Option<&Entry>, Option<&Entry>)| {
        let entry = before.or(after)?;
        Some((entry.name.clone(), after.cloned()))
    };
    differing.filter_map(name).collect()
}

/// Pairs the entries of two states of a folder by name.
fn pairs<'a>(
    before: &'a Folder,
    after: &'a Folder,
) -> impl Iterator<Item = (Option<&'a Entry>, Option<&'a Entry>)> {
    let (mut old, mut new) = (before.entries.iter().peekable(), after.entries.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.name.cmp(&new.name),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        Some((before, after))
    })
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
