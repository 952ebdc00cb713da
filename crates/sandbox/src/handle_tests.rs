use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

struct Scene {
    _folder: tempfile::TempDir,
    root: PathBuf,
    roots: Roots,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "work/src", "work/.ssh", "outside"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        for (name, text) in [
            ("work/a", "a"),
            ("work/.env", "SECRET"),
            ("work/.env.local", "SECRET"),
            ("work/.env.example", "example"),
            ("work/.ssh/key", "SECRET"),
            ("outside/file", "SECRET"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let denied = [
            ".env*".into(),
            root.join("work/.ssh"),
            root.join("work/absent"),
            root.join("work/secret"),
        ];
        let roots = Roots::new(&[root.join("work")], &denied).unwrap();
        Self {
            _folder: folder,
            root,
            roots,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        // Not joined: the tests are about the spelling of a path.
        PathBuf::from(format!("{}/{path}", self.root.display()))
    }

    fn read(&self, path: &str) -> String {
        match self.roots.open(&self.at(path), OpenMode::Read) {
            Ok(mut file) => {
                let mut text = String::new();
                file.read_to_string(&mut text)
                    .map_or_else(|error| error.to_string(), |_| text)
            }
            Err(error) => self.message(&error),
        }
    }

    fn message(&self, error: &PathDenied) -> String {
        error
            .to_string()
            .replace(&format!("{}/", self.root.display()), "")
    }
}

/// SAFE-3 (S6.10): denied paths are denied under every spelling; example files are not denied.
#[test]
fn denied_paths_are_denied() {
    let scene = Scene::new();
    symlink(".ssh", scene.at("work/keys")).unwrap();
    symlink(".env", scene.at("work/harmless")).unwrap();
    symlink("a", scene.at("work/.env.link")).unwrap();
    fs::hard_link(scene.at("work/a"), scene.at("work/secret")).unwrap();
    for path in [
        "work/.env",
        "work/.env.local",
        "work/./src/../.env",
        "work/.ssh/key",
        "work/.ssh",
        "work/keys/key",
        "work/harmless",
        "work/.env.link",
        "work/.ssh/absent/file",
        "work/a",
    ] {
        assert_eq!(
            scene.read(path),
            format!("Path is denied by security policy: {path}")
        );
    }
    assert_eq!(scene.read("work/.env.example"), "example");
}

/// SAFE-3 (S6.10): denied paths that do not exist yet are denied, too.
#[test]
fn absent_denied_paths_cannot_be_made() {
    let scene = Scene::new();
    symlink("absent", scene.at("work/dangling")).unwrap();
    for path in [
        "work/absent",
        "work/absent/file",
        "work/.env.new",
        "work/src/.env",
        "work/dangling",
    ] {
        let open = scene.roots.open(&scene.at(path), OpenMode::Create).map(drop);
        let place = scene.roots.locate(&scene.at(path), Parents::Make).map(drop);
        for result in [open, place] {
            let message = result.map_err(|error| scene.message(&error));
            assert_eq!(message, Err(format!("Path is denied by security policy: {path}")));
        }
    }
    assert!(!scene.at("work/absent").exists());
}

/// SAFE-3 (S6.11): a link that leads out is refused; one that stays inside is followed.
#[test]
fn links_may_not_lead_out() {
    let scene = Scene::new();
    symlink("../outside", scene.at("work/out")).unwrap();
    symlink(scene.at("outside/new"), scene.at("work/dangling")).unwrap();
    symlink("../a", scene.at("work/src/in")).unwrap();
    for path in [
        "work/out/file",
        "work/out",
        "outside/file",
        "work/../outside/file",
        "work/dangling",
        "work/out/new",
    ] {
        assert_eq!(scene.read(path), format!("Path is outside allowed paths: {path}"));
    }
    let proc = Path::new("/proc/self/root").join(scene.at("outside/file").strip_prefix("/").unwrap());
    assert!(matches!(
        scene.roots.open(&proc, OpenMode::Read),
        Err(PathDenied::Outside(_))
    ));
    let relative = scene.roots.open(Path::new("work/a"), OpenMode::Read);
    assert!(matches!(relative, Err(PathDenied::Outside(_))));
    assert_eq!(scene.read("work/src/in"), "a");
    assert!(scene.read("work/none").contains("No such file"));
}

#[test]
fn files_are_written_made_and_replaced() {
    let scene = Scene::new();
    let path = scene.at("work/src/new/deep/file");
    assert!(scene.roots.locate(&path, Parents::Exist).is_err());
    let place = scene.roots.locate(&path, Parents::Make).unwrap();
    place.replace(b"one", None).unwrap();
    assert!(
        place
            .replace(b"two", None)
            .unwrap_err()
            .to_string()
            .contains("exists")
    );
    let mode = fs::Permissions::from_mode(0o640);
    place.replace(b"three", Some(mode)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"three");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    let mut file = scene.roots.open(&path, OpenMode::Write).unwrap();
    file.write_all(b"T").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"Three");
    place.remove().unwrap();
    scene.roots.open(&path, OpenMode::Create).unwrap();
    assert!(scene.roots.open(&path, OpenMode::Create).is_err());
    assert!(scene.roots.open(&scene.at("work"), OpenMode::Read).is_ok());
    assert!(!scene.roots.denies(&path) && scene.roots.denies(&scene.at("work/.env")));
}

/// SAFE-3 (S6.12): while a folder is swapped for a link that leads out, nothing outside is ever opened or
/// made.
#[test]
fn swaps_never_yield_what_is_outside() {
    let scene = Scene::new();
    let (target, other) = (scene.at("work/target"), scene.at("work/other"));
    fs::create_dir(&target).unwrap();
    fs::write(target.join("file"), "inside").unwrap();
    symlink(scene.at("outside"), &other).unwrap();
    let done = AtomicBool::new(false);
    let swap = || {
        let mut swaps = 0_u32;
        while !done.load(Ordering::Relaxed) {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(rustix::fs::CWD, &target, rustix::fs::CWD, &other, exchange).unwrap();
            swaps += 1;
        }
        swaps
    };
    let mut inside = 0;
    let swaps = thread::scope(|scope| {
        let swapping = scope.spawn(swap);
        for round in 0..4000 {
            match scene.read("work/target/file").as_str() {
                "inside" => inside += 1,
                text => assert!(!text.contains("SECRET"), "{text}"),
            }
            let new = scene.at(&format!("work/target/new-{round}"));
            if let Ok(place) = scene.roots.locate(&new, Parents::Make) {
                let _ = place.replace(b"x", None);
            }
        }
        done.store(true, Ordering::Relaxed);
        swapping.join().unwrap()
    });
    assert!(inside > 0 && swaps > 0, "{inside} inside, {swaps} swaps");
    assert_eq!(fs::read_dir(scene.at("outside")).unwrap().count(), 1);
}

/// SAFE-3 (S6.12): the control for the test above: code that checks one path and then opens it again gets out
/// with a swap in between, and the handle does not.
#[test]
fn a_swap_between_check_and_use() {
    let scene = Scene::new();
    let (target, other) = (scene.at("work/target"), scene.at("work/other"));
    fs::create_dir(&target).unwrap();
    fs::write(target.join("file"), "inside").unwrap();
    symlink(scene.at("outside"), &other).unwrap();
    let swap = || {
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            &target,
            rustix::fs::CWD,
            &other,
            rustix::fs::RenameFlags::EXCHANGE,
        )
        .unwrap();
    };

    let checked = fs::canonicalize(target.join("file")).unwrap();
    assert!(checked.starts_with(scene.at("work")));
    let place = scene.roots.locate(&target.join("file"), Parents::Exist).unwrap();
    swap();
    assert_eq!(
        fs::read_to_string(target.join("file")).unwrap(),
        "SECRET",
        "the naive way is fooled"
    );
    place.replace(b"changed", None).ok();
    let text = fs::read_to_string(scene.at("outside/file")).unwrap_or_default();
    assert_eq!(text, "SECRET", "the handle changes nothing outside");
}

/// While a file is written, no part of it has a name, so that a process that is killed leaves nothing.
#[test]
fn half_a_file_has_no_name() {
    let scene = Scene::new();
    let folder = scene.at("work");
    if crate::backend::files::create_unnamed(File::open(&folder).unwrap().as_fd()).is_none() {
        return;
    }
    let content = vec![b'x'; 64 << 20];
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for entry in fs::read_dir(&folder).unwrap().flatten() {
                    let is_temporary = entry.file_name().to_string_lossy().starts_with(".windlass-");
                    let Ok(data) = entry.metadata() else { continue };
                    assert!(!is_temporary || data.len() == content.len() as u64, "{data:?}");
                }
            }
        });
        let permissions = fs::metadata(folder.join("a")).unwrap().permissions();
        let place = scene.roots.locate(&folder.join("a"), Parents::Exist).unwrap();
        place.replace(&content, Some(permissions)).unwrap();
        let place = scene.roots.locate(&folder.join("new"), Parents::Exist).unwrap();
        place.create(&content, None).unwrap();
        assert!(place.create(b"again", None).is_err());
        is_done.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
    });
    for name in ["a", "new"] {
        assert_eq!(
            fs::metadata(folder.join(name)).unwrap().len(),
            content.len() as u64
        );
    }
    let left = fs::read_dir(&folder).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".windlass-"));
    assert_eq!(left.count(), 0);
}
