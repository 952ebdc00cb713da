use super::*;
use crate::SandboxPolicy;

/// A policy that goes around `/usr`, which nobody changes while a test runs.
fn settled() -> Settled {
    let policy = SandboxPolicy {
        read: vec!["/usr".into()],
        denied: vec!["/usr/no-such-folder".into()],
        ..SandboxPolicy::default()
    };
    policy.settle(false).unwrap()
}

fn left(prepared: &Prepared) -> usize {
    prepared.0.lock().unwrap().as_ref().unwrap().left
}

#[test]
fn rules_are_used_again_for_a_while() {
    let (prepared, settled) = (Prepared::default(), settled());
    for round in 0..2 * USES {
        prepared.next(&settled).unwrap();
        assert_eq!(left(&prepared), USES - 1 - round % USES);
    }
}

/// Times are counted in steps of some milliseconds; a folder that was left alone has an earlier one than what comes.
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
            // Not removed first: a new file may get the number of one that is gone.
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
