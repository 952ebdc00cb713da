//! Processes that stop in the middle, and stores that fail.

use serde_json::json;
use windlass_api::{Begin, Client, Event, FailureKind};
use windlass_core::log::{INTERRUPTED_TEXT, SessionLog};
use windlass_core::script::Scene;
use windlass_service::Options;
use windlass_store::SqliteStore;

use super::bed::{Bed, all, answer, new_session, say};

/// The name of a process of this machine that is gone.
fn dead_owner() -> String {
    let own = SqliteStore::owner();
    let host = own.split('/').next().unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    format!("{host}/{pid}/1/x")
}

/// SES-5: what a stopped process left is closed when the session is opened: the input is there, the finished call keeps its
/// result and is not run again, the other is told as interrupted, and the next request is valid.
#[tokio::test]
async fn a_stopped_turn_is_closed_when_it_is_opened() {
    let bed = Bed::new([
        Scene::calls(vec![
            ("c1", "note", json!({ "text": "once" })),
            ("c2", "wait", json!({})),
        ]),
        Scene::text("went on"),
    ]);
    let service = bed.service_of(dead_owner(), Options::default());
    let session = new_session(&service).await.id;
    let _events = service.submit(say(&session, "go")).await.unwrap();
    // As if the process were killed here: nobody says anything more, and nothing is given back.
    while !bed
        .store()
        .entries(&session, 0, 100)
        .await
        .unwrap()
        .iter()
        .any(|entry| matches!(entry.event, Event::ToolResult { .. }))
    {
        tokio::task::yield_now().await;
    }
    std::mem::forget(service);

    let again = bed.service();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    let record = bed.store().entries(&session, 0, 100).await.unwrap();
    assert!(matches!(
        record.last().unwrap().event,
        Event::Failed {
            reason: FailureKind::Interrupted,
            ..
        }
    ));
    assert_eq!(answer(&again, &session, "go on").await, "went on");
    let last = bed.provider.seen().last().unwrap().clone();
    assert!(
        last.contains("#c1: noted") && last.contains(INTERRUPTED_TEXT),
        "{last}"
    );
    assert_eq!(*bed.notes.lock().unwrap(), ["once"], "nothing ran twice");
}

/// SES-12: an owner that was overtaken stops: its turn ends as failed, and nothing more is written.
#[tokio::test]
async fn an_overtaken_owner_stops() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({})), Scene::text("never stored")]);
    let service = bed.service_of(dead_owner(), Options::default());
    let session = new_session(&service).await.id;
    let events = service.submit(say(&session, "go")).await.unwrap();
    let other = bed.service();
    other.begin(Begin::Resume(session.clone())).await.unwrap();
    bed.gate.notify_one();
    let events = all(events).await;
    let Event::Failed { reason, message, .. } = &events.last().unwrap().event else {
        panic!("{events:?}")
    };
    assert_eq!(*reason, FailureKind::Log, "{message}");
    assert!(message.contains("taken over"), "{message}");
    let record = bed.store().entries(&session, 0, 100).await.unwrap();
    let count = record.iter().filter(|entry| entry.event.is_terminal()).count();
    assert_eq!(count, 1, "only the new owner wrote an end");
}
