use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use windlass_sandbox::Roots;

use super::*;

fn folder(root: &Path) -> IndexedFolder {
    let root = fs::canonicalize(root).expect("exists");
    let files = Roots::new(
        std::slice::from_ref(&root),
        &[".env*".into(), root.join("private")],
    )
    .expect("opens");
    IndexedFolder {
        root,
        files: Arc::new(files),
        max_files: 1_000,
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("has one")).expect("created");
    fs::write(path, text).expect("written");
}

fn go() -> AtomicBool {
    AtomicBool::new(false)
}

fn sample(root: &Path) {
    write(root, ".gitignore", "build/\n");
    write(root, "build/out.py", "def retry_policy(): pass\n");
    write(root, ".env", "RETRY_POLICY=secret\n");
    write(root, "private/notes.py", "retry_policy = 1\n");
    write(
        root,
        "src/net/retry.py",
        "class RetryPolicy:\n    def next_delay(self, attempt):\n        return 2 ** attempt\n",
    );
    write(
        root,
        "src/shop/cart.py",
        "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    );
    write(
        root,
        "tests/test_retry.py",
        "def test_retry_policy():\n    assert RetryPolicy().next_delay(1) == 2\n",
    );
    write(
        root,
        "README.md",
        "# A shop\n\nRetries have a policy with a delay.\n",
    );
}

/// MEM-9: ignored and denied files are in no index, and the file that fits comes first.
#[test]
fn the_index_has_every_file_but_ignored_and_denied_ones() {
    let place = tempfile::tempdir().expect("created");
    sample(place.path());
    let folder = folder(place.path());
    let (index, changes) = Index::default().updated(&folder, &go()).expect("not stopped");
    let paths: Vec<&str> = index.paths().collect();
    assert_eq!(
        paths,
        [
            ".gitignore",
            "README.md",
            "src/net/retry.py",
            "src/shop/cart.py",
            "tests/test_retry.py"
        ]
    );
    assert_eq!((changes.read, changes.removed), (5, 0));
    let found = index.search(
        "which delay does the retry policy use?",
        3,
        &SearchScope::default(),
    );
    assert_eq!(
        found.files.first().map(|file| file.path.as_str()),
        Some("src/net/retry.py")
    );
    let lines = shown_text(&index.best_lines(&folder, &found, 10));
    assert!(lines.contains("2:     def next_delay(self, attempt):"), "{lines}");
    let map = index.map(&folder, &found, 4_000).expect("a map");
    assert!(
        map.starts_with("src/net/retry.py\n  1: class RetryPolicy:\n"),
        "{map}"
    );
    assert_eq!(
        index.map(
            &folder,
            &index.search("yes, go on", 3, &SearchScope::default()),
            4_000
        ),
        None
    );
}

/// MEM-9: of the files in a traceback, the one in which the error was raised comes first.
#[test]
fn the_end_of_a_traceback_counts_most() {
    let place = tempfile::tempdir().expect("created");
    let (caller, raiser) = ("src/net/dial.py", "src/shop/till.py");
    for path in [caller, raiser] {
        write(place.path(), path, "def call():\n    pass\n");
    }
    let (index, _) = Index::default()
        .updated(&folder(place.path()), &go())
        .expect("not stopped");
    let first = |paths: [&str; 2]| {
        let frames: String = paths
            .iter()
            .map(|path| format!("  File \"/home/me/{path}\", line 2, in call\n"))
            .collect();
        let text = format!("It fails\n\nTraceback (most recent call last):\n{frames}");
        let found = index.search(&text, 3, &SearchScope::default());
        found.files.first().map(|file| file.path.clone())
    };
    assert_eq!(first([caller, raiser]).as_deref(), Some(raiser));
    assert_eq!(first([raiser, caller]).as_deref(), Some(caller));
}

/// MEM-9: an update reads only what changed, and forgets what is gone.
#[test]
fn an_update_reads_only_what_changed() {
    let place = tempfile::tempdir().expect("created");
    sample(place.path());
    let folder = folder(place.path());
    let (index, _) = Index::default().updated(&folder, &go()).expect("not stopped");
    write(
        place.path(),
        "src/shop/cart.py",
        "class Basket:\n    def frobnicate(self):\n        pass\n",
    );
    fs::remove_file(place.path().join("README.md")).expect("removed");
    let (index, changes) = index.updated(&folder, &go()).expect("not stopped");
    assert_eq!((changes.read, changes.removed), (1, 1));
    let found = index.search("frobnicate", 3, &SearchScope::default());
    assert_eq!(
        found.files.first().map(|file| file.path.as_str()),
        Some("src/shop/cart.py")
    );
    assert_eq!(
        index.search("Cart items", 3, &SearchScope::default()).files.len(),
        1,
        "only the path"
    );
    let stopped = AtomicBool::new(true);
    assert!(index.updated(&folder, &stopped).is_none());
}

/// MEM-9: a stored index is read back; a damaged, cut or foreign one is reported once and built again.
#[test]
fn a_damaged_index_is_reported_once_and_built_again() {
    let place = tempfile::tempdir().expect("created");
    let state = tempfile::tempdir().expect("created");
    sample(place.path());
    let folder = folder(place.path());
    let file = index_file(state.path(), &folder.root);
    let open = || CodeIndex::new(folder.clone(), file.clone());
    let first = open();
    assert_eq!(first.update_now().map(|changes| changes.read), Some(5));
    assert_eq!(open().update_now().map(|changes| changes.read), Some(0));
    let whole = fs::read(&file).expect("stored");
    let mut flipped = whole.clone();
    *flipped.get_mut(whole.len() / 2).expect("long enough") ^= 0x40;
    let cut = whole.get(..whole.len() / 2).expect("shorter").to_vec();
    for damaged in [flipped, cut, b"not an index".to_vec(), Vec::new()] {
        fs::write(&file, &damaged).expect("written");
        let index = open();
        assert_eq!(index.update_now().map(|changes| changes.read), Some(5));
        let notices = index.take_notices();
        assert!(
            matches!(notices.as_slice(), [only] if only.contains("built again")),
            "{notices:?}"
        );
        assert!(index.update_now().is_some());
        assert!(index.take_notices().is_empty());
        let again = open();
        assert_eq!(again.update_now().map(|changes| changes.read), Some(0));
        assert!(again.take_notices().is_empty());
    }
}

/// MEM-9: a search that meets a look at a small workspace in progress waits for one update of its own, not for a second one
/// that never comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_during_a_look_is_served() {
    let place = tempfile::tempdir().expect("created");
    let state = tempfile::tempdir().expect("created");
    sample(place.path());
    let folder = folder(place.path());
    for number in 0..100 {
        let index = CodeIndex::new(
            folder.clone(),
            index_file(state.path(), Path::new(&number.to_string())),
        );
        index.refresh_if(200);
        let is_served = index.up_to_date(Duration::from_secs(20)).await;
        assert!(is_served, "round {number}");
    }
}

#[test]
fn a_workspace_beyond_the_limit_is_indexed_in_part_and_said_so() {
    let place = tempfile::tempdir().expect("created");
    let state = tempfile::tempdir().expect("created");
    for number in 0..20 {
        write(place.path(), &format!("f{number}.py"), "x = 1\n");
    }
    let folder = IndexedFolder {
        max_files: 7,
        ..folder(place.path())
    };
    let index = CodeIndex::new(folder.clone(), index_file(state.path(), &folder.root));
    index.update_now();
    assert_eq!(
        index.current().map(|index| (index.files(), index.is_partial())),
        Some((7, true))
    );
    assert!(index.take_notices().concat().contains("code.max_files"));
}
