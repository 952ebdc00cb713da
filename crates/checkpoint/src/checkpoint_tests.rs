//! Tests that files are restored exactly, whatever changed them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use windlass_core::checkpoint::{Changed, WHOLE_SESSION};
use windlass_core::clock::SystemClock;
use windlass_core::hook::{AdmittedCall, CallHook};
use windlass_core::tool::{
    CallModel, Category, Person, Prepared, Progress, ToolContext, ToolError, ToolOutput,
};

use super::files::Scope;
use super::journal::Record;
use super::node::Bytes;
use super::*;

#[path = "closed_folder_tests.rs"]
mod closed_folders;

struct Case {
    workspace: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self {
            workspace: tempfile::tempdir().unwrap(),
            data: tempfile::tempdir().unwrap(),
        }
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.workspace.path()).unwrap()
    }

    fn tracker(&self) -> Tracker {
        self.limited(CheckpointLimits::default())
    }

    fn limited(&self, limits: CheckpointLimits) -> Tracker {
        let workspace = Workspace::new(&self.root(), None);
        let clock = Arc::new(SystemClock::default());
        Tracker::new(&workspace, self.data.path(), &"s-1".into(), clock, limits)
    }

    /// Runs one turn: each step is a call that may do anything.
    fn turn(&self, tracker: &Tracker, steps: &[&dyn Fn(&Path)]) {
        begin(tracker);
        for step in steps {
            tracker.0.begin("bash", &Scope::Everything).unwrap();
            step(&self.root());
            tracker.0.end("bash", None).unwrap();
        }
    }

    fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        collect(&self.root(), &mut all);
        all
    }
}

fn begin(tracker: &Tracker) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(tracker.begin_turn("m".into(), "do it".to_owned()));
}

fn collect(folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        let mode = data.permissions().mode() & 0o7777;
        let text = if data.is_symlink() {
            format!("link {}", fs::read_link(&path).unwrap().display())
        } else if data.is_dir() {
            collect(&path, all);
            format!("folder {mode:o}")
        } else {
            format!("file {mode:o} {:?}", fs::read(&path).unwrap())
        };
        all.insert(path, text);
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Write(String, Vec<u8>),
    Remove(String),
    Rename(String, String),
    Folder(String),
    Mode(String, u32),
    Link(String, String),
}

impl Deed {
    /// Performs the action if possible; an action that is impossible changes nothing.
    fn act(&self, root: &Path) {
        match self {
            Self::Write(path, content) => drop(fs::write(root.join(path), content)),
            Self::Remove(path) => {
                let path = root.join(path);
                let is_folder = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
                let _ = if is_folder {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
            }
            Self::Rename(from, to) => drop(fs::rename(root.join(from), root.join(to))),
            Self::Folder(path) => drop(fs::create_dir(root.join(path))),
            Self::Mode(path, mode) => {
                let path = root.join(path);
                if let Ok(data) = fs::symlink_metadata(&path)
                    && !data.is_symlink()
                {
                    // Without these, only root could compare what is in a folder.
                    let needed = if data.is_dir() && data.uid() != 0 {
                        0o500
                    } else {
                        0
                    };
                    drop(fs::set_permissions(
                        path,
                        fs::Permissions::from_mode(mode | needed),
                    ));
                }
            }
            Self::Link(path, target) => drop(symlink(target, root.join(path))),
        }
    }
}

fn paths() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "ü"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (paths(), prop::collection::vec(any::<u8>(), 0..3)).prop_map(|(path, content)| Deed::Write(path, content)),
        2 => paths().prop_map(Deed::Remove),
        2 => (paths(), paths()).prop_map(|(from, to)| Deed::Rename(from, to)),
        3 => paths().prop_map(Deed::Folder),
        1 => (paths(), prop::sample::select(vec![0o600, 0o755, 0o700, 0o444])).prop_map(|(path, mode)| Deed::Mode(path, mode | 0o200)),
        1 => (paths(), paths()).prop_map(|(path, target)| Deed::Link(path, target)),
    ]
}

/// Generates the actions of each call of each turn.
fn scripts() -> impl Strategy<Value = Vec<Vec<Vec<Deed>>>> {
    let call = prop::collection::vec(deeds(), 0..6);
    prop::collection::vec(prop::collection::vec(call, 1..4), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// SES-11: after any changes in any number of turns, rewinding to any checkpoint restores exactly the
    /// earlier state, and redoing restores exactly the later one; also in a new process, and with watched folders.
    #[test]
    fn every_checkpoint_can_be_gone_back_to(script in scripts(), to in any::<prop::sample::Index>(), twice: bool, is_watched: bool) {
        let case = Case::new();
        let watched_from = if is_watched { 0 } else { usize::MAX };
        let tracker = || case.limited(CheckpointLimits { watched_from, ..CheckpointLimits::default() });
        let mut tracker = tracker();
        let mut states = Vec::new();
        for (number, calls) in script.iter().enumerate() {
            states.push(case.state());
            let steps: Vec<_> = calls.iter().map(|deeds| |root: &Path| deeds.iter().for_each(|deed| deed.act(root))).collect();
            let steps: Vec<&dyn Fn(&Path)> = steps.iter().map(|step| step as _).collect();
            case.turn(&tracker, &steps);
            if number % 2 == 1 {
                tracker = case.tracker();
            }
        }
        let last = case.state();
        let to = to.index(script.len());
        let first = tracker.0.rewind_to(to as u64 + 1, Force::Never).unwrap();
        prop_assert_eq!(&first.uncovered, &Vec::<String>::new());
        prop_assert_eq!(&case.state(), &states[to]);
        if twice && to > 0 {
            case.tracker().0.rewind_to(to as u64, Force::Never).unwrap();
            prop_assert_eq!(&case.state(), &states[to - 1]);
            case.tracker().0.redo_last(Force::Never).unwrap();
            prop_assert_eq!(&case.state(), &states[to]);
        }
        case.tracker().0.redo_last(Force::Never).unwrap();
        prop_assert_eq!(&case.state(), &last);
        prop_assert!(case.tracker().0.redo_last(Force::Never).is_err());
    }

    /// SES-11: a restoration interrupted by the end of its process is finished by the next one.
    #[test]
    fn half_a_rewind_is_finished(script in scripts(), done in any::<prop::sample::Index>()) {
        let case = Case::new();
        let tracker = case.tracker();
        let before = case.state();
        for calls in &script {
            let steps: Vec<_> = calls.iter().map(|deeds| |root: &Path| deeds.iter().for_each(|deed| deed.act(root))).collect();
            let steps: Vec<&dyn Fn(&Path)> = steps.iter().map(|step| step as _).collect();
            case.turn(&tracker, &steps);
        }
        let files = &tracker.0;
        let history = files.history().unwrap();
        let (changes, _) = journal::merge(history.turns.values().flat_map(|turn| turn.calls.iter().flatten()));
        let back: Vec<_> = changes.iter().map(node::Change::back).collect();
        files.add_for_test(&Record::Moving { turns: history.turns.keys().copied().collect(), changes: back.clone(), forth: false });
        // Apply a part of it, and leave a half-written file behind.
        let part = &back[..done.index(back.len() + 1)];
        files.restore_for_test(part);
        fs::write(case.root().join(".windlass-undo"), "half").unwrap();
        let next = case.tracker();
        begin(&next);
        if back.iter().all(|change| change.path.0.contains(&b'/')) {
            fs::remove_file(case.root().join(".windlass-undo")).unwrap();
        }
        prop_assert_eq!(case.state(), before);
        prop_assert!(next.0.history().unwrap().moving.is_none());
        next.0.redo_last(Force::Never).unwrap();
    }
}

/// SES-11: a folder that its owner may list and not search, or not even list, keeps no call from being recorded, and it
/// comes back with what is in it.
#[test]
fn a_closed_folder_comes_back() {
    for mode in [0o600, 0o000] {
        let case = Case::new();
        let tracker = case.tracker();
        let folder = case.root().join("a");
        fs::create_dir_all(folder.join("b")).unwrap();
        fs::write(folder.join("c"), "1").unwrap();
        let before = case.state();
        case.turn(
            &tracker,
            &[&|root| {
                fs::write(root.join("a/c"), "2").unwrap();
                fs::write(root.join("d"), "3").unwrap();
            }],
        );
        case.turn(
            &tracker,
            &[&|root| {
                fs::set_permissions(root.join("a"), fs::Permissions::from_mode(mode)).unwrap();
                fs::write(root.join("d"), "4").unwrap();
            }],
        );
        tracker.0.rewind_to(2, Force::Never).unwrap();
        assert_eq!(fs::read_to_string(folder.join("c")).unwrap(), "2");
        tracker.0.rewind_to(1, Force::Never).unwrap();
        assert_eq!(case.state(), before, "{mode:o}");
    }
}

/// SES-11: changes made by others in between are not lost silently; forcing overwrites them, and redo brings
/// them back.
#[test]
fn changes_of_others_are_left_alone() {
    let case = Case::new();
    let tracker = case.tracker();
    let (a, b) = (case.root().join("a"), case.root().join("b"));
    fs::write(&a, "1").unwrap();
    case.turn(&tracker, &[&|root| fs::write(root.join("a"), "2").unwrap()]);
    case.turn(&tracker, &[&|root| fs::write(root.join("b"), "x").unwrap()]);
    fs::write(&a, "mine").unwrap();
    tracker.0.rewind_to(2, Force::Never).unwrap();
    assert!(!b.exists());
    let refused = tracker.0.rewind_to(1, Force::Never).unwrap_err();
    assert_eq!(refused, CheckpointError::Conflict(vec!["a".to_owned()]));
    assert_eq!(fs::read_to_string(&a).unwrap(), "mine");
    tracker.0.rewind_to(1, Force::Always).unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "1");
    tracker.0.redo_last(Force::Never).unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "mine");
    // The same holds between two turns of one rewind.
    case.turn(&tracker, &[&|root| fs::write(root.join("a"), "3").unwrap()]);
    let refused = tracker.0.rewind_to(1, Force::Never).unwrap_err();
    assert_eq!(refused, CheckpointError::Conflict(vec!["a".to_owned()]));
}

/// SES-11: a tool that names its files only needs those checked, including the folders it creates; changes
/// that a command makes to the same files are attributed to the command.
#[test]
fn named_files_and_commands_mix() {
    let case = Case::new();
    let tracker = case.tracker();
    let root = case.root();
    fs::write(root.join("kept"), "k").unwrap();
    let before = case.state();
    begin(&tracker);
    let named = |path: &str, content: &str| {
        let scope = Scope::Paths(vec![Bytes::of(Path::new(path))]);
        let paths = tracker.0.begin("write_file", &scope).unwrap();
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        tracker.0.end("write_file", paths).unwrap();
    };
    named("x/y/new", "1");
    assert!(!case.data.path().join("index").exists(), "nothing was scanned");
    let run = |deed: &dyn Fn()| {
        tracker.0.begin("bash", &Scope::Everything).unwrap();
        deed();
        tracker.0.end("bash", None).unwrap();
    };
    run(&|| fs::write(root.join("kept"), "c").unwrap());
    named("kept", "n");
    // Back to its state at the previous scan.
    run(&|| fs::write(root.join("kept"), "c").unwrap());
    named("x/z", "2");
    run(&|| fs::remove_dir_all(root.join("x")).unwrap());
    let history = tracker.0.history().unwrap();
    let calls = &history.turns[&1].calls;
    let names: Vec<Vec<String>> = calls
        .iter()
        .map(|changes| changes.iter().map(|change| change.path.to_string()).collect())
        .collect();
    assert_eq!(
        names,
        [
            vec!["x", "x/y", "x/y/new"],
            vec!["kept"],
            vec!["kept"],
            vec!["kept"],
            vec!["x/z"],
            vec!["x", "x/y", "x/y/new", "x/z"]
        ]
    );
    let checkpoint = listed(&history.turns[&1]);
    assert_eq!((checkpoint.files, checkpoint.tools.len()), (1, 2));
    let shown = tracker.0.show_turn(1).unwrap();
    assert_eq!(shown[0].what, Changed::Modified);
    assert!(shown[0].diff.as_deref().unwrap().contains("-k\n"), "{shown:?}");
    tracker.0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(case.state(), before);
}

/// WEB-1: the changes of a whole session have each file once, without what was taken back or undone.
#[test]
fn a_session_has_one_diff_per_file() {
    let case = Case::new();
    let tracker = case.tracker();
    let root = case.root();
    fs::write(root.join("kept"), "one\n").unwrap();
    let write =
        |name: &'static str, text: &'static str| move |root: &Path| fs::write(root.join(name), text).unwrap();
    case.turn(&tracker, &[&write("kept", "two\n"), &write("gone", "x\n")]);
    case.turn(
        &tracker,
        &[&write("kept", "three\n"), &|root: &Path| {
            fs::remove_file(root.join("gone")).unwrap();
        }],
    );
    let changes = |number| tracker.0.show_turn(number).unwrap();
    let shown = changes(WHOLE_SESSION);
    assert_eq!((shown.len(), &*shown[0].path), (1, "kept"));
    let diff = shown[0].diff.as_deref().unwrap();
    assert!(diff.contains("-one\n+three\n") && !diff.contains("two"), "{diff}");
    tracker.0.rewind_to(2, Force::Never).unwrap();
    let names: Vec<String> = changes(WHOLE_SESSION)
        .into_iter()
        .map(|change| change.path)
        .collect();
    assert_eq!(names, ["gone", "kept"]);
    assert!(tracker.0.show_turn(9).is_err());
}

/// SES-11: everything not covered is reported (large files, ignored trees, pipes) and left as it is.
#[test]
fn what_is_not_covered_is_reported() {
    let case = Case::new();
    let tracker = case.limited(CheckpointLimits {
        file: 10,
        ignored: 100,
        ..CheckpointLimits::default()
    });
    let root = case.root();
    fs::write(root.join(".gitignore"), "out/\nsmall/\n").unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "1").unwrap();
    fs::write(root.join("large"), "0123456789 and more").unwrap();
    case.turn(
        &tracker,
        &[&|root| {
            fs::write(root.join("large"), "something else entirely").unwrap();
            fs::create_dir(root.join("out")).unwrap();
            for name in 0..20 {
                fs::write(root.join(format!("out/{name}")), "12345678").unwrap();
            }
            fs::create_dir(root.join("small")).unwrap();
            fs::write(root.join("small/x"), "1").unwrap();
            fs::write(root.join(".git/HEAD"), "2").unwrap();
        }],
    );
    let restored = tracker.0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(
        restored.uncovered,
        [
            "large: larger than the limit for one file",
            "out: ignored by version control, and larger than the limit for ignored files"
        ]
    );
    assert!(root.join("out/7").exists() && !root.join("small").exists());
    assert_eq!(fs::read_to_string(root.join(".git/HEAD")).unwrap(), "2");
    assert_eq!(
        fs::read_to_string(root.join("large")).unwrap(),
        "something else entirely"
    );
}

/// SES-11: a folder with more files than the limit is covered for file tools only, and that is reported.
#[test]
fn a_huge_folder_is_covered_for_file_tools() {
    let case = Case::new();
    let root = case.root();
    for name in 0..20 {
        fs::write(root.join(format!("f{name}")), "x").unwrap();
    }
    let tracker = case.limited(CheckpointLimits {
        entries: 10,
        ..CheckpointLimits::default()
    });
    begin(&tracker);
    let scope = Scope::Paths(vec![Bytes::of(Path::new("f1"))]);
    let paths = tracker.0.begin("edit_file", &scope).unwrap();
    fs::write(root.join("f1"), "y").unwrap();
    tracker.0.end("edit_file", paths).unwrap();
    tracker.0.begin("bash", &Scope::Everything).unwrap();
    fs::write(root.join("f2"), "y").unwrap();
    tracker.0.end("bash", None).unwrap();
    let restored = tracker.0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(restored.uncovered.len(), 1);
    assert!(
        restored.uncovered[0].contains("more than 10 files"),
        "{restored:?}"
    );
    assert_eq!(fs::read_to_string(root.join("f1")).unwrap(), "x");
    assert_eq!(fs::read_to_string(root.join("f2")).unwrap(), "y");
}

/// SES-11: a folder with more files than the limit is scanned once in a session, its contents are stored at most
/// once, and the user is told once.
#[test]
fn a_huge_folder_is_looked_at_once() {
    let case = Case::new();
    let root = case.root();
    for name in 0..20 {
        fs::write(root.join(format!("f{name}")), format!("{name:0>5000}")).unwrap();
    }
    let disk = || {
        let packs = fs::read_dir(case.data.path()).unwrap().next().unwrap();
        let packs = packs.unwrap().path().join("packs");
        let size = |file: io::Result<fs::DirEntry>| file.unwrap().metadata().unwrap().len();
        fs::read_dir(packs).map_or(0, |files| files.map(size).sum::<u64>())
    };
    let mut sizes = Vec::new();
    for _ in 0..2 {
        let tracker = case.limited(CheckpointLimits {
            entries: 10,
            ..CheckpointLimits::default()
        });
        begin(&tracker);
        let warnings = [(); 3].map(|()| {
            tracker.0.begin("bash", &Scope::Everything).unwrap();
            tracker.0.end("bash", None).unwrap().warning
        });
        let told = warnings.iter().flatten().collect::<Vec<_>>();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("more than 10 files"), "{told:?}");
        assert!(warnings[0].is_some());
        sizes.push(disk());
    }
    assert_eq!(sizes[0], sizes[1], "the contents are stored again");
}

/// SES-11: in one folder of many files, what is stored for a command follows what it changed, also when the folder
/// is scanned as a whole.
#[test]
fn the_disk_follows_what_changed() {
    let case = Case::new();
    for name in 0..3_000 {
        fs::write(case.root().join(format!("f{name}")), "x").unwrap();
    }
    let index = || {
        let data = fs::read_dir(case.data.path()).unwrap().next().unwrap();
        fs::metadata(data.unwrap().path().join("index")).unwrap().len()
    };
    for watched_from in [usize::MAX, 0] {
        let limits = CheckpointLimits {
            watched_from,
            ..CheckpointLimits::default()
        };
        // The stamps of files that changed a moment ago are not trusted: they are written again until time has passed.
        let mut before = 0;
        for _ in 0..1_000 {
            case.turn(&case.limited(limits), &[&|_| {}]);
            let now = index();
            if now == before {
                break;
            }
            before = now;
        }
        let tracker = case.limited(limits);
        case.turn(&tracker, &[&|root| fs::write(root.join("f7"), "y").unwrap()]);
        case.turn(&tracker, &[&|root| fs::write(root.join("new"), "z").unwrap()]);
        let grown = index() - before;
        assert!(grown < 3_000, "{grown} of {before}");
        fs::remove_file(case.root().join("new")).unwrap();
    }
}

/// SES-11: without the state before an interrupted command, nothing is taken for its change.
#[test]
fn a_lost_index_blames_nobody() {
    let case = Case::new();
    let root = case.root();
    fs::write(root.join("a"), "1").unwrap();
    let tracker = case.tracker();
    begin(&tracker);
    tracker.0.begin("bash", &Scope::Everything).unwrap();
    drop(tracker);
    let data = fs::read_dir(case.data.path()).unwrap().next().unwrap();
    fs::remove_file(data.unwrap().path().join("index")).unwrap();
    let restored = case.tracker().0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(restored.changes.len(), 0);
    assert!(
        restored.uncovered[0].contains("not known any more"),
        "{restored:?}"
    );
    assert!(root.join("a").exists());
}

/// SES-11: changes of a call whose process was killed are found when the session resumes.
#[test]
fn an_interrupted_call_is_covered() {
    let case = Case::new();
    let root = case.root();
    fs::write(root.join("a"), "1").unwrap();
    let before = case.state();
    let tracker = case.tracker();
    begin(&tracker);
    tracker.0.begin("bash", &Scope::Everything).unwrap();
    fs::write(root.join("a"), "2").unwrap();
    fs::write(root.join("b"), "new").unwrap();
    drop(tracker);
    let next = case.tracker();
    begin(&next);
    let restored = next.0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(restored.changes.len(), 2);
    assert_eq!(case.state(), before);
    // A truncated line at the end of the journal hides nothing.
    let journal = fs::read_dir(case.data.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().join("sessions/s-1.jsonl"))
        .find(|path| path.exists())
        .unwrap();
    let mut text = fs::read(&journal).unwrap();
    text.extend_from_slice(b"{\"begun\":{\"tool\":\"ba");
    fs::write(&journal, &text).unwrap();
    let next = case.tracker();
    next.0.redo_last(Force::Never).unwrap();
    assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "new");
    fs::write(&journal, [&text[..], b"\nnonsense}\n"].concat()).unwrap();
    let error = case.tracker().0.history().unwrap_err().to_string();
    assert!(error.contains("damaged at line"), "{error}");
}

/// SES-11: having nothing to rewind to is reported as such.
#[test]
fn nothing_to_do_is_reported() {
    let case = Case::new();
    let tracker = case.tracker();
    let error = |result: Result<Restored, CheckpointError>| result.unwrap_err().to_string();
    assert_eq!(
        error(tracker.0.rewind_to(3, Force::Never)),
        "there is no checkpoint 3; nothing in this session has changed files yet"
    );
    assert_eq!(
        error(tracker.0.redo_last(Force::Never)),
        "there is nothing to redo"
    );
    case.turn(&tracker, &[&|root| fs::write(root.join("a"), "2").unwrap()]);
    tracker.0.rewind_to(1, Force::Never).unwrap();
    assert_eq!(
        error(tracker.0.rewind_to(1, Force::Never)),
        "checkpoint 1 has been undone already"
    );
    case.turn(&tracker, &[&|root| fs::write(root.join("a"), "3").unwrap()]);
    assert_eq!(
        error(tracker.0.redo_last(Force::Never)),
        "files have changed since: the undone changes cannot be redone"
    );
    assert_eq!(
        error(tracker.0.rewind_to(9, Force::Never)),
        "there is no checkpoint 9; there are checkpoints 1 to 2"
    );
}

/// SES-11, LOOP-8: a turn starts immediately while the folder is still being scanned for a cancelled call,
/// and later changes belong to the new turn.
#[test]
fn a_turn_does_not_wait_for_a_look() {
    let case = Case::new();
    let tracker = case.tracker();
    let (sender, begun) = std::sync::mpsc::channel();
    let look = tracker.0.lock();
    let other = tracker.clone();
    std::thread::spawn(move || {
        begin(&other);
        let _ = sender.send(());
    });
    begun
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("the turn starts");
    drop(look);
    tracker.0.begin("bash", &Scope::Everything).unwrap();
    fs::write(case.root().join("a"), "new").unwrap();
    tracker.0.end("bash", None).unwrap();
    let history = tracker.0.history().unwrap();
    let turn = &history.turns[&1].checkpoint;
    assert_eq!(
        (turn.message.clone(), turn.prompt.as_str()),
        (Some("m".into()), "do it")
    );
    assert_eq!(history.turns[&1].changes().len(), 1);
}

/// LOOP-8, SES-11: a call cancelled during the scan of the folder is not carried out afterwards, and no
/// change is attributed to it.
#[tokio::test]
async fn what_was_given_up_is_not_done_later() {
    let case = Case::new();
    let tracker = case.tracker();
    let call = AdmittedCall {
        proposal: Prepared::new(Category::Write, serde_json::json!({}), |_| {
            Box::pin(async { Ok(ToolOutput::default()) })
        })
        .proposal(&"call-1".into(), "write", &case.root()),
        was_confirmed: false,
    };
    let cx = ToolContext {
        call_id: "call-1".into(),
        cancel: CancellationToken::new(),
        execution: Arc::default(),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: false,
        places: Arc::default(),
    };
    cx.cancel.cancel();
    tracker.call_starting(&call, &cx).await;
    let canceled = Err(ToolError::Canceled(String::new()));
    assert_eq!(tracker.after_call(&call, &cx, canceled.clone()).await, canceled);
    assert!(case.state().is_empty());
    assert!(tracker.0.history().unwrap().open.is_none());
}
