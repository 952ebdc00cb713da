//! Lists the files of a folder that version control does not ignore, and works on them folder by folder.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;
use windlass_checkpoint::is_internal;
use windlass_sandbox::can_read_ignore_files;

use crate::error::{Result, WorktreeError};
use crate::node::split;

/// Maximum number of files and folders.
const ENTRIES: usize = 1_000_000;
const THREADS: usize = 4;
/// Number of files that a thread takes at once.
const PORTION: usize = 256;

/// Files, links and folders below a root, as relative paths.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) folders: Vec<Vec<u8>>,
}

impl Listing {
    /// Lists everything below `root` that is not ignored, except the state of version control and `hidden`.
    pub(crate) fn of(root: &Path, hidden: &[PathBuf], cancel: &CancellationToken) -> Result<Self> {
        let hidden = hidden.to_vec();
        let is_shown = move |entry: &DirEntry| {
            let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_internal(entry.file_name().as_bytes())
                && !hidden.iter().any(|path| path == entry.path())
                && (!is_folder || can_read_ignore_files(entry.path()))
        };
        let readable = can_read_ignore_files(root);
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .git_ignore(readable)
            .git_exclude(readable)
            .parents(false)
            .ignore(false)
            .require_git(false)
            .follow_links(false)
            .threads(threads())
            .filter_entry(is_shown)
            .build_parallel();
        let found = Mutex::new((Self::default(), None));
        walk.run(|| {
            Box::new(|entry| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                match found.0.add(root, entry, cancel) {
                    Ok(()) => WalkState::Continue,
                    Err(error) => {
                        found.1 = Some(error);
                        WalkState::Quit
                    }
                }
            })
        });
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            (_, Some(error)) => Err(error),
            (listing, None) => Ok(listing),
        }
    }

    fn add(
        &mut self,
        root: &Path,
        entry: Result<DirEntry, ignore::Error>,
        cancel: &CancellationToken,
    ) -> Result<()> {
        if cancel.is_cancelled() {
            return Err(WorktreeError::Canceled);
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.io_error().is_some_and(is_gone) => return Ok(()),
            Err(error) => {
                return Err(WorktreeError::System {
                    step: "list",
                    path: root.to_owned(),
                    source: io::Error::other(error),
                });
            }
        };
        let Ok(path) = entry.path().strip_prefix(root) else {
            return Ok(());
        };
        let path = path.as_os_str().as_bytes();
        match entry.file_type() {
            _ if path.is_empty() => {}
            Some(kind) if kind.is_dir() => self.folders.push(path.to_vec()),
            Some(kind) if kind.is_file() || kind.is_symlink() => self.files.push(path.to_vec()),
            _ => {}
        }
        if self.files.len() + self.folders.len() > ENTRIES {
            return Err(WorktreeError::TooLarge {
                path: root.to_owned(),
                limit: ENTRIES,
            });
        }
        Ok(())
    }

    /// Adds files that are known from elsewhere, with their folders. Sorts everything.
    pub(crate) fn extend<'a>(&mut self, files: impl Iterator<Item = &'a [u8]>) {
        let mut seen = HashSet::new();
        for file in files {
            self.files.push(file.to_vec());
            let mut folder = split(file).0;
            while !folder.is_empty() && seen.insert(folder) {
                self.folders.push(folder.to_vec());
                folder = split(folder).0;
            }
        }
        for list in [&mut self.files, &mut self.folders] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn threads() -> usize {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    count.min(THREADS)
}

/// Files of one folder: the folder, and the names in it.
pub(crate) struct Group<'a> {
    pub(crate) folder: &'a [u8],
    pub(crate) names: Vec<&'a [u8]>,
}

/// Calls `work` for the files of each folder, in a few threads. Returns the results in any order, or the
/// first error.
pub(crate) fn each_folder<'a, T: Send>(
    files: impl Iterator<Item = &'a [u8]>,
    cancel: &CancellationToken,
    work: impl Fn(&Group<'a>, &mut Vec<T>) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let mut folders: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for file in files {
        let (folder, name) = split(file);
        folders.entry(folder).or_default().push(name);
    }
    let groups: Vec<Group<'a>> = folders
        .into_iter()
        .flat_map(|(folder, names)| {
            let portions: Vec<_> = names.chunks(PORTION).map(<[&[u8]]>::to_vec).collect();
            portions.into_iter().map(move |names| Group { folder, names })
        })
        .collect();
    let next = AtomicUsize::new(0);
    let run = || {
        let mut results = Vec::new();
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = match cancel.is_cancelled() {
                true => Err(WorktreeError::Canceled),
                false => work(group, &mut results),
            };
            if let Err(error) = done {
                // The other threads find no more work.
                next.store(groups.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(results)
    };
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..threads()).filter_map(start).collect();
        let mut results = run();
        for other in others {
            let more = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            results = match (results, more) {
                (Ok(mut results), Ok(more)) => {
                    results.extend(more);
                    Ok(results)
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        results
    })
}
