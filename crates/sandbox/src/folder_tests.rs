//! Tests of folders by handle. The `portable` step runs them with the portable backend as well.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

/// A folder with `a/b/file`, `link` to `a`, and `outside` next to it.
fn scene() -> (tempfile::TempDir, OwnedFd) {
    let scene = tempfile::tempdir().unwrap();
    fs::create_dir_all(scene.path().join("root/a/b")).unwrap();
    fs::create_dir(scene.path().join("outside")).unwrap();
    fs::write(scene.path().join("root/a/b/file"), "1").unwrap();
    symlink("a", scene.path().join("root/link")).unwrap();
    symlink("b/file", scene.path().join("root/a/alias")).unwrap();
    let root = open(&scene.path().join("root")).unwrap();
    (scene, root)
}

fn listed(folder: &OwnedFd) -> Vec<String> {
    let mut all = Vec::new();
    names(folder, |name| {
        all.push(name.to_string_lossy().into_owned());
        Ok(())
    })
    .unwrap();
    all.sort();
    all
}

/// LIB-2, SES-11: a path is opened below a folder and nowhere else: no link is followed, in one call or step
/// by step.
#[test]
fn paths_are_opened_below_a_folder_only() {
    let (_scene, root) = scene();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for path in ["a/b", "a", "", ".", "./a/b"] {
        let path = Path::new(path);
        let found = listed(&open_below_to_list(&root, path).unwrap());
        let stepped = listed(&step_by_step(root.as_fd(), path, flags).unwrap());
        assert_eq!(found, stepped, "{}", path.display());
        assert!(!found.is_empty(), "{}", path.display());
        open_below(&root, path).unwrap();
    }
    for path in [
        "link",
        "link/b",
        "a/alias",
        "a/b/file",
        "../outside",
        "a/../..",
        "/",
        "none",
    ] {
        let path = Path::new(path);
        open_below(&root, path).unwrap_err();
        open_below_to_list(&root, path).unwrap_err();
        step_by_step(root.as_fd(), path, flags).unwrap_err();
    }
}

/// LIB-2: every name of a folder is listed, however many there are; an error of the visitor ends the listing.
#[test]
fn names_are_listed() {
    let (scene, root) = scene();
    let folder = open_below_to_list(&root, Path::new("a")).unwrap();
    assert_eq!(listed(&folder), ["alias", "b"]);
    for number in 0..3000 {
        fs::write(
            scene.path().join(format!("outside/a-rather-long-name-{number}")),
            "",
        )
        .unwrap();
    }
    let outside = open(&scene.path().join("outside")).unwrap();
    let many = open_below_to_list(&outside, Path::new("")).unwrap();
    assert_eq!(listed(&many).len(), 3000);
    let again = open_below_to_list(&outside, Path::new("")).unwrap();
    let mut seen = 0;
    let stopped = names(&again, |_| {
        seen += 1;
        Err(io::ErrorKind::Other.into())
    });
    assert_eq!((stopped.unwrap_err().kind(), seen), (io::ErrorKind::Other, 1));
}

/// SES-11: a mode is set on the file or folder itself, never behind a link.
#[test]
fn modes_are_set_without_following_links() {
    let (scene, root) = scene();
    let mode = |name: &str| {
        let data = fs::metadata(scene.path().join("root").join(name)).unwrap();
        data.permissions().mode() & 0o7777
    };
    let folder = open_below(&root, Path::new("a")).unwrap();
    set_folder_mode(&root, OsStr::new("a"), 0o600).unwrap();
    assert_eq!(mode("a"), 0o600);
    set_folder_mode(&root, OsStr::new("a"), 0o755).unwrap();
    let inner = open_below(&folder, Path::new("b")).unwrap();
    set_file_mode(&inner, OsStr::new("file"), 0o640).unwrap();
    assert_eq!((mode("a"), mode("a/b/file")), (0o755, 0o640));
    set_folder_mode(&root, OsStr::new("link"), 0o700).unwrap_err();
    set_file_mode(&folder, OsStr::new("alias"), 0o600).unwrap_err();
    set_folder_mode(&inner, OsStr::new("file"), 0o700).unwrap_err();
    assert_eq!((mode("a"), mode("a/b/file")), (0o755, 0o640));
}

/// SES-11: a file that changes after the clock was read has a stamp that is not older than the clock, except
/// for the tick of a coarse clock.
#[test]
fn stamps_follow_the_clock() {
    let before = stamp_time();
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("file");
    fs::write(&file, "1").unwrap();
    let data = fs::metadata(&file).unwrap();
    let stamp = data.ctime() * 1_000_000_000 + data.ctime_nsec();
    assert!(stamp + 20_000_000 >= before, "{stamp} {before}");
}
