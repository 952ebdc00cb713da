use super::*;
use crate::SandboxPolicy;

/// A policy with rules around a path in `/usr`, which does not change while a test runs.
fn policy() -> ResolvedPolicy {
    let policy = SandboxPolicy {
        read: vec!["/usr".into()],
        denied: vec!["/usr/no-such-folder".into()],
        ..SandboxPolicy::default()
    };
    policy.resolve(false).unwrap()
}

fn left(prepared: &Prepared) -> usize {
    prepared.0.lock().unwrap().as_ref().unwrap().left
}

#[test]
fn rules_are_used_again_for_a_while() {
    let (prepared, policy) = (Prepared::default(), policy());
    for round in 0..2 * USES {
        prepared.next(&policy).unwrap();
        assert_eq!(left(&prepared), USES - 1 - round % USES);
    }
}

/// Timestamps advance in steps of some milliseconds; waits until new changes get a later one than the folder
/// has.
fn wait_for_another_time(path: &Path) {
    let changed = look(path).unwrap().1;
    while look(tempfile::NamedTempFile::new().unwrap().path()).unwrap().1 <= changed {}
}

#[test]
fn what_was_seen_is_seen_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, place) = (folder.path().join("inside"), folder.path().join("place"));
    let changes: [fn(&Path, &Path); 4] = [
        |inside, _| drop(File::create(inside.join("new")).unwrap()),
        |inside, _| fs::rename(inside.join("old"), inside.join("other")).unwrap(),
        |inside, _| {
            fs::remove_dir_all(inside).unwrap();
            fs::create_dir(inside).unwrap();
        },
        |_, place| {
            // Not removed first: a new file may get the inode number of a removed one.
            fs::create_dir(place.with_extension("new")).unwrap();
            fs::rename(place.with_extension("new"), place).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&place).unwrap();
        fs::write(inside.join("old"), "").unwrap();
        let mut seen = Seen::default();
        seen.folder(&inside);
        seen.place(&place);
        wait_for_another_time(&inside);
        assert!(seen.still_holds() && !seen.was_quiet(), "{number}");
        change(&inside, &place);
        assert!(!seen.still_holds(), "{number}");
    }
}

#[test]
fn what_comes_into_being_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let mut seen = Seen::default();
    seen.place(&path);
    assert!(seen.still_holds() && seen.was_quiet());
    fs::write(&path, "").unwrap();
    assert!(!seen.still_holds());
}
