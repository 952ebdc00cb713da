use std::pin::pin;

use rusqlite::Connection;
use windlass_api::SessionEvent;
use windlass_core::clock::SystemClock;
use windlass_core::log::{NewSession, Store};

use super::*;

const REFUSE: &str = "CREATE TRIGGER refuse BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'no'); END";
const ALLOW: &str = "DROP TRIGGER refuse";

/// A sink of a new session, and another way to its database.
struct Desk {
    _folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    sink: Sink,
    other: Connection,
}

impl Desk {
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

/// SES-5: what was refused leaves no gap in the numbers and is not stored later; what was told before it is.
#[tokio::test]
async fn a_refused_event_leaves_no_gap() {
    let desk = Desk::new().await;
    desk.sink.mention(title());
    desk.other.execute_batch(REFUSE).unwrap();
    let refused = desk
        .sink
        .store(vec![warning("refused")], Durability::Process)
        .await;
    assert!(refused.is_err());
    desk.other.execute_batch(ALLOW).unwrap();
    let stored = desk.sink.store(vec![warning("taken")], Durability::Process).await;
    assert_eq!(stored, Ok(()));
    assert_eq!(desk.stored().await, [(1, title()), (2, warning("taken"))]);
}

/// SES-5: when something was told after what is refused then, nothing more is written: a record has no gaps.
#[tokio::test]
async fn nothing_is_written_behind_a_gap() {
    let desk = Desk::new().await;
    desk.other
        .execute_batch(&format!("BEGIN IMMEDIATE; {REFUSE}"))
        .unwrap();
    let mut storing = pin!(desk.sink.store(vec![warning("refused")], Durability::Process));
    assert!(futures_util::poll!(&mut storing).is_pending());
    desk.sink.mention(title());
    desk.other.execute_batch("COMMIT").unwrap();
    assert!(storing.await.is_err());
    assert!(desk.sink.is_broken());
    desk.other.execute_batch(ALLOW).unwrap();
    desk.sink.settle().await;
    assert!(
        desk.sink
            .store(vec![warning("b")], Durability::Process)
            .await
            .is_err()
    );
    assert_eq!(desk.stored().await, []);
}

/// SES-4, SES-5: what was written while nobody waited, and refused, is stored with the next write.
#[tokio::test]
async fn what_was_told_is_written_again() {
    let desk = Desk::new().await;
    desk.other.execute_batch(REFUSE).unwrap();
    let result = Event::ToolResult {
        call_id: "c1".into(),
        name: "bash".to_owned(),
        content: "done".to_owned(),
        is_error: false,
        details: None,
    };
    desk.sink.record(result.clone()).await.unwrap();
    desk.sink.settle().await;
    desk.other.execute_batch(ALLOW).unwrap();
    let stored = desk.sink.store(vec![warning("next")], Durability::Process).await;
    assert_eq!(stored, Ok(()));
    assert_eq!(desk.stored().await, [(1, result), (2, warning("next"))]);
}
