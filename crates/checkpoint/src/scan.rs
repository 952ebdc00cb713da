//! Scans a whole workspace and reads the files that changed since the last scan.
//!
//! Folders are distributed over a few threads. A file is read only if its stamp differs from the previous
//! one; an unchanged folder is not even copied. The usual cost is one `stat` per file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ignore::Match;
use ignore::gitignore::Gitignore;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use windlass_sandbox::folder;

use super::index::{Entry, Folder, Index, Stat};
use super::node::{Bytes, Digest, Node, Skip};
use super::tree::{Keep, Tree, link, skipped, stat};
use windlass_sandbox::is_placeholder;

const THREADS: usize = 4;
/// Time before the scan, in nanoseconds, within which a change may be followed by another one with the same
/// stamp.
const TICK: i64 = 20_000_000;

/// Result of scanning a workspace.
pub(super) enum Scanned {
    /// The complete index.
    Whole(Index),
    /// The workspace has more entries than the limit.
    TooLarge,
}

/// Scans everything, given the previous state.
pub(super) fn scan(tree: &Tree, known: &Index) -> io::Result<Scanned> {
    let (all, ignored) = known.kept();
    let root = Job {
        path: Arc::from(&b""[..]),
        ignored: false,
    };
    let work = Work {
        tree,
        known,
        queue: Mutex::new(Queue {
            jobs: vec![root],
            busy: 0,
        }),
        wake: Condvar::new(),
        found: Mutex::default(),
        entries: AtomicUsize::new(0),
        left: AtomicU64::new(tree.limits.total.saturating_sub(all)),
        left_ignored: AtomicU64::new(tree.limits.ignored.saturating_sub(ignored)),
        rules: Mutex::default(),
        failure: Mutex::default(),
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work.run());
        }
        work.run();
    });
    if let Some(error) = work.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    if work.entries.load(Ordering::Relaxed) > tree.limits.entries {
        return Ok(Scanned::TooLarge);
    }
    let found = work.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Scanned::Whole(Index { folders: found }))
}

/// A folder to be scanned.
struct Job {
    path: Arc<[u8]>,
    ignored: bool,
}

struct Queue {
    jobs: Vec<Job>,
    /// Number of threads that may still add jobs.
    busy: usize,
}

struct Work<'a> {
    tree: &'a Tree,
    known: &'a Index,
    queue: Mutex<Queue>,
    wake: Condvar,
    found: Mutex<HashMap<Arc<[u8]>, Arc<Folder>>>,
    entries: AtomicUsize,
    /// Bytes that may still be stored.
    left: AtomicU64,
    left_ignored: AtomicU64,
    /// Ignore rules of each folder that was queried.
    rules: Mutex<HashMap<Vec<u8>, Option<Arc<Gitignore>>>>,
    failure: Mutex<Option<io::Error>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work<'_> {
    fn run(&self) {
        let mut look = Look::default();
        let mut found = Vec::new();
        while let Some(job) = self.next() {
            let mut jobs = Vec::new();
            match self.folder(&job, &mut look, &mut jobs) {
                Ok(folder) => found.push((job.path, folder)),
                Err(error) => *lock(&self.failure) = Some(error),
            }
            let too_many = self.entries.load(Ordering::Relaxed) > self.tree.limits.entries;
            let mut queue = lock(&self.queue);
            queue.busy -= 1;
            if too_many || lock(&self.failure).is_some() {
                queue.jobs.clear();
            } else {
                queue.jobs.append(&mut jobs);
            }
            self.wake.notify_all();
        }
        lock(&self.found).extend(found);
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Scans one folder and adds its subfolders as further jobs.
    fn folder(&self, job: &Job, look: &mut Look, jobs: &mut Vec<Job>) -> io::Result<Arc<Folder>> {
        let known = self.known.folders.get(&job.path);
        let folder = match self.tree.folder(&job.path) {
            Ok(handle) => self.opened(job, look, known, handle.as_fd())?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Arc::default()),
            // Not readable: the previous state is all that is known, also of the folders in it.
            Err(Errno::ACCESS | Errno::PERM) => known.cloned().unwrap_or_default(),
            Err(error) => return Err(error.into()),
        };
        let inner = folder
            .entries
            .iter()
            .filter(|entry| matches!(entry.node, Node::Folder { .. }));
        jobs.extend(inner.map(|entry| {
            let path: Arc<[u8]> = Arc::from(Bytes::join(&job.path, &entry.name).0);
            Job {
                ignored: job.ignored || self.is_ignored(&path),
                path,
            }
        }));
        Ok(folder)
    }

    /// Scans a folder that can be read.
    fn opened(
        &self,
        job: &Job,
        look: &mut Look,
        known: Option<&Arc<Folder>>,
        handle: BorrowedFd<'_>,
    ) -> io::Result<Arc<Folder>> {
        match look.read(self.tree, &job.path, handle) {
            // Its names can be read and nothing else: the search permission is missing.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(known.cloned().unwrap_or_default());
            }
            read => read?,
        }
        self.entries.fetch_add(look.names.len(), Ordering::Relaxed);
        match known {
            Some(known) if look.is(known) => Ok(Arc::clone(known)),
            known => {
                let known = known.map(|known| &**known);
                Ok(Arc::new(self.changed(job, look, known, handle)?))
            }
        }
    }

    /// Scans a folder in which something changed.
    fn changed(
        &self,
        job: &Job,
        look: &Look,
        known: Option<&Folder>,
        handle: BorrowedFd<'_>,
    ) -> io::Result<Folder> {
        let mut before = known.map_or(&[][..], |known| &known.entries).iter().peekable();
        let mut entries = Vec::with_capacity(look.names.len());
        for (name, stat) in look.entries() {
            while before.next_if(|entry| *entry.name < *name).is_some() {}
            let was = before.next_if(|entry| *entry.name == *name);
            if let Some(was) = was.filter(|was| was.stat == *stat) {
                entries.push(was.clone());
                continue;
            }
            if let Some((stat, node)) = self.node(job, handle, name, stat, was)? {
                entries.push(Entry {
                    name: Box::from(name),
                    stat: look.settled(stat),
                    node,
                });
            }
        }
        Ok(Folder {
            entries,
            ignored: job.ignored,
        })
    }

    fn node(
        &self,
        job: &Job,
        folder: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
        was: Option<&Entry>,
    ) -> io::Result<Option<(Stat, Node)>> {
        let os_name = OsStr::from_bytes(name);
        match stat.kind() {
            FileType::Directory => {
                // Once too large, it stays so.
                if let Some(Entry {
                    node:
                        node @ Node::Skipped {
                            why: Skip::Ignored, ..
                        },
                    ..
                }) = was
                {
                    return Ok(Some((*stat, node.clone())));
                }
                let is_new = was.is_none_or(|was| !matches!(was.node, Node::Folder { .. }));
                let path = Bytes::join(&job.path, name);
                if is_new && (job.ignored || self.is_ignored(&path.0)) && !self.fits(&path.0) {
                    return Ok(Some((*stat, skipped(Skip::Ignored, stat))));
                }
                Ok(Some((
                    *stat,
                    Node::Folder {
                        mode: stat.mode & 0o7777,
                    },
                )))
            }
            FileType::Symlink => Ok(link(folder, os_name)?.map(|node| (*stat, node))),
            FileType::RegularFile => {
                if stat.size > self.tree.limits.file {
                    return Ok(Some((*stat, skipped(Skip::Large, stat))));
                }
                let known = was.and_then(|was| match &was.node {
                    Node::File { digest, size, .. } => Some((digest, *size)),
                    _ => None,
                });
                if !self.spend(job, stat.size.saturating_sub(known.map_or(0, |(_, size)| size))) {
                    return Ok(Some((*stat, skipped(Skip::Full, stat))));
                }
                self.tree.read(
                    folder,
                    os_name,
                    Keep::Unless(known.map(|(digest, _): (&Digest, u64)| digest)),
                )
            }
            _ => Ok(Some((*stat, skipped(Skip::Special, stat)))),
        }
    }

    /// Reserves bytes of the remaining storage budget.
    fn spend(&self, job: &Job, size: u64) -> bool {
        let take = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(size)
            })
            .is_ok()
        };
        (!job.ignored || take(&self.left_ignored)) && take(&self.left)
    }

    /// Returns true if an ignored folder is small enough to be stored.
    fn fits(&self, path: &[u8]) -> bool {
        let mut left = self.left_ignored.load(Ordering::Relaxed);
        let mut entries = self.tree.limits.entries / 4;
        let mut folders = vec![path.to_vec()];
        let mut look = Look::default();
        while let Some(path) = folders.pop() {
            let Ok(handle) = self.tree.folder(&path) else {
                continue;
            };
            if look.read(self.tree, &path, handle.as_fd()).is_err() {
                continue;
            }
            for (name, stat) in look.entries() {
                let size = match stat.kind() {
                    FileType::Directory => {
                        folders.push(Bytes::join(&path, name).0);
                        0
                    }
                    FileType::RegularFile => stat.size,
                    _ => 0,
                };
                let (Some(bytes), Some(count)) = (left.checked_sub(size), entries.checked_sub(1)) else {
                    return false;
                };
                (left, entries) = (bytes, count);
            }
        }
        true
    }

    /// Returns true if version control ignores a folder by its own name; its parent folders were checked
    /// before.
    fn is_ignored(&self, path: &[u8]) -> bool {
        if let Some(known) = self.known.folders.get(path) {
            return known.ignored;
        }
        let path = Bytes(path.to_vec());
        let mut folder = path.path();
        while let Some(parent) = folder.parent() {
            folder = parent;
            let Some(rules) = self.rules(folder.as_os_str().as_bytes()) else {
                continue;
            };
            match rules.matched(self.tree.root.join(path.path()), true) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn rules(&self, folder: &[u8]) -> Option<Arc<Gitignore>> {
        if let Some(known) = lock(&self.rules).get(folder) {
            return known.clone();
        }
        let file = self.tree.root.join(OsStr::from_bytes(folder)).join(".gitignore");
        let rules = file.is_file().then(|| Arc::new(Gitignore::new(file).0));
        lock(&self.rules).insert(folder.to_vec(), rules.clone());
        rules
    }
}

/// Names in one folder with their stamps, sorted. Reused for the next folder.
#[derive(Default)]
struct Look {
    /// All names, concatenated.
    text: Vec<u8>,
    names: Vec<(usize, usize, Stat)>,
    /// Start time of the scan.
    now: i64,
}

impl Look {
    fn read(&mut self, tree: &Tree, path: &[u8], handle: BorrowedFd<'_>) -> io::Result<()> {
        let Self { text, names, now } = self;
        text.clear();
        names.clear();
        *now = folder::stamp_time();
        folder::names(handle, |name| {
            let bytes = name.to_bytes();
            if tree.hides(path, bytes) {
                return Ok(());
            }
            let data = match rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(data) => data,
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if is_placeholder(&data) {
                return Ok(());
            }
            let start = text.len();
            text.extend_from_slice(bytes);
            names.push((start, text.len(), comparable(stat(&data))));
            Ok(())
        })?;
        names.sort_unstable_by(|a, b| text.get(a.0..a.1).cmp(&text.get(b.0..b.1)));
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = (&[u8], &Stat)> {
        self.names
            .iter()
            .map(|(start, end, stat)| (self.text.get(*start..*end).unwrap_or_default(), stat))
    }

    /// Returns true if the folder equals its known state.
    fn is(&self, known: &Folder) -> bool {
        self.names.len() == known.entries.len()
            && self
                .entries()
                .zip(&known.entries)
                .all(|((name, stat), entry)| *entry.name == *name && entry.stat == *stat)
    }

    /// Returns the stamp to remember: an invalid one if the file may change again without a new stamp.
    fn settled(&self, stat: Stat) -> Stat {
        let is_folder = stat.kind() == FileType::Directory;
        if !is_folder && stat.ctime.saturating_add(TICK) >= self.now {
            return Stat { ctime: 0, ..stat };
        }
        stat
    }
}

/// Returns a folder's stamp without the parts that change with its entries, which are compared separately.
fn comparable(stat: Stat) -> Stat {
    if stat.kind() != FileType::Directory {
        return stat;
    }
    Stat {
        inode: 0,
        size: 0,
        mtime: 0,
        ctime: 0,
        mode: stat.mode,
    }
}
