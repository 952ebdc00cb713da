//! Databases that cannot be used as they are.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use windlass_core::clock::SystemClock;
use windlass_core::log::{LogError, Store};
use windlass_core::message::Role;
use windlass_store::maintenance::{backup, check, vacuum};

use super::bed::{Bed, append, open, said, the_end};

fn begin(path: &std::path::Path) -> Arc<dyn Store> {
    windlass_store::begin(path, Arc::new(SystemClock::default())).unwrap()
}

fn refused(path: &std::path::Path) -> LogError {
    match open(path) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

/// SES-1, SES-5: another program's database, a newer one and a file that is not a database are refused and
/// unchanged.
#[test]
fn foreign_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(
        path("text"),
        "not a database at all, but long enough to be read as one".repeat(40),
    )
    .unwrap();
    let other = rusqlite::Connection::open(path("other")).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    open(&path("newer")).map(drop).unwrap();
    let newer = rusqlite::Connection::open(path("newer")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    for name in ["text", "other", "newer"] {
        let error = refused(&path(name));
        assert!(matches!(error, LogError::Foreign(_)), "{name}: {error}");
    }
    assert!(refused(&path("newer")).to_string().contains("version 99"));
}

/// SES-5: requests to a store that is being opened wait for it; if it cannot be opened, the store reports the
/// cause.
#[tokio::test]
async fn what_is_asked_early_waits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.db");
    let store = begin(&file);
    store.set_preference("s", "n", Some("v")).await.unwrap();
    drop(store);
    let store = begin(&file);
    assert_eq!(store.preference("s", "n").await.unwrap().as_deref(), Some("v"));
    assert_eq!(store.ready().await, Ok(()));
    drop(store);
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let store = begin(&file);
    let written = store.set_preference("s", "n", None).await;
    assert!(written.is_err());
    let read = store.preference("s", "n").await.unwrap_err();
    assert!(matches!(&read, LogError::Foreign(_)), "{read}");
    assert_eq!(store.ready().await, Err(read));
}

/// SES-5, SAFE-7: the files are private to the user; a folder that cannot be written is a clear error.
#[tokio::test]
async fn files_are_private() {
    let bed = Bed::new();
    bed.session("one").await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bed.file()), 0o600);
    assert_eq!(mode(bed.file().parent().unwrap()), 0o700);
    let error = refused(std::path::Path::new("/proc/windlass/db"));
    assert!(matches!(error, LogError::ReadOnly(_)), "{error}");
}

/// SES-1: a check reads everything, a backup is a database, a vacuum loses nothing.
#[tokio::test]
async fn a_database_can_be_looked_after() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(
        &bed.store,
        &opened.lease,
        1,
        vec![said(Role::User, "hello there"), the_end("x")],
    )
    .await;
    let health = check(&bed.file()).unwrap();
    assert_eq!((health.sessions, health.entries), (1, 2));
    assert!(health.problems.is_empty(), "{health:?}");
    let copy = bed.file().with_file_name("copy.db");
    backup(&bed.file(), &copy).unwrap();
    assert!(backup(&bed.file(), &copy).is_err(), "nothing is overwritten");
    let copied = open(&copy).unwrap();
    assert!(copied.get(&"one".into()).await.unwrap().is_some());
    drop(bed.store.clone());
    vacuum(&bed.file()).unwrap();
    assert_eq!(bed.again().search("hello", None, 5).await.unwrap().len(), 1);
}

/// SES-5: a check names an entry that cannot be read.
#[tokio::test]
async fn a_check_finds_damage() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let events = vec![said(Role::User, "a"), said(Role::User, "b")];
    append(&bed.store, &opened.lease, 1, events).await;
    bed.store.sync().await.unwrap();
    assert!(bed.problems().is_empty());
    bed.damage(2);
    let problems = bed.problems();
    assert!(
        problems.len() == 1 && problems[0].contains("entry 2"),
        "{problems:?}"
    );
}
