//! Tests of the notices that inotify gives, and of those it does not give.

use std::fs;
use std::os::fd::AsFd;

use super::*;

fn watched(folder: &Path) -> Watch {
    let watch = Watch::start(folder, 100).unwrap();
    watch.add(&Arc::from(&b""[..]), fs::File::open(folder).unwrap().as_fd());
    assert!(watch.works());
    watch
}

fn names(watch: &Watch) -> Option<Vec<(String, Depth)>> {
    let touched = watch.take()?;
    let all = touched.iter().flat_map(|(folder, names)| {
        names.iter().map(|(name, depth)| {
            let path = [&**folder, &**name].join(&b'/');
            (String::from_utf8(path).unwrap(), *depth)
        })
    });
    Some(all.collect())
}

/// SES-11: every kind of change is reported with its name; a folder that comes from elsewhere must be read.
#[test]
fn changes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (root, other) = (folder.path().join("root"), folder.path().join("other"));
    fs::create_dir_all(root.join("old")).unwrap();
    fs::create_dir_all(other.join("in")).unwrap();
    fs::write(root.join("linked"), "1").unwrap();
    let watch = watched(&root);
    fs::write(root.join("a"), "1").unwrap();
    fs::create_dir_all(root.join("new/inner")).unwrap();
    fs::rename(root.join("old"), other.join("old")).unwrap();
    fs::rename(other.join("in"), root.join("in")).unwrap();
    let named = |name: &str, depth| (format!("/{name}"), depth);
    assert_eq!(
        names(&watch).unwrap(),
        [
            named("a", Depth::Name),
            named("in", Depth::Below),
            named("new", Depth::Below),
            named("old", Depth::Name)
        ]
    );
    assert_eq!(names(&watch).unwrap(), []);
    // A second name is a file of its own in its folder; what is written through it is reported for both.
    fs::hard_link(root.join("linked"), other.join("second")).unwrap();
    let file = fs::File::open(root.join("linked")).unwrap();
    let path = Arc::from(&b""[..]);
    assert_eq!(watch.add_linked(&path, b"linked", file.as_fd()), Added::New);
    assert_eq!(watch.add_linked(&path, b"linked", file.as_fd()), Added::Known);
    fs::write(other.join("second"), "2").unwrap();
    assert_eq!(names(&watch).unwrap(), [named("linked", Depth::Name)]);
}

/// SES-11: a folder that was moved and added again is reported under its new name; one that was forgotten is
/// not reported.
#[test]
fn moved_folders_keep_their_watch() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let watch = watched(root);
    let add = |name: &str| {
        let handle = fs::File::open(root.join(name)).unwrap();
        watch.add(&Arc::from(name.as_bytes()), handle.as_fd());
    };
    fs::create_dir(root.join("a")).unwrap();
    add("a");
    fs::rename(root.join("a"), root.join("b")).unwrap();
    add("b");
    watch.forget(b"a");
    watch.take().unwrap();
    fs::write(root.join("b/x"), "1").unwrap();
    assert_eq!(names(&watch).unwrap(), [("b/x".to_owned(), Depth::Name)]);
    watch.forget(b"b");
    fs::write(root.join("b/y"), "1").unwrap();
    assert_eq!(names(&watch).unwrap(), []);
}

/// SES-11: when notices were lost, or something cannot be watched, that is said.
#[test]
fn lost_notices_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let watch = watched(folder.path());
    watch.lose();
    fs::write(folder.path().join("a"), "1").unwrap();
    assert_eq!(names(&watch), None);
    fs::write(folder.path().join("b"), "1").unwrap();
    assert_eq!(names(&watch).unwrap(), [("/b".to_owned(), Depth::Name)]);
    {
        let mut state = watch.shared.lock();
        let root = *state.watches.keys().next().unwrap();
        for number in 0..=MOST_NAMES {
            state.note(root, ReadFlags::MODIFY, Some(number.to_string().as_bytes()));
        }
    }
    assert_eq!(names(&watch), None);

    let few = Watch::start(folder.path(), 1).unwrap();
    let (inner, path) = (folder.path().join("inner"), Arc::from(&b"inner"[..]));
    fs::create_dir(&inner).unwrap();
    few.add(
        &Arc::from(&b""[..]),
        fs::File::open(folder.path()).unwrap().as_fd(),
    );
    assert!(few.works());
    few.add(&path, fs::File::open(&inner).unwrap().as_fd());
    assert!(!few.works());
    assert_eq!(names(&few), None);

    let foreign = Watch::start(Path::new("/proc"), 10).unwrap();
    foreign.add(&path, fs::File::open("/proc").unwrap().as_fd());
    assert!(
        !foreign.works(),
        "a file system of which not every change is seen"
    );

    let inside = folder.path().join("moved");
    fs::create_dir(&inside).unwrap();
    let watch = watched(&inside);
    fs::rename(&inside, folder.path().join("away")).unwrap();
    assert_eq!(names(&watch), None, "the workspace itself");
}
