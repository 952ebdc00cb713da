//! The state of a folder in a shared store: what goes there, and what comes back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use windlass_core::clock::SystemClock;
use windlass_core::log::{FolderRecord, KeptFor, LogError, Relocation, SharedFolders};

use super::files::Scope;
use super::node::Bytes;
use super::*;

/// A store in memory that counts what it is sent.
#[derive(Default)]
struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    contents: BTreeMap<String, Vec<u8>>,
    document: Option<String>,
    sent: Vec<Vec<u8>>,
}

impl Memory {
    fn sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap().sent)
    }

    fn has(&self, part: &[u8]) -> bool {
        let kept = self.0.lock().unwrap();
        let has = |content: &Vec<u8>| content.windows(part.len()).any(|window| window == part);
        kept.contents.values().any(has)
    }
}

#[async_trait]
impl SharedFolders for Memory {
    async fn keep(&self, _: &KeptFor, addresses: &[String]) -> Result<Vec<String>, LogError> {
        let kept = self.0.lock().unwrap();
        let missing = addresses
            .iter()
            .filter(|address| !kept.contents.contains_key(*address));
        Ok(missing.cloned().collect())
    }

    async fn put(&self, _: &KeptFor, contents: Vec<(String, Vec<u8>)>) -> Result<(), LogError> {
        let mut kept = self.0.lock().unwrap();
        for (address, content) in contents {
            kept.sent.push(content.clone());
            kept.contents.insert(address, content);
        }
        Ok(())
    }

    async fn describe(&self, record: FolderRecord) -> Result<(), LogError> {
        self.0.lock().unwrap().document = Some(record.document);
        Ok(())
    }

    async fn description(&self, _: &SessionId) -> Result<Option<String>, LogError> {
        Ok(self.0.lock().unwrap().document.clone())
    }

    async fn contents(&self, addresses: &[String]) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let kept = self.0.lock().unwrap();
        let found = addresses.iter().filter_map(|address| {
            let content = kept.contents.get(address)?;
            Some((address.clone(), content.clone()))
        });
        Ok(found.collect())
    }

    async fn relocate(&self, _: Relocation) -> Result<(), LogError> {
        Ok(())
    }
}

struct Bed {
    here: tempfile::TempDir,
    there: tempfile::TempDir,
    store: Arc<Memory>,
}

impl Bed {
    fn new() -> Self {
        Self {
            here: tempfile::tempdir().unwrap(),
            there: tempfile::tempdir().unwrap(),
            store: Arc::default(),
        }
    }

    fn root(&self) -> PathBuf {
        let root = self.here.path().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::canonicalize(root).unwrap()
    }

    fn target(&self) -> PathBuf {
        fs::canonicalize(self.there.path()).unwrap().join("project")
    }

    fn tracker(&self, limits: CheckpointLimits) -> Tracker {
        let denied = vec![PathBuf::from(".env*"), self.root().join("secret")];
        let workspace = Workspace::new(&self.root(), None)
            .limited(&[self.root()], &denied)
            .unwrap();
        let data = self.here.path().join("data");
        let clock = Arc::new(SystemClock::default());
        let tracker = Tracker::new(&workspace, &data, &"s-1".into(), clock, limits);
        tracker.share(Sharing {
            store: Arc::clone(&self.store) as _,
            session: "s-1".into(),
            owner: "a".to_owned(),
            machine: "here".to_owned(),
        });
        tracker
    }

    fn rebuild(&self) -> Rebuild {
        Rebuild {
            store: Arc::clone(&self.store) as _,
            session: "s-1".into(),
            data: self.there.path().join("data"),
        }
    }
}

/// Describes the state after the last call, as it is done in the background.
async fn stored(tracker: &Tracker) {
    tracker.0.save(share::Freshness::Recorded).await.unwrap();
}

async fn begin(tracker: &Tracker) {
    tracker.begin_turn("m".into(), "go".to_owned()).await;
}

fn command(tracker: &Tracker, act: impl FnOnce()) {
    tracker.0.begin("bash", &Scope::Everything).unwrap();
    act();
    tracker.0.end("bash", None).unwrap();
}

fn edit(tracker: &Tracker, path: &str, act: impl FnOnce()) {
    let scope = Scope::Paths(vec![Bytes(path.as_bytes().to_vec())]);
    let paths = tracker.0.begin("write_file", &scope).unwrap();
    act();
    tracker.0.end("write_file", paths).unwrap();
}

/// Returns each path below a folder with its kind, mode and content.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    fn collect(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            let mode = data.permissions().mode() & 0o7777;
            let text = if data.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if data.is_dir() {
                collect(root, &path, all);
                format!("folder {mode:o}")
            } else {
                format!("file {mode:o} {:?}", fs::read(&path).unwrap())
            };
            all.insert(path.strip_prefix(root).unwrap().to_owned(), text);
        }
    }
    let mut all = BTreeMap::new();
    collect(root, root, &mut all);
    all
}

/// DIST-5: a folder comes back as it was after the last call, whether a command or a file tool made the change: contents,
/// modes, links, empty and read-only folders. What may not be accessed never reaches the store, and is named.
#[tokio::test]
async fn a_folder_comes_back_elsewhere() {
    let bed = Bed::new();
    let root = bed.root();
    fs::write(root.join(".env"), "TOPSECRET").unwrap();
    fs::create_dir_all(root.join("secret")).unwrap();
    fs::write(root.join("secret/key"), "TOPSECRET").unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "ref").unwrap();
    fs::write(root.join("big.bin"), vec![b'x'; 3_000]).unwrap();
    let tracker = bed.tracker(CheckpointLimits {
        file: 2_000,
        ..CheckpointLimits::default()
    });
    begin(&tracker).await;
    command(&tracker, || {
        fs::create_dir_all(root.join("a/empty")).unwrap();
        fs::write(root.join("a/run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(root.join("a/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a/run.sh", root.join("run")).unwrap();
        fs::create_dir_all(root.join("closed")).unwrap();
        fs::write(root.join("closed/inner"), "inner").unwrap();
        fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    });
    edit(&tracker, "new/deep/b.txt", || {
        fs::create_dir_all(root.join("new/deep")).unwrap();
        fs::write(root.join("new/deep/b.txt"), "by a tool").unwrap();
    });
    stored(&tracker).await;
    edit(&tracker, "new/deep/b.txt", || {
        fs::write(root.join("new/deep/b.txt"), "by a tool, again").unwrap();
    });
    edit(&tracker, "a/run.sh", || {
        fs::remove_file(root.join("a/run.sh")).unwrap();
    });
    stored(&tracker).await;
    assert!(!bed.store.has(b"TOPSECRET"));
    assert!(bed.store.has(b"by a tool, again"));
    let built = bed.rebuild().run(&bed.target()).await.unwrap();
    let mut expected = tree(&root);
    expected.retain(|path, _| {
        !["big.bin", ".env", "secret", ".git"]
            .iter()
            .any(|left| path.starts_with(left))
    });
    assert_eq!(tree(&bed.target()), expected);
    assert_eq!(built.after.as_deref(), Some("write_file"));
    // What was changed by hand since the last call comes with the next look.
    fs::write(root.join("by-hand"), "by hand").unwrap();
    stored(&tracker).await;
    assert!(!bed.store.has(b"by hand"));
    tracker.save().await.unwrap();
    assert!(bed.store.has(b"by hand"));
    assert_eq!(built.files, 2);
    let left = built.left.join("\n");
    for named in [
        "big.bin: larger than the limit for one file",
        ".env: tools may not access it",
        "secret: tools may not access it",
        ".git: the state of version control is never stored",
    ] {
        assert!(left.contains(named), "{named}: {left}");
    }
}

/// DIST-5: after the first time, only what changed is sent, and nothing if nothing changed.
#[tokio::test]
async fn only_changes_are_sent() {
    let bed = Bed::new();
    let root = bed.root();
    for number in 0..2_000 {
        let folder = root.join(format!("d{}", number % 100));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{number}")), format!("content {number}")).unwrap();
    }
    let tracker = bed.tracker(CheckpointLimits::default());
    begin(&tracker).await;
    command(&tracker, || fs::write(root.join("d1/f1"), "first").unwrap());
    stored(&tracker).await;
    let all: usize = bed.store.sent().iter().map(Vec::len).sum();
    stored(&tracker).await;
    assert!(bed.store.sent().is_empty(), "nothing changed");
    command(&tracker, || fs::write(root.join("d7/f7"), "second").unwrap());
    stored(&tracker).await;
    let sent = bed.store.sent();
    let changed: usize = sent.iter().map(Vec::len).sum();
    assert!(sent.contains(&b"second".to_vec()));
    // The content, the part of the index with its folder, and the last piece of the journal.
    assert_eq!(sent.len(), 3);
    assert!(changed * 10 < all, "{changed} of {all} bytes");
    // Another process sends only what is not there.
    drop(tracker);
    let tracker = bed.tracker(CheckpointLimits::default());
    begin(&tracker).await;
    command(&tracker, || fs::write(root.join("d8/f8"), "third").unwrap());
    stored(&tracker).await;
    assert_eq!(bed.store.sent().len(), 3);
}

/// DIST-5: turns are undone and done again where the folder was rebuilt, also those before the last one.
#[tokio::test]
async fn turns_are_undone_elsewhere() {
    let bed = Bed::new();
    let root = bed.root();
    fs::write(root.join("a.txt"), "one").unwrap();
    let tracker = bed.tracker(CheckpointLimits::default());
    begin(&tracker).await;
    command(&tracker, || fs::write(root.join("a.txt"), "two").unwrap());
    begin(&tracker).await;
    edit(&tracker, "a.txt", || {
        fs::write(root.join("a.txt"), "three").unwrap();
    });
    stored(&tracker).await;
    drop(tracker);
    fs::remove_dir_all(&root).unwrap();
    bed.rebuild().run(&bed.target()).await.unwrap();
    let workspace = Workspace::new(&bed.target(), None);
    let (data, clock) = (bed.there.path().join("data"), Arc::new(SystemClock::default()));
    let tracker = Tracker::new(
        &workspace,
        &data,
        &"s-1".into(),
        clock,
        CheckpointLimits::default(),
    );
    let read = || fs::read_to_string(bed.target().join("a.txt")).unwrap();
    assert_eq!(read(), "three");
    tracker.rewind(2, Force::Never).await.unwrap();
    assert_eq!(read(), "two");
    tracker.rewind(1, Force::Never).await.unwrap();
    assert_eq!(read(), "one");
    tracker.redo(Force::Never).await.unwrap();
    tracker.redo(Force::Never).await.unwrap();
    assert_eq!(read(), "three");
}

/// DIST-5: files that are there are never touched; an empty folder is used, and so is a complete one that an interrupted
/// attempt left. What an attempt left unfinished is removed.
#[tokio::test]
async fn what_is_there_is_kept() {
    let bed = Bed::new();
    let root = bed.root();
    let tracker = bed.tracker(CheckpointLimits::default());
    begin(&tracker).await;
    command(&tracker, || fs::write(root.join("a.txt"), "one").unwrap());
    let target = bed.target();
    let missing = bed.rebuild().run(&target).await.unwrap_err();
    assert!(matches!(missing, RebuildError::Missing), "{missing}");
    stored(&tracker).await;
    fs::create_dir(&target).unwrap();
    for (name, content) in [("b.txt", "foreign"), ("a.txt", "foreign")] {
        fs::write(target.join(name), content).unwrap();
        let taken = bed.rebuild().run(&target).await.unwrap_err();
        assert!(
            matches!(&taken, RebuildError::Taken(path) if *path == target),
            "{taken}"
        );
        assert_eq!(fs::read_to_string(target.join(name)).unwrap(), content);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
        fs::remove_file(target.join(name)).unwrap();
    }
    // As if a process had been killed while it made the folder.
    let unfinished = bed.rebuild().begin(&target).unwrap();
    fs::write(unfinished.join("a.txt"), "hal").unwrap();
    sweep(&bed.there.path().join("data"));
    assert!(!unfinished.exists());
    let unfinished = bed.rebuild().begin(&target).unwrap();
    fs::write(unfinished.join("c.txt"), "hal").unwrap();
    assert!(bed.rebuild().run(&target).await.unwrap().is_new);
    assert!(!unfinished.exists());
    let again = bed.rebuild().run(&target).await.unwrap();
    assert!(!again.is_new);
    assert_eq!(tree(&target), tree(&root));
    bed.rebuild().discard(&again).await;
    assert!(target.exists(), "a folder that was there is not removed");
}

/// DIST-5: a store that takes its time delays no call.
#[tokio::test]
async fn calls_do_not_wait_for_the_store() {
    let bed = Bed::new();
    let root = bed.root();
    let tracker = bed.tracker(CheckpointLimits::default());
    begin(&tracker).await;
    command(&tracker, || fs::write(root.join("a.txt"), "one").unwrap());
    // The store does not answer while this is held.
    let silent = bed.store.0.lock().unwrap();
    let worker = std::thread::spawn({
        let tracker = tracker.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(tracker.save())
        }
    });
    command(&tracker, || fs::write(root.join("a.txt"), "two").unwrap());
    edit(&tracker, "b.txt", || {
        fs::write(root.join("b.txt"), "three").unwrap();
    });
    drop(silent);
    worker.join().unwrap().unwrap();
    stored(&tracker).await;
    bed.rebuild().run(&bed.target()).await.unwrap();
    assert_eq!(tree(&bed.target()), tree(&root));
}
