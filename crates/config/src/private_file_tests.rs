//! Concurrent changes of one file, links to it, and its permissions.

use std::os::unix::fs::symlink;
use windlass_testkit::at_once;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// SAFE-6, PROV-11: no concurrent change is lost, whether it replaces or appends.
#[test]
fn no_change_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("new/numbers");
    at_once(8, |number| {
        let file = PrivateFile::new(path.clone());
        for round in 0..5 {
            let held = file.hold_within(windlass_testkit::PATIENCE).unwrap();
            let line = format!("{number} {round}\n");
            if round % 2 == 0 {
                let before = file.read().unwrap().unwrap_or_default();
                held.write(&(before + &line)).unwrap();
            } else {
                held.append(&line).unwrap();
            }
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 8 * 5, "{text}");
    let left = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".numbers.lock", "numbers"], "no temporary file stays");
}

/// PROV-11, SAFE-6: a write makes the file private, whatever its permissions were before.
#[test]
fn it_is_for_one_user() {
    let root = tempfile::tempdir().unwrap();
    for was_there in [false, true] {
        for appends in [false, true] {
            let path = root.path().join(format!("new-{was_there}-{appends}/file"));
            let file = PrivateFile::new(path.clone());
            if was_there {
                fs::create_dir(folder(&path)).unwrap();
                fs::write(&path, "wide\n").unwrap();
                fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
            } else {
                assert_eq!(file.read().unwrap(), None);
            }
            let held = file.hold().unwrap();
            if appends {
                held.append("x\n").unwrap();
            } else {
                held.write("x\n").unwrap();
            }
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            assert!(file.read().unwrap().unwrap().ends_with("x\n"));
            assert!(was_there || mode(folder(&path)) == 0o700);
        }
    }
}

/// PROV-11: a link stays a link and its target is changed, through another link and before the target exists.
/// Both names share one lock.
#[test]
fn links_stay() {
    let root = tempfile::tempdir().unwrap();
    let [real, link, second] =
        ["dotfiles/keys", "config/keys", "config/second"].map(|name| root.path().join(name));
    fs::create_dir(folder(&real)).unwrap();
    fs::create_dir(folder(&link)).unwrap();
    symlink("../dotfiles/keys", &link).unwrap();
    symlink("keys", &second).unwrap();
    for (path, text) in [(&second, "first"), (&link, "again"), (&real, "at last")] {
        let file = PrivateFile::new(path.clone());
        let held = file.hold().unwrap();
        held.write(text).unwrap();
        for other in [&real, &link, &second] {
            assert_eq!(fs::read_to_string(other).unwrap(), text);
            let refused = PrivateFile::new(other.clone()).hold_within(Duration::ZERO);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
        }
    }
    assert!(link.is_symlink() && second.is_symlink() && !real.is_symlink());
    assert_eq!(mode(&real), 0o600);
}

/// SAFE-6, PROV-11: a caller that cannot lock the file learns why and where to look, and gets the lock once
/// it is free.
#[test]
fn a_file_that_is_held_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let file = PrivateFile::new(root.path().join("file"));
    let held = file.hold().unwrap();
    let told = file.hold_within(Duration::ZERO).unwrap_err().to_string();
    assert!(
        told.contains("another process") && told.contains(".file.lock"),
        "{told}"
    );
    thread::scope(|scope| {
        let waits = scope.spawn(|| file.hold_within(windlass_testkit::PATIENCE).map(drop));
        drop(held);
        waits.join().unwrap().unwrap();
    });
}
