use super::*;
use windlass_core::clock::SystemClock;
use windlass_testkit::at_once;

fn machine(folder: &Path) -> Machine {
    let store = windlass_store::open(folder.join("test.db"), Arc::new(SystemClock::default())).unwrap();
    Machine::new(folder, store)
}

/// UI-2: inputs are stored for later sessions, readable only by this user.
#[tokio::test]
async fn what_was_sent_is_remembered() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path());
    assert_eq!(machine.history(), Vec::<String>::new());
    machine.remember("first\nsecond line");
    let found = || machine.history() == ["first\nsecond line"];
    assert!(windlass_testkit::eventually(windlass_testkit::PATIENCE, found));
    let mode = std::fs::metadata(folder.path().join("history.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    machine.remember(&"x".repeat(MAX_REMEMBERED + 1));
    machine.choose("theme", "dark");
    for _ in 0..1_000 {
        if machine.chosen("theme").await.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(machine.chosen("theme").await.as_deref(), Some("dark"));
}

/// UI-2: a history of any length is cut to its end, in complete lines.
#[tokio::test]
async fn a_long_history_keeps_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path());
    let path = folder.path().join("history.jsonl");
    let long = "x".repeat(5_000);
    for count in [900_u32, 4_000] {
        let lines = (0..count).map(|number| format!("\"{number} {long}\"\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > MAX_HISTORY_BYTES);
        let history = machine.history();
        assert_eq!(history.last(), Some(&format!("{} {long}", count - 1)));
        assert!((800..=MAX_HISTORY).contains(&history.len()), "{}", history.len());
        assert!(std::fs::metadata(&path).unwrap().len() <= MAX_HISTORY_BYTES);
        assert_eq!(machine.history(), history);
    }
}

/// UI-2: inputs sent while another process cuts the history are stored.
#[tokio::test]
async fn nothing_sent_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path());
    let line = format!("\"{}\"\n", "x".repeat(5_000));
    std::fs::write(folder.path().join("history.jsonl"), line.repeat(900)).unwrap();
    at_once(8, |number| {
        if number % 2 == 0 {
            machine.remember(&number.to_string());
        } else {
            machine.shorten().unwrap();
        }
    });
    let kept = || {
        let history = machine.history();
        ["0", "2", "4", "6"]
            .iter()
            .all(|said| history.iter().any(|line| line == said))
    };
    assert!(windlass_testkit::eventually(windlass_testkit::PATIENCE, kept));
}

/// UI-2: images are recognized by their content, not by their name.
#[tokio::test]
async fn images_are_known_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("real.png"), [0x89, b'P', b'N', b'G', 1, 2]).unwrap();
    std::fs::write(path("fake.png"), "text").unwrap();
    let image = machine.image(&path("real.png")).await.unwrap();
    assert_eq!(
        (image.name.as_str(), image.media_type.as_str()),
        ("real.png", "image/png")
    );
    assert_eq!(machine.image(&path("fake.png")).await, None);
    assert_eq!(machine.image(&path("none.png")).await, None);
}

/// UI-2: the files of a folder are offered, except those that version control ignores.
#[tokio::test]
async fn ignored_files_are_not_offered() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path());
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::create_dir_all(root.join(".git")).unwrap();
    for name in ["src/main.rs", "notes.txt", "big.log", ".gitignore"] {
        std::fs::write(root.join(name), "*.log\n").unwrap();
    }
    let root = root.display().to_string();
    let files = machine.files(&root, None).await;
    assert_eq!(files, ["notes.txt", "src/main.rs"]);
    let around = machine.files(&root, Some("../")).await;
    assert!(around.contains(&"../project/".to_owned()), "{around:?}");
    let above = format!("{root}/src/");
    assert_eq!(
        machine.files(&root, Some(&above)).await,
        [format!("{above}main.rs")]
    );
}
