//! The index of a workspace while sessions use it: loaded once, brought up to date in the background.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use windlass_sandbox::folder::stamp_time;

use crate::index::{Index, IndexChanges, IndexedFolder};
use crate::store::{self, StoredIndexError};
use crate::walk;

/// Size from which an index is not written after every change, in bytes.
const LARGE: usize = 24 << 20;

/// Time for which a look at the whole workspace counts, as long as changes are reported, in nanoseconds.
const FRESH: i64 = 10_000_000_000;
/// Number of reported changes from which the whole workspace is looked at.
const MANY: usize = 500;

/// The index of a workspace. Clones share it; background work stops when the last one is gone.
#[derive(Clone)]
pub struct CodeIndex(Arc<Shared>);

struct Shared {
    folder: IndexedFolder,
    /// The stored index.
    file: PathBuf,
    state: Arc<Mutex<State>>,
    progress: watch::Sender<IndexProgress>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    index: Option<Arc<Index>>,
    is_loaded: bool,
    is_running: bool,
    /// Number of updates that were requested so far. An update serves all requests before its start.
    requested: u32,
    /// True if the stored index is older.
    is_dirty: bool,
    notices: Vec<String>,
    was_partial: bool,
    open: OpenChanges,
}

/// Changes that the index does not have yet.
struct OpenChanges {
    /// Paths that were reported.
    paths: BTreeSet<String>,
    /// True if the whole workspace has to be looked at.
    is_unsure: bool,
    /// Start of the last look at the whole workspace, and the time for which it counts.
    looked: Option<i64>,
    fresh: i64,
}

impl Default for OpenChanges {
    fn default() -> Self {
        Self {
            paths: BTreeSet::new(),
            is_unsure: false,
            looked: None,
            fresh: FRESH,
        }
    }
}

impl OpenChanges {
    /// Takes the reported paths if they are all that changed since the last look.
    fn take(&mut self) -> Option<BTreeSet<String>> {
        let paths = std::mem::take(&mut self.paths);
        let is_unsure = std::mem::take(&mut self.is_unsure);
        let now = stamp_time();
        let is_fresh = self
            .looked
            .is_some_and(|looked| (0..self.fresh).contains(&now.saturating_sub(looked)));
        let is_rule = |path: &String| path.ends_with("ignore");
        let is_known = !is_unsure && is_fresh && paths.len() < MANY && !paths.iter().any(is_rule);
        if !is_known {
            self.looked = Some(now);
        }
        is_known.then_some(paths)
    }
}

/// Progress of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexProgress {
    /// Nothing is known yet.
    Starting,
    /// The stored index is loaded; it may be out of date.
    Loaded,
    /// An update is complete that started after the request with this number.
    Updated(u32),
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl CodeIndex {
    /// Creates the index of a folder; `file` stores it. Nothing is read yet.
    pub fn new(folder: IndexedFolder, file: PathBuf) -> Self {
        let (progress, _) = watch::channel(IndexProgress::Starting);
        Self(Arc::new(Shared {
            folder,
            file,
            state: Arc::default(),
            progress,
            stop: Arc::default(),
        }))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &IndexedFolder {
        &self.0.folder
    }

    /// Returns the file that stores the index.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Returns the index as of the last update, if there is one.
    pub fn current(&self) -> Option<Arc<Index>> {
        self.state().index.clone()
    }

    /// Takes the notices for the user: a damaged index, a workspace that is too large.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notices)
    }

    /// Starts an update in the background, or another one after the one that runs.
    pub fn refresh(&self) {
        self.refresh_if(0);
    }

    /// Like [`Self::refresh`], but a workspace without an index gets none if it has at most `least` files.
    pub fn refresh_if(&self, least: usize) {
        // Others may have changed anything in the meantime.
        self.state().open.is_unsure = true;
        self.request(least);
    }

    /// Takes the paths below the folder that somebody changed, and updates the index in the background if there is one.
    /// `None` stands for changes that are not known.
    pub fn report(&self, paths: Option<Vec<PathBuf>>) {
        let mut state = self.state();
        match paths {
            // A name that is not text is in no index.
            Some(paths) => {
                let paths = paths.iter().filter_map(|path| path.to_str());
                state.open.paths.extend(paths.map(str::to_owned));
            }
            None => state.open.is_unsure = true,
        }
        let is_open = state.open.is_unsure || !state.open.paths.is_empty();
        let is_used = state.index.is_some();
        drop(state);
        if is_open && is_used {
            self.request(0);
        }
    }

    /// Requests an update and returns the number of the request.
    fn request(&self, least: usize) -> u32 {
        let mut state = self.state();
        state.requested = state.requested.saturating_add(1);
        let request = state.requested;
        if !std::mem::replace(&mut state.is_running, true) {
            drop(state);
            let worker = Worker::of(&self.0);
            tokio::task::spawn_blocking(move || worker.run(least, request));
        }
        request
    }

    /// Waits until an index is loaded or built, at most for `limit`.
    pub async fn ready(&self, limit: Duration) {
        self.wait(limit, |progress| progress >= IndexProgress::Loaded)
            .await;
    }

    /// Brings the index up to date and waits for it, at most for `limit`. Returns false if that was too short.
    pub async fn up_to_date(&self, limit: Duration) -> bool {
        let request = self.request(0);
        self.wait(limit, |progress| progress >= IndexProgress::Updated(request))
            .await
    }

    async fn wait(&self, limit: Duration, is_enough: impl Fn(IndexProgress) -> bool) -> bool {
        let mut progress = self.0.progress.subscribe();
        let waiting = progress.wait_for(|now| is_enough(*now));
        tokio::time::timeout(limit, waiting)
            .await
            .is_ok_and(|waited| waited.is_ok())
    }

    /// Loads the index, brings it up to date and stores it, on this thread.
    pub fn update_now(&self) -> Option<IndexChanges> {
        let worker = Worker::of(&self.0);
        worker.load();
        self.state().open.is_unsure = true;
        let request = self.state().requested;
        worker.update(request)
    }

    /// Stops background work and stores what has not been stored yet.
    pub fn save(&self) {
        Worker::of(&self.0).save();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts that background work needs. It does not keep the index alive.
struct Worker {
    folder: IndexedFolder,
    file: PathBuf,
    state: Arc<Mutex<State>>,
    progress: watch::Sender<IndexProgress>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn of(shared: &Shared) -> Self {
        Self {
            folder: shared.folder.clone(),
            file: shared.file.clone(),
            state: Arc::clone(&shared.state),
            progress: shared.progress.clone(),
            stop: Arc::clone(&shared.stop),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves requests until there is no new one. `request` is the first.
    fn run(&self, least: usize, mut request: u32) {
        self.load();
        let is_too_small = least > 0 && self.state().index.is_none() && !self.has_more_than(least);
        if is_too_small {
            match self.next_after(request) {
                Some(next) => request = next,
                None => return,
            }
        }
        loop {
            self.update(request);
            match self.next_after(request) {
                Some(next) => request = next,
                None => return,
            }
        }
    }

    /// Returns the number of the latest request if it came after `request`; otherwise this worker has ended.
    fn next_after(&self, request: u32) -> Option<u32> {
        let mut state = self.state();
        let is_over = state.requested == request || self.stop.load(Ordering::Relaxed);
        state.is_running = !is_over;
        (!is_over).then_some(state.requested)
    }

    fn has_more_than(&self, least: usize) -> bool {
        let folder = IndexedFolder {
            max_files: least,
            ..self.folder.clone()
        };
        walk::files(&folder, &self.stop).is_some_and(|walked| walked.is_partial)
    }

    /// Reads the stored index, the first time.
    fn load(&self) {
        if self.state().is_loaded {
            return;
        }
        let loaded = store::load(&self.file, &self.folder.root);
        let mut state = self.state();
        state.is_loaded = true;
        match loaded {
            Ok(index) => {
                state.index = Some(Arc::new(index));
                drop(state);
                self.progress.send_if_modified(|now| {
                    let is_news = *now < IndexProgress::Loaded;
                    *now = (*now).max(IndexProgress::Loaded);
                    is_news
                });
            }
            Err(StoredIndexError::Missing | StoredIndexError::Version) => {}
            Err(error) => state.notices.push(format!(
                "the code index {} could not be used ({error}); it is built again",
                self.file.display()
            )),
        }
    }

    fn update(&self, request: u32) -> Option<IndexChanges> {
        let (old, paths) = {
            let mut state = self.state();
            let paths = state.open.take().filter(|_| state.index.is_some());
            (state.index.clone().unwrap_or_default(), paths)
        };
        let (index, changes) = match paths {
            Some(paths) if paths.is_empty() => {
                self.progress
                    .send_modify(|now| *now = (*now).max(IndexProgress::Updated(request)));
                return Some(IndexChanges::default());
            }
            Some(paths) => old.updated_at(&self.folder, &paths, &self.stop)?,
            None => old.updated(&self.folder, &self.stop)?,
        };
        let is_large = index.size().bytes > LARGE;
        let is_first = old.files() == 0;
        let mut state = self.state();
        if index.is_partial && !state.was_partial {
            state.was_partial = true;
            state.notices.push(format!(
                "the code index covers {} files of {}; there are more (code.max_files)",
                index.files(),
                self.folder.root.display()
            ));
        }
        state.index = Some(Arc::new(index));
        state.is_dirty |= changes.is_stale || is_first;
        drop(state);
        self.progress
            .send_modify(|now| *now = (*now).max(IndexProgress::Updated(request)));
        if !is_large || is_first || changes.read > 100 {
            self.save();
        }
        Some(changes)
    }

    fn save(&self) {
        let mut state = self.state();
        if !std::mem::take(&mut state.is_dirty) {
            return;
        }
        let Some(index) = state.index.clone() else { return };
        drop(state);
        let is_new = !self.file.exists();
        if let Err(error) = store::save(&index, &self.file, &self.folder.root) {
            tracing::debug!(%error, file = %self.file.display(), "the code index was not stored");
        } else if is_new && let Some(folder) = self.file.parent() {
            store::remove_abandoned(folder);
        }
    }
}

/// The indexes of a process, so that sessions of one folder share theirs.
#[derive(Default)]
pub struct CodeIndexes(Mutex<Vec<(IndexKey, std::sync::Weak<Shared>)>>);

/// Folder and denied paths of an index.
type IndexKey = (PathBuf, Vec<PathBuf>);

impl CodeIndexes {
    /// Returns the index of a folder, which another session may already use. `denied` tells sessions with other rules
    /// apart.
    pub fn share(&self, folder: IndexedFolder, denied: &[PathBuf], file: PathBuf) -> CodeIndex {
        let key = (folder.root.clone(), denied.to_vec());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, shared)| shared.strong_count() > 0);
        let shared = known.iter().find(|(known, _)| *known == key);
        if let Some(shared) = shared.and_then(|(_, shared)| shared.upgrade()) {
            return CodeIndex(shared);
        }
        let index = CodeIndex::new(folder, file);
        known.push((key, Arc::downgrade(&index.0)));
        index
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use windlass_sandbox::Roots;

    use super::*;

    /// A loaded machine takes its time.
    const LIMIT: Duration = Duration::from_secs(120);

    /// MEM-9: changes that are reported are read without a look at the rest of the folder; ignored files stay out, files
    /// that are gone go, and changes that are not known lead to a look at everything.
    #[tokio::test]
    async fn reported_changes_need_no_look_at_the_rest() {
        let place = tempfile::tempdir().expect("created");
        let root = fs::canonicalize(place.path()).expect("exists");
        let write = |path: &str| fs::write(root.join(path), "def f(): pass\n").expect("written");
        fs::create_dir_all(root.join("src/build")).expect("created");
        fs::write(root.join(".gitignore"), "build/\n").expect("written");
        write("src/old.py");
        let folder = IndexedFolder {
            files: Arc::new(Roots::new(std::slice::from_ref(&root), &[".env".into()]).expect("opens")),
            root: root.clone(),
            max_files: 100,
        };
        let index = CodeIndex::new(folder, root.join(".index"));
        let paths = || -> Vec<String> {
            let index = index.current().expect("built");
            index
                .paths()
                .filter(|path| path.ends_with(".py"))
                .map(str::to_owned)
                .collect()
        };
        index.state().open.fresh = i64::MAX;
        assert!(index.up_to_date(LIMIT).await);
        assert_eq!(paths(), ["src/old.py"]);
        for path in ["src/unseen.py", "src/new.py", "src/build/made.py", ".env"] {
            write(path);
        }
        fs::remove_file(root.join("src/old.py")).expect("removed");
        let reported = [
            "src/new.py",
            "src/build/made.py",
            "src/old.py",
            ".env",
            "src/never.py",
        ];
        index.report(Some(reported.iter().map(PathBuf::from).collect()));
        assert!(index.up_to_date(LIMIT).await);
        assert_eq!(paths(), ["src/new.py"]);
        index.report(None);
        assert!(index.up_to_date(LIMIT).await);
        assert_eq!(paths(), ["src/new.py", "src/unseen.py"]);
        fs::write(root.join(".gitignore"), "").expect("written");
        index.report(Some(vec![PathBuf::from(".gitignore")]));
        assert!(index.up_to_date(LIMIT).await);
        assert_eq!(paths(), ["src/build/made.py", "src/new.py", "src/unseen.py"]);
    }
}
