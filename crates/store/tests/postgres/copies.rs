//! Sessions that move between databases.

use std::sync::Arc;

use proptest::prelude::*;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::Event;
use windlass_core::log::{Batch, Booking, DraftChange, LogError, NewSession, SpentBy, Store, record};
use windlass_core::message::Message;
use windlass_core::model::Usage;
use windlass_store::CopyReport;

use super::bed::{open, server};
use super::content::event;

async fn copy(from: &str, to: &str) -> Result<CopyReport, LogError> {
    windlass_store::copy(from, to, Arc::new(SystemClock::default()), |_, _, _| {}).await
}

async fn write(store: &Arc<dyn Store>, id: &str, events: &[Event]) {
    let new = NewSession {
        id: Some(id.into()),
        place: "/project".to_owned(),
        time: Timestamp(3),
        ..NewSession::default()
    };
    let opened = store.create(new, &windlass_store::owner()).await.unwrap();
    for (seq, event) in (1..).zip(events) {
        let draft = match event {
            Event::Message { message } => DraftChange::Set(Box::new(Message::clone(message))),
            _ => DraftChange::Keep,
        };
        let batch = Batch {
            first_seq: seq,
            events: vec![event.clone()],
            time: Timestamp(100 + seq),
            draft,
            bookings: vec![Booking {
                time: Timestamp(seq),
                provider: "p".to_owned(),
                model: "m".to_owned(),
                cause: "turn".to_owned(),
                usage: Usage {
                    input: seq,
                    output: 1,
                    ..Usage::default()
                },
                cost_usd: (seq % 2 == 0).then_some(0.125),
            }],
            ..Batch::default()
        };
        store.append(&opened.lease, batch).await.unwrap();
    }
    let content = std::io::Cursor::new(id.repeat(100_000).into_bytes());
    let limits = windlass_core::log::BlobLimits {
        count: 100,
        bytes: 1 << 30,
    };
    store
        .attach(&id.into(), "output", Box::new(content), limits)
        .await
        .unwrap();
    store.release(&opened.lease).await.unwrap();
}

/// Everything that a reader sees of a session.
async fn seen(store: &Arc<dyn Store>, id: &str) -> String {
    let id = id.into();
    let entries = record(&**store, &id).await.unwrap();
    let info = store.get(&id).await.unwrap();
    let opened = store.open(&id, "reader").await.unwrap();
    store.release(&opened.lease).await.unwrap();
    let spent = store.spent(Some(&id), SpentBy::Model).await.unwrap();
    let attached = store.attachments(&id).await.unwrap();
    let content = store.content(&attached[0].address).await.unwrap().unwrap();
    let text = (entries, info, opened.draft, spent);
    format!(
        "{}{attached:?}{}",
        serde_json::to_string(&text).unwrap(),
        content.len()
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// DIST-8: whatever a session contains, it is the same after it was copied from SQLite to Postgres and back.
    #[test]
    fn sessions_are_copied_without_loss(events in prop::collection::vec(event(), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name).join("windlass.db").display().to_string();
            let (first, second, last) = (path("first"), server().url(&server().database()), path("last"));
            let store = open(&first).unwrap();
            write(&store, "one", &events).await;
            write(&store, "two", &events).await;
            let done = CopyReport { copied: 2, present: 0 };
            assert_eq!(copy(&first, &second).await, Ok(done));
            assert_eq!(copy(&second, &last).await, Ok(done));
            let stores = [store, open(&second).unwrap(), open(&last).unwrap()];
            for id in ["one", "two"] {
                let mut all = Vec::new();
                for store in &stores {
                    all.push(seen(store, id).await);
                }
                assert_eq!(all[0], all[1]);
                assert_eq!(all[0], all[2]);
            }
            assert_eq!(copy(&first, &last).await, Ok(CopyReport { copied: 0, present: 2 }));
        });
    }
}

/// DIST-8: a session in use, and one with other content in the target, are refused before anything is copied; a copy that
/// was stopped goes on.
#[tokio::test]
async fn clashes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.db").display().to_string();
    let store = open(&file).unwrap();
    let event = || super::events::said(windlass_core::message::Role::User, "hello");
    for id in ["a", "b", "c"] {
        write(&store, id, &[event()]).await;
    }
    let url = server().url(&server().database());
    let target = open(&url).unwrap();
    let owner = windlass_store::owner();
    let lease = store.open(&"c".into(), &owner).await.unwrap().lease;
    let busy = copy(&file, &url).await;
    assert!(matches!(busy, Err(LogError::Busy { .. })), "{busy:?}");
    store.release(&lease).await.unwrap();
    write(&target, "b", &[event()]).await;
    let clash = copy(&file, &url).await.unwrap_err().to_string();
    assert!(
        clash.contains("session b exists") && clash.contains("sessions delete b"),
        "{clash}"
    );
    assert!(
        target.get(&"a".into()).await.unwrap().is_none(),
        "nothing was copied"
    );
    target.delete(&"b".into()).await.unwrap();
    assert_eq!(
        copy(&file, &url).await,
        Ok(CopyReport {
            copied: 3,
            present: 0
        })
    );
    // As after a copy that was stopped before its end.
    target.delete(&"c".into()).await.unwrap();
    assert_eq!(
        copy(&file, &url).await,
        Ok(CopyReport {
            copied: 1,
            present: 2
        })
    );
}
