//! Locations of the folders, and detection of projects.

use std::task::{Context, Poll, Waker};

use super::*;

fn resolve(variables: &[(&str, &str)]) -> Result<Folders, FoldersError> {
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
    let found = Folders::resolve(&|name| find(name).map(|(_, value)| (*value).to_owned()));
    // These tests are about our own folders.
    found.map(|folders| Folders {
        home: None,
        ..folders
    })
}

fn folders(config: &str, data: &str, state: &str, cache: &str) -> Result<Folders, FoldersError> {
    let path = PathBuf::from;
    Ok(Folders {
        config: path(config),
        data: path(data),
        state: path(state),
        cache: path(cache),
        home: None,
    })
}

/// EXT-6
#[test]
fn folders_follow_the_environment() {
    let home = ("HOME", "/home/ann");
    let below_home = || {
        folders(
            "/home/ann/.config/windlass",
            "/home/ann/.local/share/windlass",
            "/home/ann/.local/state/windlass",
            "/home/ann/.cache/windlass",
        )
    };
    assert_eq!(resolve(&[home]), below_home());
    assert_eq!(
        resolve(&[home, ("XDG_CONFIG_HOME", "relative"), ("XDG_CACHE_HOME", "")]),
        below_home()
    );
    let own = folders("/x/config", "/x/data", "/x/state", "/x/cache");
    assert_eq!(
        resolve(&[home, ("WINDLASS_HOME", "/x"), ("XDG_CONFIG_HOME", "/c")]),
        own
    );
    let xdg = [
        ("XDG_CONFIG_HOME", "/c"),
        ("XDG_DATA_HOME", "/d"),
        ("XDG_STATE_HOME", "/s"),
        ("XDG_CACHE_HOME", "/k"),
    ];
    assert_eq!(
        resolve(&xdg),
        folders("/c/windlass", "/d/windlass", "/s/windlass", "/k/windlass")
    );
    assert_eq!(resolve(&[]), Err(FoldersError::NoHome));
    assert_eq!(resolve(&[("HOME", "ann")]), Err(FoldersError::NoHome));
    assert_eq!(
        resolve(&[home, ("WINDLASS_HOME", "x")]),
        Err(FoldersError::RelativeHome)
    );
}

/// CFG-1
#[test]
fn the_project_file_is_the_nearest_inside_the_repository() {
    let root = tempfile::tempdir().unwrap();
    let make = |file: &str| {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        file
    };
    let folders = Folders::below(&root.path().join("home"), None);
    let find = |cwd: &str| {
        std::fs::create_dir_all(root.path().join(cwd)).unwrap();
        folders.project_file(&root.path().join(cwd))
    };
    let outer = make(".windlass/config.toml");
    assert_eq!(find("plain/deep"), Some(outer));
    make("repo/.git/HEAD");
    assert_eq!(find("repo/src"), None);
    let inner = make("repo/.windlass/config.toml");
    assert_eq!(find("repo/src"), Some(inner.clone()));
    assert_eq!(find("repo"), Some(inner));
    make("repo/worktree/.git");
    assert_eq!(find("repo/worktree/src"), None);
}

/// TOOL-5, SAFE-6: tools alone make a project; an empty folder does not, nor does the one with Windlass's own
/// files.
#[test]
fn tools_alone_make_a_project() {
    let root = tempfile::tempdir().unwrap();
    let folders = Folders::below(&root.path().join("home/.windlass"), None);
    let repo = root.path().join("home/repo");
    std::fs::create_dir_all(repo.join(".windlass")).unwrap();
    std::fs::create_dir_all(root.path().join("home/.windlass/config")).unwrap();
    std::fs::write(root.path().join("home/.windlass/tools.yaml"), "").unwrap();
    assert_eq!(folders.project(&repo), None);
    std::fs::write(repo.join(".windlass/tools.yaml"), "").unwrap();
    assert_eq!(
        folders.project(&repo.join("src")),
        Some(Project { root: repo.clone() })
    );
    assert_eq!(folders.project_file(&repo), None);
    std::os::unix::fs::symlink("nowhere", repo.join(".windlass/config.toml")).unwrap();
    assert!(folders.project_file(&repo).is_some());
}

/// CFG-1
#[test]
fn the_users_own_folder_is_no_project() {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join(".windlass");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("config.toml"), "").unwrap();
    std::fs::write(root.path().join(".git"), "").unwrap();
    let elsewhere = Folders::below(&root.path().join("home"), None);
    assert_eq!(elsewhere.project_file(root.path()), Some(own.join("config.toml")));
    let same = Folders {
        config: own,
        ..elsewhere
    };
    assert_eq!(same.project_file(root.path()), None);
}

/// A project is searched once within the cache, and anew outside of it and for another task.
#[test]
fn the_project_cache_ends_with_its_work() {
    let folder = tempfile::tempdir().unwrap();
    let (cwd, folders) = (folder.path(), resolve(&[("HOME", "/home/ann")]).unwrap());
    let found = || folders.project(cwd).is_some();
    let mut first = pin!(with_project_cache_async(async {
        let before = found();
        let mut polled = false;
        poll_fn(|_| match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        (before, found())
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut cx).is_pending());
    std::fs::create_dir(cwd.join(".windlass")).unwrap();
    std::fs::write(cwd.join(".windlass/config.toml"), "").unwrap();
    assert!(found(), "another task searches for itself");
    assert!(with_project_cache(found));
    assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready((false, false)));

    let panicked = std::panic::catch_unwind(|| with_project_cache(|| panic!("{}", found())));
    assert!(panicked.is_err());
    std::fs::remove_file(cwd.join(".windlass/config.toml")).unwrap();
    assert!(!found(), "a panic ends the cache");
}
