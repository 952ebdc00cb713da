//! Processes that are killed in the middle, and stores that fail.

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{
    Begin, Client, Commands, Event, EventStream, FailureKind, OnBusy, Presence, SessionId, Submission,
    Waiting,
};
use windlass_core::log::INTERRUPTED_TEXT;
use windlass_core::script::Scene;
use windlass_service::{Options, Service};

use super::bed::{Bed, all, answer, new_session, say, texts};

/// Returns the owner name of a process of this machine that no longer exists.
fn dead_owner() -> String {
    let own = windlass_store::owner();
    let host = own.split('/').next().unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    format!("{host}/{pid}/1/x")
}

/// SES-5: a turn of a killed process is closed when the session is opened: the input is there, the finished
/// call keeps its result and is not run again, the other is reported as interrupted, and the next request is
/// valid.
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
    // As if the process were killed here: no further events, and the lease is not released.
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

/// SES-12: an owner that lost its lease stops: its turn ends as failed, and nothing more is written.
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

/// Sends a message to the running turn.
async fn steer(service: &Service, session: &SessionId, text: &str) {
    let submission = Submission {
        on_busy: OnBusy::Steer,
        ..say(session, text)
    };
    service.submit(submission).await.unwrap();
}

/// Reads until a call has started. Returns the messages until then.
async fn called(events: &mut EventStream) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolCall { .. }) {
            return texts(&seen);
        }
        seen.push(envelope);
    }
    panic!("no call");
}

/// Returns the queue of the session after it is opened.
async fn found(bed: &Bed, session: &SessionId) -> Vec<String> {
    let queue = bed.service().overview(session).await.unwrap().queue;
    queue.iter().map(|message| message.user_text()).collect()
}

/// SES-3, SES-5: a message to a running turn is stored when it is accepted. If the process is killed before
/// the turn takes it, it stays queued; afterwards it is part of the conversation, once.
#[tokio::test]
async fn steering_survives_a_kill() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::call("c2", "wait", json!({})),
        Scene::text("went on"),
    ]);
    let service = bed.service_of(dead_owner(), Options::default());
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    called(&mut events).await;
    steer(&service, &session, "heard").await;
    bed.gate.notify_one();
    assert!(called(&mut events).await.contains(&"heard".to_owned()));
    steer(&service, &session, "not heard").await;
    let record = bed.store().entries(&session, 0, 100).await.unwrap();
    let last = record.iter().rev().find_map(|entry| match &entry.event {
        Event::Waiting(Waiting::Queue { steers, .. }) => Some(steers.len()),
        _ => None,
    });
    assert_eq!(last, Some(1), "what was heard does not wait any more");
    // As if the process were killed here.
    std::mem::forget(service);
    assert_eq!(found(&bed, &session).await, ["not heard"]);
}

/// SES-3, SES-5: a message that is already in the conversation is not queued again after a kill, even if the
/// record still lists it as queued.
#[tokio::test]
async fn heard_steering_is_found_once() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::call("c2", "wait", json!({})),
    ]);
    let service = bed.service_of(dead_owner(), Options::default());
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    called(&mut events).await;
    steer(&service, &session, "heard").await;
    bed.gate.notify_one();
    called(&mut events).await;
    std::mem::forget(service);
    assert_eq!(found(&bed, &session).await, Vec::<String>::new());
    let record = bed.store().entries(&session, 0, 100).await.unwrap();
    let said = record
        .iter()
        .filter(|entry| matches!(&entry.event, Event::Message { message } if message.user_text() == "heard"));
    assert_eq!(said.count(), 1);
}

/// SES-5: an input that cannot be stored is refused, leaves no gap in the record and does not appear later;
/// the session and the running turn continue.
#[tokio::test]
async fn a_refused_input_leaves_no_gap() {
    let bed = Bed::new([
        Scene::text("first"),
        Scene::call("c1", "wait", json!({})),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let other = rusqlite::Connection::open(bed.file()).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'no'); END";
    let allow = "DROP TRIGGER refuse";
    other.execute_batch(refuse).unwrap();
    assert!(service.submit(say(&session, "refused 1")).await.is_err());
    other.execute_batch(allow).unwrap();
    assert_eq!(answer(&service, &session, "one").await, "first");
    let mut events = service.submit(say(&session, "two")).await.unwrap();
    called(&mut events).await;
    other.execute_batch(refuse).unwrap();
    for (text, on_busy) in [("refused 2", OnBusy::Queue), ("refused 3", OnBusy::Steer)] {
        let submission = Submission {
            on_busy,
            ..say(&session, text)
        };
        assert!(service.submit(submission).await.is_err(), "{text}");
    }
    assert!(service.command(&session, "/goal refused 4").await.is_err());
    other.execute_batch(allow).unwrap();
    bed.gate.notify_one();
    let last = all(events).await.pop().unwrap().event;
    assert!(
        matches!(&last, Event::Final { content, .. } if content == "second"),
        "{last:?}"
    );
    service.close().await;
    let record = bed.store().entries(&session, 0, 1000).await.unwrap();
    let numbers: Vec<u64> = record.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(!format!("{record:?}").contains("refused"), "{record:?}");
}
