//! The files of a workspace: all that are neither ignored nor denied.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder, WalkState};

use windlass_sandbox::{can_read_ignore_files, can_read_ignore_files_above};

use crate::index::IndexedFolder;
use crate::record::Stamp;

/// Files that a walk found.
pub(crate) struct Walked {
    pub(crate) files: Vec<(String, Stamp)>,
    /// True if there are more.
    pub(crate) is_partial: bool,
}

/// Lists the files. Ignore files in the workspace and above it count, not the user's own. Returns `None` when `stop`
/// is set.
pub(crate) fn files(folder: &IndexedFolder, stop: &AtomicBool) -> Option<Walked> {
    walked(folder, None, stop)
}

/// Lists those of the given files that exist and are neither ignored nor denied. Only the folders that lead to them are
/// read.
pub(crate) fn files_at(
    folder: &IndexedFolder,
    paths: &BTreeSet<String>,
    stop: &AtomicBool,
) -> Option<Walked> {
    let mut wanted: HashSet<PathBuf> = HashSet::new();
    for path in paths {
        let ways = Path::new(path).ancestors();
        wanted.extend(ways.map(|way| folder.root.join(way)));
    }
    wanted.insert(folder.root.clone());
    walked(folder, Some(wanted), stop)
}

fn walked(folder: &IndexedFolder, wanted: Option<HashSet<PathBuf>>, stop: &AtomicBool) -> Option<Walked> {
    let found = Mutex::new(Vec::new());
    let count = AtomicUsize::new(0);
    let denied = folder.files.denied_inside(&folder.root);
    let roots = Arc::clone(&folder.files);
    let threads = match wanted {
        Some(_) => 1,
        None => std::thread::available_parallelism().map_or(1, usize::from).min(4),
    };
    let readable = can_read_ignore_files_above(&folder.root);
    let walk = WalkBuilder::new(&folder.root)
        .hidden(false)
        .git_ignore(readable)
        .git_exclude(readable)
        .ignore(readable)
        .parents(readable)
        .git_global(false)
        .require_git(false)
        .threads(threads)
        .filter_entry(move |entry| {
            let name = entry.file_name();
            let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
            (name != ".git" || entry.depth() == 0)
                && !roots.denies_name(name)
                && !denied.iter().any(|path| entry.path() == path)
                && wanted.as_ref().is_none_or(|wanted| wanted.contains(entry.path()))
                && (!is_folder || can_read_ignore_files(entry.path()))
        })
        .build_parallel();
    walk.run(|| {
        let mut mine = Batch {
            all: &found,
            files: Vec::new(),
        };
        let (count, folder) = (&count, folder);
        Box::new(move |entry| {
            if stop.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let Some(file) = entry.ok().and_then(|entry| file(folder, &entry)) else {
                return WalkState::Continue;
            };
            if count.fetch_add(1, Ordering::Relaxed) >= folder.max_files {
                return WalkState::Quit;
            }
            mine.files.push(file);
            WalkState::Continue
        })
    });
    let files = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_partial = count.into_inner() > folder.max_files;
    (!stop.load(Ordering::Relaxed)).then_some(Walked { files, is_partial })
}

/// The files that one thread found; they join the others when the thread ends.
struct Batch<'a> {
    all: &'a Mutex<Vec<(String, Stamp)>>,
    files: Vec<(String, Stamp)>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut self.files);
    }
}

/// Returns the path and the stamp of a regular file whose name is text.
fn file(folder: &IndexedFolder, entry: &DirEntry) -> Option<(String, Stamp)> {
    if !entry.file_type()?.is_file() {
        return None;
    }
    let below = entry.path().strip_prefix(&folder.root).ok()?.to_str()?;
    let is_printable = !below.is_empty() && !below.chars().any(char::is_control);
    let data = entry.metadata().ok().filter(|_| is_printable)?;
    let nanos = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    let stamp = Stamp {
        size: data.len(),
        modified: nanos(data.mtime(), data.mtime_nsec()),
        changed: nanos(data.ctime(), data.ctime_nsec()),
        inode: data.ino(),
    };
    Some((below.to_owned(), stamp))
}
