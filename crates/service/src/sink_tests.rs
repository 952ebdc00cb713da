use std::pin::pin;

use rusqlite::Connection;
use windlass_api::SessionEvent;
use windlass_core::clock::SystemClock;
use windlass_core::log::{NewSession, Store};

use super::*;

const REFUSE: &str = "CREATE TRIGGER refuse BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'no'); END";
const ALLOW: &str = "DROP TRIGGER refuse";

/// A sink of a new session, and another way to its database.
struct Stage {
    _folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    sink: Sink,
    other: Connection,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.db");
        let store = windlass_store::open(&path, Arc::new(SystemClock::default())).unwrap();
        let opened = store.create(NewSession::default(), "me").await.unwrap();
        let sink = Sink::new(
            Arc::clone(&store) as _,
            Arc::new(SystemClock::default()),
            opened.lease,
            Feed::new(0, 16),
            0,
        );
        Self {
            _folder: folder,
            store,
            sink,
            other: Connection::open(&path).unwrap(),
        }
    }

    async fn stored(&self) -> Vec<(u64, Event)> {
        let session = &self.sink.log.lease.session;
        let entries = self.store.entries(session, 0, 100).await.unwrap();
        entries
            .into_iter()
            .map(|entry| (entry.seq, entry.event))
            .collect()
    }
}

fn warning(text: &str) -> Event {
    Event::Warning {
        message: text.to_owned(),
    }
}

fn title() -> Event {
    Event::Session(SessionEvent::Title {
        title: "told before".to_owned(),
    })
}

/// SES-5: a refused event leaves no gap in the numbers and is not stored later; events published before it
/// are.
#[tokio::test]
async fn a_refused_event_leaves_no_gap() {
    let stage = Stage::new().await;
    stage.sink.mention(title());
    stage.other.execute_batch(REFUSE).unwrap();
    let refused = stage
        .sink
        .store(vec![warning("refused")], Durability::Process)
        .await;
    assert!(refused.is_err());
    stage.other.execute_batch(ALLOW).unwrap();
    let stored = stage
        .sink
        .store(vec![warning("taken")], Durability::Process)
        .await;
    assert_eq!(stored, Ok(()));
    assert_eq!(stage.stored().await, [(1, title()), (2, warning("taken"))]);
}

/// SES-5: if another event was published after one that is then refused, nothing more is written: a record
/// has no gaps.
#[tokio::test]
async fn nothing_is_written_behind_a_gap() {
    let stage = Stage::new().await;
    stage
        .other
        .execute_batch(&format!("BEGIN IMMEDIATE; {REFUSE}"))
        .unwrap();
    let mut storing = pin!(stage.sink.store(vec![warning("refused")], Durability::Process));
    assert!(futures_util::poll!(&mut storing).is_pending());
    stage.sink.mention(title());
    stage.other.execute_batch("COMMIT").unwrap();
    assert!(storing.await.is_err());
    assert!(stage.sink.is_broken());
    stage.other.execute_batch(ALLOW).unwrap();
    stage.sink.settle().await;
    assert!(
        stage
            .sink
            .store(vec![warning("b")], Durability::Process)
            .await
            .is_err()
    );
    assert_eq!(stage.stored().await, []);
}

/// SES-4, SES-5: a refused background write is repeated with the next write.
#[tokio::test]
async fn what_was_told_is_written_again() {
    let stage = Stage::new().await;
    stage.other.execute_batch(REFUSE).unwrap();
    let result = Event::ToolResult {
        call_id: "c1".into(),
        name: "bash".to_owned(),
        content: "done".to_owned(),
        is_error: false,
        details: None,
    };
    stage.sink.record(result.clone()).await.unwrap();
    stage.sink.settle().await;
    stage.other.execute_batch(ALLOW).unwrap();
    let stored = stage.sink.store(vec![warning("next")], Durability::Process).await;
    assert_eq!(stored, Ok(()));
    assert_eq!(stage.stored().await, [(1, result), (2, warning("next"))]);
}
