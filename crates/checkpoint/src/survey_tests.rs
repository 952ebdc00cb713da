//! Tests that watching finds what a scan of everything finds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use proptest::prelude::*;
use windlass_sandbox::Workspace;

use super::*;
use crate::node::{Bytes, Node};
use crate::pack::Packs;
use crate::tree::CheckpointLimits;

struct Case {
    folder: tempfile::TempDir,
    tree: Tree,
    survey: Survey,
}

impl Case {
    fn new(limits: CheckpointLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let root = fs::canonicalize(folder.path().join("root")).unwrap();
        let data = folder.path().join("data");
        let files = Workspace::new(&root, None).files();
        let packs = Packs::new(data.join("packs"));
        let tree = Tree::open(&root, files, &data, packs, limits).unwrap();
        let survey = Survey::open(&data.join("index"));
        Self { folder, tree, survey }
    }

    fn root(&self) -> &Path {
        &self.tree.root
    }

    /// Returns what a scan finds that knows nothing.
    fn scanned(&self) -> BTreeMap<Bytes, Node> {
        let data = tempfile::tempdir().unwrap();
        let mut other = Survey::open(&data.path().join("index"));
        other.is_unwatchable = true;
        other.refresh(&self.tree, Report::Nothing).unwrap().unwrap();
        state(&other)
    }

    /// Refreshes, and compares the result and the reported changes with a scan.
    fn check(&mut self) {
        let mut expected = state(&self.survey);
        let changes = self.survey.refresh(&self.tree, Report::Changes).unwrap().unwrap();
        let now = self.scanned();
        assert_eq!(state(&self.survey), now);
        for change in &changes {
            assert_ne!(change.before, change.after, "{}", change.path);
            assert_eq!(
                expected.get(&change.path),
                change.before.as_ref(),
                "{}",
                change.path
            );
            match &change.after {
                Some(node) => expected.insert(change.path.clone(), node.clone()),
                None => expected.remove(&change.path),
            };
        }
        assert_eq!(expected, now, "{changes:?}");
        assert_eq!(
            state(&Survey::open(&self.folder.path().join("data/index"))),
            now,
            "on the disk"
        );
    }
}

impl Case {
    /// Checks that nothing but the first look was a scan, where the system can watch folders.
    fn assert_one_scan(&self) {
        if Watch::start(self.root(), 1).is_some() {
            assert_eq!(self.survey.whole_scans, 1);
        }
    }
}

fn watched() -> CheckpointLimits {
    CheckpointLimits {
        watched_from: 0,
        ..CheckpointLimits::default()
    }
}

fn state(survey: &Survey) -> BTreeMap<Bytes, Node> {
    let mut all = BTreeMap::new();
    let add = |path: &[u8], folder: crate::index::Folder| {
        all.extend(
            folder
                .entries
                .into_iter()
                .map(|entry| (Bytes::join(path, &entry.name), entry.node)),
        );
    };
    survey.index.below(b"", add).unwrap();
    all
}

#[derive(Debug, Clone)]
enum Deed {
    Write(String, Vec<u8>),
    Append(String, u8),
    Truncate(String, u8),
    Mode(String, u32),
    Rename(String, String),
    Remove(String),
    Link(String, String),
    HardLink(String, String),
    Deep(String, String),
    MoveOut(String),
    MoveIn(String),
    Exchange(String, String),
}

impl Deed {
    /// Performs the action if possible; an action that is impossible changes nothing.
    fn act(&self, root: &Path) {
        let at = |path: &String| root.join(path);
        let outside = root.parent().unwrap().join("outside/thing");
        match self {
            Self::Write(path, content) => drop(fs::write(at(path), content)),
            Self::Append(path, byte) => {
                let file = fs::File::options().append(true).open(at(path));
                drop(file.and_then(|mut file| file.write_all(&[*byte])));
            }
            Self::Truncate(path, size) => {
                let file = fs::File::options().write(true).open(at(path));
                drop(file.and_then(|file| file.set_len(u64::from(*size))));
            }
            Self::Mode(path, mode) => {
                let path = at(path);
                if let Ok(data) = fs::symlink_metadata(&path)
                    && !data.is_symlink()
                {
                    // Without these, only root could compare what is in a folder.
                    let needed = if data.is_dir() && data.uid() != 0 {
                        0o700
                    } else {
                        0
                    };
                    drop(fs::set_permissions(
                        path,
                        fs::Permissions::from_mode(mode | needed),
                    ));
                }
            }
            Self::Rename(from, to) => drop(fs::rename(at(from), at(to))),
            Self::Remove(path) => {
                let path = at(path);
                let is_folder = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
                let _ = if is_folder {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
            }
            Self::Link(path, target) => drop(symlink(target, at(path))),
            Self::HardLink(from, to) => drop(fs::hard_link(at(from), at(to))),
            Self::Deep(path, name) => {
                let folder = at(path).join("deep/er");
                drop(fs::create_dir_all(&folder));
                drop(fs::write(folder.join(name), name));
            }
            Self::MoveOut(path) => drop(fs::rename(at(path), outside)),
            Self::MoveIn(path) => drop(fs::rename(outside, at(path))),
            Self::Exchange(one, other) => {
                let between = root.join("between");
                if fs::rename(at(one), &between).is_ok() {
                    drop(fs::rename(at(other), at(one)));
                    drop(fs::rename(between, at(other)));
                }
            }
        }
    }
}

fn paths() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "ü"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

/// Everything except second names of files.
fn plain_deeds() -> impl Strategy<Value = Deed> {
    let modes = prop::sample::select(vec![0o600, 0o755, 0o700, 0o444]);
    prop_oneof![
        4 => (paths(), prop::collection::vec(any::<u8>(), 0..3)).prop_map(|(path, content)| Deed::Write(path, content)),
        4 => (paths(), "[a-z]").prop_map(|(path, name)| Deed::Deep(path, name)),
        2 => (paths(), any::<u8>()).prop_map(|(path, byte)| Deed::Append(path, byte)),
        1 => (paths(), 0..3u8).prop_map(|(path, size)| Deed::Truncate(path, size)),
        1 => (paths(), modes).prop_map(|(path, mode)| Deed::Mode(path, mode)),
        3 => (paths(), paths()).prop_map(|(from, to)| Deed::Rename(from, to)),
        1 => (paths(), paths()).prop_map(|(one, other)| Deed::Exchange(one, other)),
        2 => paths().prop_map(Deed::Remove),
        1 => (paths(), paths()).prop_map(|(path, target)| Deed::Link(path, target)),
        1 => paths().prop_map(Deed::MoveOut),
        1 => paths().prop_map(Deed::MoveIn),
    ]
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => plain_deeds(),
        2 => (paths(), paths()).prop_map(|(from, to)| Deed::HardLink(from, to)),
    ]
}

/// Deeds of each thread in each step.
fn scripts(deed: impl Strategy<Value = Deed>) -> impl Strategy<Value = Vec<Vec<Vec<Deed>>>> {
    let thread = prop::collection::vec(deed, 0..8);
    prop::collection::vec(prop::collection::vec(thread, 1..4), 1..6)
}

fn act(root: &Path, threads: &[Vec<Deed>]) {
    std::thread::scope(|scope| {
        for deeds in threads {
            scope.spawn(move || deeds.iter().for_each(|deed| deed.act(root)));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// SES-11: watching finds exactly what a scan finds, after any changes by several threads, without a scan.
    #[test]
    fn watching_is_as_good_as_scanning(script in scripts(plain_deeds())) {
        let mut case = Case::new(watched());
        case.check();
        for threads in &script {
            act(case.root(), threads);
            case.check();
        }
        case.assert_one_scan();
    }

    /// SES-11: files with several names are covered, too, whichever of them is used, and so is what happens
    /// while the state is being read.
    #[test]
    fn names_of_one_file_and_changes_meanwhile(script in scripts(deeds())) {
        let mut case = Case::new(watched());
        case.check();
        for threads in &script {
            let root = case.root().to_owned();
            std::thread::scope(|scope| {
                scope.spawn(|| act(&root, threads));
                case.survey.refresh(&case.tree, Report::Changes).unwrap().unwrap();
            });
            case.check();
        }
    }

    /// SES-11: lost notices and the limit of watches lead to scans, not to missing changes.
    #[test]
    fn nothing_is_missed_when_watching_fails(script in scripts(deeds()), most in 0..12usize, lose in any::<u8>()) {
        let mut case = Case::new(CheckpointLimits { watches: most, ..watched() });
        case.check();
        for (step, threads) in script.iter().enumerate() {
            act(case.root(), threads);
            if lose & (1 << step) != 0 && let Some(watch) = &case.survey.watch {
                watch.lose();
            }
            case.check();
        }
    }
}

/// SES-11: a file that has a second name outside of the workspace is covered when that name is used.
#[test]
fn a_second_name_outside() {
    let mut case = Case::new(watched());
    let (inside, outside) = (case.root().join("a"), case.folder.path().join("outside/b"));
    fs::write(&inside, "1").unwrap();
    fs::hard_link(&inside, &outside).unwrap();
    case.check();
    fs::write(&outside, "2").unwrap();
    case.check();
    case.assert_one_scan();
    // The second name in the workspace itself: the first name must be found again.
    fs::write(case.root().join("c"), "1").unwrap();
    case.check();
    fs::create_dir(case.root().join("d")).unwrap();
    fs::hard_link(case.root().join("c"), case.root().join("d/c")).unwrap();
    case.check();
    fs::write(case.root().join("d/c"), "longer").unwrap();
    case.check();
}

/// SES-11: a file that a process holds open and keeps writing to is covered each time.
#[test]
fn a_file_that_stays_open() {
    let mut case = Case::new(watched());
    case.check();
    let mut file = fs::File::create(case.root().join("log")).unwrap();
    for _ in 0..3 {
        file.write_all(b"line\n").unwrap();
        case.check();
    }
    case.assert_one_scan();
}

/// SES-11: a small workspace is not watched.
#[test]
fn small_workspaces_are_scanned() {
    let mut case = Case::new(CheckpointLimits::default());
    for _ in 0..2 {
        fs::write(case.root().join("a"), "1").unwrap();
        case.check();
    }
    assert!(case.survey.watch.is_none());
}
