//! Tests of folders that are closed to their owner. Root may use every folder, so they run as an ordinary user.

use super::*;

/// An ordinary user without files of their own.
const NOBODY: u32 = 65534;

/// Modes without the permissions that are needed to change a file. The portable backend cannot reopen a folder
/// on Linux that it cannot read.
const CLOSED: &[u32] = if cfg!(windlass_portable) {
    &[0o500, 0o600, 0o400]
} else {
    &[0o500, 0o600, 0o400, 0o300, 0o055, 0o000]
};

/// Runs a test as an ordinary user, on a thread of its own if root runs the tests.
fn as_ordinary_user(test: impl Fn(&Case, u32) + Sync) {
    for mode in CLOSED {
        let case = Case::new();
        if !rustix::process::geteuid().is_root() {
            test(&case, *mode);
            continue;
        }
        for folder in [&case.workspace, &case.data] {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let user = rustix::process::Uid::from_raw(NOBODY);
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
                test(&case, *mode);
            });
        });
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// SES-11: one rewind goes back across a turn that closed folders to turns that changed files in them, and every folder
/// has the mode it had at that time; a redo closes them again.
#[test]
fn one_rewind_crosses_turns_that_closed_folders() {
    as_ordinary_user(|case, closed| {
        let tracker = case.tracker();
        let root = case.root();
        fs::create_dir_all(root.join("a/b")).unwrap();
        set_mode(&root.join("a/b"), 0o750);
        fs::write(root.join("a/b/c"), "1").unwrap();
        fs::write(root.join("a/gone"), "1").unwrap();
        let before = case.state();
        case.turn(
            &tracker,
            &[&|root| {
                fs::write(root.join("a/b/c"), "2").unwrap();
                fs::write(root.join("a/b/new"), "2").unwrap();
                fs::remove_file(root.join("a/gone")).unwrap();
                fs::create_dir_all(root.join("n/m")).unwrap();
                fs::write(root.join("n/m/o"), "2").unwrap();
            }],
        );
        let close = |folders: [&'static str; 2]| {
            move |root: &Path| {
                for folder in folders {
                    set_mode(&root.join(folder), closed);
                }
            }
        };
        case.turn(&tracker, &[&close(["a/b", "n/m"]), &close(["a", "n"])]);
        let changes = tracker.0.history().unwrap().turns[&2].changes();
        let changed: Vec<_> = changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(changed, ["a", "a/b", "n", "n/m"], "{closed:o}");
        for _ in 0..2 {
            let restored = tracker.0.rewind_to(1, Force::Never).unwrap();
            assert_eq!(restored.uncovered, [""; 0], "{closed:o}");
            assert_eq!(case.state(), before, "{closed:o}");
            tracker.0.redo_last(Force::Never).unwrap();
            for folder in ["a", "n"] {
                assert_eq!(mode(&root.join(folder)), closed);
            }
        }
        // Opened from outside, it contains what the first turn left.
        for folder in ["a", "n"] {
            set_mode(&root.join(folder), 0o755);
        }
        assert_eq!(mode(&root.join("a/b")), closed);
        set_mode(&root.join("a/b"), 0o750);
        assert_eq!(fs::read_to_string(root.join("a/b/c")).unwrap(), "2");
        assert!(root.join("a/b/new").exists() && !root.join("a/gone").exists());
    });
}

/// SES-11: a folder that was closed before and after a turn gets its mode back when files in it were restored;
/// so it does if the process is stopped in between.
#[test]
fn a_folder_that_stays_closed_keeps_its_mode() {
    as_ordinary_user(|case, closed| {
        let tracker = case.tracker();
        let folder = case.root().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("c"), "1").unwrap();
        case.turn(&tracker, &[&|root| fs::write(root.join("a/c"), "2").unwrap()]);
        set_mode(&folder, closed);
        let restored = tracker.0.rewind_to(1, Force::Never).unwrap();
        assert_eq!(
            (restored.changes.len(), restored.changes[0].path.as_str()),
            (1, "a/c")
        );
        assert_eq!(mode(&folder), closed);
        tracker.0.redo_last(Force::Never).unwrap();
        assert_eq!(mode(&folder), closed);
        let history = tracker.0.history().unwrap();
        let (changes, _) = journal::merge(history.turns[&1].calls.iter().flatten());
        let mut back: Vec<_> = changes.iter().map(node::Change::back).collect();
        let node = Some(node::Node::Folder { mode: closed });
        back.push(node::Change {
            path: Bytes::of(Path::new("a")),
            before: node.clone(),
            after: node,
        });
        tracker.0.add_for_test(&Record::Moving {
            turns: vec![1],
            changes: back,
            forth: false,
        });
        // Stopped after it opened the folder.
        set_mode(&folder, closed | 0o700);
        let next = case.tracker();
        begin(&next);
        assert_eq!(mode(&folder), closed);
        set_mode(&folder, 0o755);
        assert_eq!(fs::read_to_string(folder.join("c")).unwrap(), "1");
    });
}

/// SES-11: changes of others in a closed folder are found before anything is restored, and the folder stays
/// closed.
#[test]
fn conflicts_in_a_closed_folder_are_found() {
    as_ordinary_user(|case, closed| {
        let tracker = case.tracker();
        let folder = case.root().join("a");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o755);
        fs::write(folder.join("c"), "1").unwrap();
        case.turn(&tracker, &[&|root| fs::write(root.join("a/c"), "2").unwrap()]);
        case.turn(&tracker, &[&|root| set_mode(&root.join("a"), closed)]);
        set_mode(&folder, 0o700);
        fs::write(folder.join("c"), "mine").unwrap();
        set_mode(&folder, closed);
        let refused = tracker.0.rewind_to(1, Force::Never).unwrap_err();
        assert_eq!(refused, CheckpointError::Conflict(vec!["a/c".to_owned()]));
        assert_eq!(mode(&folder), closed);
        tracker.0.rewind_to(1, Force::Always).unwrap();
        assert_eq!(mode(&folder), 0o755);
        assert_eq!(fs::read_to_string(folder.join("c")).unwrap(), "1");
    });
}

/// SES-11: a folder is not opened up through a link that has replaced it.
#[test]
fn links_are_not_opened_up() {
    as_ordinary_user(|case, closed| {
        let tracker = case.tracker();
        let root = case.root();
        let other = case.data.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        case.turn(&tracker, &[&|root| fs::write(root.join("a/c"), "2").unwrap()]);
        fs::remove_dir_all(root.join("a")).unwrap();
        symlink(&other, root.join("a")).unwrap();
        set_mode(&other, closed);
        tracker.0.rewind_to(1, Force::Always).unwrap();
        assert_eq!(mode(&other), closed);
        set_mode(&other, 0o755);
    });
}
