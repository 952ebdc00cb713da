//! Scans a workspace, or the parts of it that were reported, and reads the files that changed since the last
//! scan.
//!
//! Folders are distributed over a few threads. A file is read only if its stamp differs from the previous
//! one. The usual cost is one `stat` per file.

mod budget;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ignore::gitignore::Gitignore;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::index::{Draft, Entry, Folder, Index, Names, Stat, compare, differing};
use super::look::{Look, stamp};
use super::node::{Bytes, Change, Digest, Node, Skip};
use super::tree::{Keep, Tree, link, skipped};
use super::watch::{Added, Depth, Touched, Watch};

const THREADS: usize = 4;

/// The parts that a scan uses.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    pub(super) tree: &'a Tree,
    /// The previous state.
    pub(super) known: &'a Index,
    /// Watches the folders that are read.
    pub(super) watch: Option<&'a Watch>,
    pub(super) report: Report,
}

/// The result that is wanted besides the new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Changes,
    Nothing,
}

/// Result of a scan.
pub(super) enum Scanned {
    /// The new state is in the draft.
    Done(Draft, Vec<Change>),
    /// The workspace has more entries than the limit.
    TooLarge(Draft),
    /// Something changed that only a scan of the whole workspace finds.
    Incomplete,
}

impl Scan<'_> {
    /// Scans everything.
    pub(super) fn whole(self, draft: Draft) -> io::Result<Scanned> {
        let root = Job {
            path: Arc::from(&b""[..]),
            ignored: false,
        };
        let work = Work::new(self, draft, Part::Everything);
        work.run_all(vec![root]);
        work.finish()
    }

    /// Looks at names that were reported.
    pub(super) fn touched(self, draft: Draft, touched: Touched) -> io::Result<Scanned> {
        let work = Work::new(self, draft, Part::Touched);
        let mut look = Look::default();
        // Folders that are gone, or are scanned as a whole below.
        let mut settled: Vec<Vec<u8>> = Vec::new();
        let mut jobs = Vec::new();
        // A folder sorts before everything below it.
        for (path, names) in touched {
            let is_settled = |folder: &Vec<u8>| {
                path.strip_prefix(&folder[..])
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            };
            if settled.iter().any(is_settled) {
                continue;
            }
            let Some(ignored) = self.known.ignores(&path) else {
                continue;
            };
            let job = Job { path, ignored };
            work.names(&job, names, &mut look, &mut jobs, &mut settled)?;
        }
        work.run_all(jobs);
        work.finish()
    }
}

/// The part of the workspace that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Everything,
    Touched,
}

/// A folder to be scanned.
struct Job {
    path: Arc<[u8]>,
    ignored: bool,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Number of threads that may still add jobs.
    busy: usize,
}

struct Work<'a> {
    scan: Scan<'a>,
    queue: Mutex<Queue>,
    wake: Condvar,
    draft: Mutex<Draft>,
    changes: Mutex<Vec<Change>>,
    part: Part,
    /// Number of files and folders. If only some are looked at, the known ones are counted from the start.
    entries: AtomicUsize,
    /// Bytes that may still be stored.
    left: AtomicU64,
    left_ignored: AtomicU64,
    /// Ignore rules of each folder that was queried.
    rules: Mutex<HashMap<Vec<u8>, Option<Arc<Gitignore>>>>,
    /// True if something was found that only a scan of everything covers.
    is_incomplete: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Work<'a> {
    fn new(scan: Scan<'a>, draft: Draft, part: Part) -> Self {
        let (all, ignored) = scan.known.kept();
        let limits = &scan.tree.limits;
        Self {
            scan,
            queue: Mutex::default(),
            wake: Condvar::new(),
            draft: Mutex::new(draft),
            changes: Mutex::default(),
            part,
            entries: AtomicUsize::new(match part {
                Part::Everything => 0,
                Part::Touched => scan.known.entries(),
            }),
            left: AtomicU64::new(limits.total.saturating_sub(all)),
            left_ignored: AtomicU64::new(limits.ignored.saturating_sub(ignored)),
            rules: Mutex::default(),
            is_incomplete: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    fn finish(self) -> io::Result<Scanned> {
        if let Some(error) = unlocked(self.failure) {
            return Err(error);
        }
        let draft = unlocked(self.draft);
        if self.entries.into_inner() > self.scan.tree.limits.entries {
            return Ok(Scanned::TooLarge(draft));
        }
        if self.is_incomplete.into_inner() {
            return Ok(Scanned::Incomplete);
        }
        let mut changes = unlocked(self.changes);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Scanned::Done(draft, changes))
    }

    fn run_all(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        lock(&self.queue).jobs = jobs;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(THREADS) {
                scope.spawn(|| self.run());
            }
            self.run();
        });
    }

    fn run(&self) {
        let mut look = Look::default();
        while let Some(job) = self.next() {
            let mut jobs = Vec::new();
            if let Err(error) = self.folder(&job, &mut look, &mut jobs) {
                *lock(&self.failure) = Some(error);
            }
            let too_many = self.entries.load(Ordering::Relaxed) > self.scan.tree.limits.entries;
            let mut queue = lock(&self.queue);
            queue.busy -= 1;
            if too_many || lock(&self.failure).is_some() {
                queue.jobs.clear();
            } else {
                queue.jobs.append(&mut jobs);
            }
            self.wake.notify_all();
        }
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
    fn folder(&self, job: &Job, look: &mut Look, jobs: &mut Vec<Job>) -> io::Result<()> {
        let known = self.scan.known.folder(&job.path)?;
        let found = match self.scan.tree.folder(&job.path) {
            Ok(handle) => self.opened(job, look, known.as_ref(), handle.as_fd())?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Some(Folder::default()),
            // Not readable: the previous state is all that is known, also of the folders in it.
            Err(Errno::ACCESS | Errno::PERM) if known.is_some() => None,
            Err(Errno::ACCESS | Errno::PERM) => Some(Folder::default()),
            Err(error) => return Err(error.into()),
        };
        if let Some(found) = &found {
            self.update(&job.path, known.as_ref(), found)?;
        }
        let folder = found.or(known).unwrap_or_default();
        let inner = folder.entries.iter().filter(|entry| entry.is_folder());
        jobs.extend(inner.map(|entry| self.job(job, &entry.name)));
        Ok(())
    }

    fn job(&self, around: &Job, name: &[u8]) -> Job {
        let path: Arc<[u8]> = Arc::from(Bytes::join(&around.path, name).0);
        Job {
            ignored: around.ignored || self.is_ignored(&path),
            path,
        }
    }

    /// Scans a folder that can be read. Returns `None` if nothing changed.
    fn opened(
        &self,
        job: &Job,
        look: &mut Look,
        known: Option<&Folder>,
        handle: BorrowedFd<'_>,
    ) -> io::Result<Option<Folder>> {
        if let Some(watch) = self.scan.watch {
            watch.add(&job.path, handle);
        }
        match look.read(self.scan.tree, &job.path, handle, self.scan.watch) {
            // Its names can be read and nothing else: the search permission is missing.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(if known.is_some() {
                    None
                } else {
                    Some(Folder::default())
                });
            }
            read => read?,
        }
        if self.part == Part::Touched && look.has_new_link() {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
        let counted = known
            .filter(|_| self.part == Part::Touched)
            .map_or(0, |known| known.entries.len());
        self.entries
            .fetch_add(look.count().saturating_sub(counted), Ordering::Relaxed);
        match known {
            Some(known) if look.is(known) => Ok(None),
            known => self.changed(job, look, known, handle).map(Some),
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
        let mut entries = Vec::with_capacity(look.count());
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

    /// Replaces the known state of a folder.
    fn update(&self, path: &Arc<[u8]>, known: Option<&Folder>, found: &Folder) -> io::Result<()> {
        if let Some(known) = known {
            let mut after = found.entries.iter().peekable();
            for entry in known.entries.iter().filter(|entry| entry.is_folder()) {
                while after.next_if(|found| found.name < entry.name).is_some() {}
                let is_there = after
                    .peek()
                    .is_some_and(|found| found.name == entry.name && found.is_folder());
                if !is_there {
                    self.removed(&Bytes::join(path, &entry.name).0)?;
                }
            }
        }
        if self.scan.report == Report::Changes {
            let none = Folder::default();
            compare(path, known.unwrap_or(&none), found, &mut lock(&self.changes));
        }
        // What is written follows what changed, also in a folder of many files.
        match known.map(|known| differing(known, found)) {
            Some(names) if names.len() * 8 < found.entries.len() => {
                lock(&self.draft).names(Arc::clone(path), names);
            }
            _ => lock(&self.draft).folder(Arc::clone(path), found),
        }
        Ok(())
    }

    /// Removes a folder that is gone, with everything that was in it.
    fn removed(&self, path: &[u8]) -> io::Result<()> {
        let none = Folder::default();
        self.scan.known.below(path, |path, folder| {
            if let Some(watch) = self.scan.watch {
                watch.forget(path);
            }
            if self.scan.report == Report::Changes {
                compare(path, &folder, &none, &mut lock(&self.changes));
            }
            lock(&self.draft).gone(Arc::from(path));
        })
    }

    /// Looks at some names of a folder. Adds jobs for the folders among them that must be scanned as a whole.
    fn names(
        &self,
        job: &Job,
        names: BTreeMap<Box<[u8]>, Depth>,
        look: &mut Look,
        jobs: &mut Vec<Job>,
        settled: &mut Vec<Vec<u8>>,
    ) -> io::Result<()> {
        let handle = match self.scan.tree.folder(&job.path) {
            Ok(handle) => handle,
            // The folder around it was reported, too.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        look.start();
        let mut update = Names::new();
        for (name, depth) in names {
            if self.scan.tree.hides(&job.path, &name) {
                continue;
            }
            let was = self.scan.known.entry(&job.path, &name)?;
            let now = match self.name(job, look, handle.as_fd(), &name, was.as_ref()) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                now => now?,
            };
            let was_folder = was.as_ref().is_some_and(Entry::is_folder);
            let is_folder = now.as_ref().is_some_and(Entry::is_folder);
            if was_folder && !is_folder {
                let path = Bytes::join(&job.path, &name).0;
                self.removed(&path)?;
                settled.push(path);
            }
            if is_folder && (depth == Depth::Below || !was_folder) {
                let job = self.job(job, &name);
                settled.push(job.path.to_vec());
                jobs.push(job);
            }
            if was == now {
                continue;
            }
            let nodes = (
                was.map(|entry| entry.node),
                now.as_ref().map(|entry| entry.node.clone()),
            );
            if self.scan.report == Report::Changes && nodes.0 != nodes.1 {
                lock(&self.changes).push(Change {
                    path: Bytes::join(&job.path, &name),
                    before: nodes.0,
                    after: nodes.1,
                });
            }
            update.push((name, now));
        }
        if !update.is_empty() {
            lock(&self.draft).names(Arc::clone(&job.path), update);
        }
        Ok(())
    }

    /// Returns the state of one name.
    fn name(
        &self,
        job: &Job,
        look: &Look,
        handle: BorrowedFd<'_>,
        name: &[u8],
        was: Option<&Entry>,
    ) -> io::Result<Option<Entry>> {
        let Ok(text) = CString::new(name) else {
            return Ok(None);
        };
        let Some((stat, added)) = stamp(&job.path, handle, &text, self.scan.watch)? else {
            return Ok(None);
        };
        if added != Added::Known {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
        if let Some(was) = was.filter(|was| was.stat == stat) {
            return Ok(Some(was.clone()));
        }
        if was.is_none() {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
        let node = self.node(job, handle, name, &stat, was)?;
        Ok(node.map(|(stat, node)| Entry {
            name: Box::from(name),
            stat: look.settled(stat),
            node,
        }))
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
                if stat.size > self.scan.tree.limits.file {
                    return Ok(Some((*stat, skipped(Skip::Large, stat))));
                }
                let known = was.and_then(|was| match &was.node {
                    Node::File { digest, size, .. } => Some((digest, *size)),
                    _ => None,
                });
                if !self.spend(job, stat.size.saturating_sub(known.map_or(0, |(_, size)| size))) {
                    return Ok(Some((*stat, skipped(Skip::Full, stat))));
                }
                self.scan.tree.read(
                    folder,
                    os_name,
                    Keep::Unless(known.map(|(digest, _): (&Digest, u64)| digest)),
                )
            }
            _ => Ok(Some((*stat, skipped(Skip::Special, stat)))),
        }
    }
}
