//! Databases that cannot be used as they are.

use std::sync::Arc;

use windlass_core::clock::SystemClock;
use windlass_core::log::LogError;

use super::bed::{open, server};

fn refused(url: &str) -> LogError {
    match open(url) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

/// SES-1, DIST-2: each thing that keeps a database from being used is named with what to do, and no password is shown.
#[test]
fn refusals_say_what_to_do() {
    let database = server().empty();
    server().sql("postgres", "CREATE ROLE guest LOGIN PASSWORD 'hunter2'");
    let guest = server().url_of("guest:hunter2", &database);
    let nowhere = "postgres://me:hunter2@127.0.0.1:1/db".to_owned();
    let no_server = "postgres://me:hunter2@%2Fnonexistent/db".to_owned();
    let stranger = server().url_of("stranger:hunter2", &database);
    let absent = server().url("absent");
    for (url, parts) in [
        (&guest, ["may not make the tables", "GRANT CREATE ON DATABASE"]),
        (
            &nowhere,
            [
                "postgres://me@127.0.0.1:1/db cannot be used",
                "that the server runs",
            ],
        ),
        (
            &no_server,
            [
                "postgres://me@/nonexistent/db cannot be used",
                "that the server runs",
            ],
        ),
        (&stranger, ["refused the user", "check the user and the password"]),
        (&absent, ["has no such database", "createdb absent"]),
    ] {
        let error = refused(url).to_string();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert_eq!(
        server().sql(
            &database,
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'windlass'"
        ),
        "0",
        "nothing is half made"
    );
}

/// SES-1, DIST-2: a database with newer tables is left alone.
#[test]
fn newer_tables_are_refused() {
    let database = server().database();
    let url = server().url(&database);
    open(&url).map(drop).unwrap();
    server().sql(&database, "UPDATE windlass.version SET number = 99");
    let error = refused(&url);
    assert!(
        matches!(&error, LogError::Foreign(text) if text.contains("version 99")),
        "{error}"
    );
    assert_eq!(
        server().sql(&database, "SELECT number FROM windlass.version"),
        "99"
    );
}

/// SES-1, DIST-2: processes that open a new database at the same time make its tables once.
#[test]
fn tables_are_made_once() {
    let url = server().url(&server().empty());
    let opened: Vec<_> = (0..8)
        .map(|_| windlass_store::begin(&url, Arc::new(SystemClock::default())).unwrap())
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for store in opened {
        assert_eq!(runtime.block_on(store.ready()), Ok(()));
    }
}

/// SES-5, DIST-2: requests to a store that is being opened wait for it; if it cannot be opened, they get the cause.
#[tokio::test]
async fn what_is_asked_early_waits() {
    let begin = |url: &str| windlass_store::begin(url, Arc::new(SystemClock::default())).unwrap();
    let url = server().url(&server().empty());
    begin(&url).set_preference("s", "n", Some("v")).await.unwrap();
    assert_eq!(
        begin(&url).preference("s", "n").await.unwrap().as_deref(),
        Some("v")
    );
    let nowhere = begin("postgres://me@%2Fnonexistent/db");
    let error = nowhere.preference("s", "n").await.unwrap_err();
    assert_eq!(nowhere.ready().await, Err(error));
}
