//! Inputs for a session that is busy.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{
    Begin, Client, ClientError, Commands, Event, EventStream, Follow, OnBusy, Presence, SessionEvent,
    SessionId, Submission, UserReply, Waiting,
};
use windlass_core::script::Scene;
use windlass_service::Service;

use super::bed::{Bed, all, answer, new_session, say, texts};

fn busy(submission: Submission, on_busy: OnBusy) -> Submission {
    Submission {
        on_busy,
        ..submission
    }
}

/// Reads until a call has started.
async fn begun(events: &mut EventStream) {
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolCall { .. }) {
            return;
        }
    }
    panic!("no call");
}

/// SES-2, SES-3: an input for a busy session is refused, queued, or steers the turn, as requested; a full
/// queue refuses.
#[tokio::test]
async fn a_busy_session_takes_inputs_as_they_ask() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let refused = service.submit(say(&session, "no")).await.err();
    assert_eq!(refused, Some(ClientError::Busy(session.clone())));
    let queued = service
        .submit(busy(say(&session, "later"), OnBusy::Queue))
        .await
        .unwrap();
    service
        .submit(busy(say(&session, "mind the gap"), OnBusy::Steer))
        .await
        .unwrap();
    for _ in 0..7 {
        service
            .submit(busy(say(&session, "more"), OnBusy::Queue))
            .await
            .unwrap();
    }
    let full = service
        .submit(busy(say(&session, "too much"), OnBusy::Queue))
        .await
        .err();
    assert_eq!(full, Some(ClientError::QueueFull(session.clone())));
    bed.gate.notify_one();
    all(events).await;
    let own = all(queued).await;
    assert_eq!(
        texts(&own),
        ["later", "second"],
        "a queued input hears its own turn"
    );
    service.close().await;
    let seen = bed.provider.seen();
    assert!(seen[1].contains("user: mind the gap"), "{}", seen[1]);
    assert!(seen[2].ends_with("user: later"), "{}", seen[2]);
}

/// Leaves a session in the middle of a turn, with queued inputs.
async fn left_with(bed: &Bed, inputs: &[(&str, OnBusy)]) -> SessionId {
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    for (text, on_busy) in inputs {
        service.submit(busy(say(&session, text), *on_busy)).await.unwrap();
    }
    service.close().await;
    assert!(matches!(
        all(events).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    session
}

/// Returns the queued texts.
async fn waiting(service: &Service, session: &SessionId) -> Vec<String> {
    let queue = service.overview(session).await.unwrap().queue;
    queue.iter().map(|message| message.user_text()).collect()
}

/// Returns the last user text of each request.
fn asked(bed: &Bed) -> Vec<String> {
    let last = |seen: &String| seen.rsplit("user: ").next().unwrap_or_default().to_owned();
    bed.provider.seen().iter().map(last).collect()
}

/// SES-3, SES-5: queued inputs are stored. When the session is opened again they are shown and can be taken
/// back, and neither queries nor session commands start them.
#[tokio::test]
async fn a_found_queue_waits_for_somebody() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({}))]);
    bed.kit.keep_checkpoints();
    let inputs = [("one", OnBusy::Queue), ("two", OnBusy::Queue)];
    let session = left_with(&bed, &inputs).await;
    let again = bed.service();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    for line in ["/status", "/checkpoint list", "/mode plan", "/shell note x"] {
        if let Follow::Watch(events) = again.command(&session, line).await.unwrap().follow {
            all(events).await;
        }
    }
    again.catalog(&session).await;
    assert_eq!(waiting(&again, &session).await, ["one", "two"]);
    let first = again.overview(&session).await.unwrap().queue[0].id.clone();
    let taken = again.take_back(&session, &first).await.unwrap();
    assert_eq!(taken.user_text(), "one");
    again.close().await;
    let third = bed.service();
    assert_eq!(waiting(&third, &session).await, ["two"]);
    assert_eq!(bed.provider.seen().len(), 1, "nobody said anything");
}

/// SES-3: a new input starts the restored queue first, in order, and its stream covers its own turn; a full
/// queue does not refuse it.
#[tokio::test]
async fn a_found_queue_is_asked_first() {
    let texts_of_eight: Vec<String> = (1..=8).map(|number| format!("waited {number}")).collect();
    let scenes = (1..=9).map(|number| Scene::text(&format!("answer {number}")));
    let bed = Bed::new([Scene::call("c1", "wait", json!({}))].into_iter().chain(scenes));
    let inputs: Vec<_> = texts_of_eight
        .iter()
        .map(|text| (text.as_str(), OnBusy::Queue))
        .collect();
    let session = left_with(&bed, &inputs).await;
    let again = bed.service();
    assert_eq!(answer(&again, &session, "new").await, "answer 9");
    let mut expected = vec!["go".to_owned()];
    expected.extend(texts_of_eight);
    expected.push("new".to_owned());
    assert_eq!(asked(&bed), expected);
    assert!(waiting(&again, &session).await.is_empty());
}

/// SES-3: permission requests of a restored queue's turn reach the client that waits behind it, or no one
/// could answer them.
#[tokio::test]
async fn questions_of_earlier_turns_are_heard() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::call("c2", "ask", json!({})),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let session = left_with(&bed, &[("waited", OnBusy::Queue)]).await;
    let again = bed.service();
    let mut events = again.submit(say(&session, "new")).await.unwrap();
    let question = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    let Event::Waiting(Waiting::Question { call_id, .. }) = question.unwrap().unwrap().event else {
        panic!("no question");
    };
    assert!(
        again
            .reply(&session, &call_id, UserReply::Text("red".to_owned()))
            .await
    );
    let own = all(events).await;
    assert_eq!(texts(&own), ["new", "second"]);
    assert!(
        bed.provider.seen()[2].contains("red"),
        "{:?}",
        bed.provider.seen()
    );
}

/// SES-3, CTX-1: a restored queue survives a compaction and leaving the session.
#[tokio::test]
async fn a_found_queue_survives_a_summary() {
    let answers = (0..6).map(|number| Scene::text(&format!("answer {number} ").repeat(60)));
    let scenes = answers.chain([
        Scene::call("c1", "wait", json!({})),
        Scene::text("it was about numbers"),
    ]);
    let bed = Bed::new(scenes);
    let service = bed.service();
    let session = new_session(&service).await.id;
    for number in 0..6 {
        let text = format!("question {number} {}", "and so on ".repeat(40));
        answer(&service, &session, &text).await;
    }
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    service
        .submit(busy(say(&session, "waited"), OnBusy::Queue))
        .await
        .unwrap();
    service.close().await;
    let again = bed.service();
    let events = all(again.summarize(&session).await.unwrap()).await;
    let is_smaller = |event: &Event| matches!(event, Event::Session(SessionEvent::Compaction { .. }));
    assert!(
        events.iter().any(|envelope| is_smaller(&envelope.event)),
        "{events:?}"
    );
    again.close().await;
    assert_eq!(waiting(&bed.service(), &session).await, ["waited"]);
}

/// SES-3: a message to a turn that ends before taking it is not lost when the session is left: it is queued
/// when the session is opened again, before the inputs that were queued already.
#[tokio::test]
async fn steering_survives() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({}))]);
    let inputs = [("waiting", OnBusy::Queue), ("mind the gap", OnBusy::Steer)];
    let session = left_with(&bed, &inputs).await;
    let again = bed.service();
    assert_eq!(waiting(&again, &session).await, ["mind the gap", "waiting"]);
}

/// SES-3: a session that is left while a turn ends does not start the next one: queued inputs stay queued.
#[tokio::test]
async fn a_session_that_is_left_begins_nothing() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("first"),
        Scene::text("never asked"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    service
        .submit(busy(say(&session, "later"), OnBusy::Queue))
        .await
        .unwrap();
    bed.gate.notify_one();
    // The answer is there, and the end of the turn is being stored.
    while let Some(envelope) = events.next().await {
        if texts(std::slice::from_ref(&envelope)) == ["first"] {
            break;
        }
    }
    service.close().await;
    assert_eq!(bed.provider.seen().len(), 2);
    let record = bed.store().entries(&session, 0, 100).await.unwrap();
    let canceled = record
        .iter()
        .any(|entry| matches!(entry.event, Event::Canceled { .. }));
    assert!(!canceled, "{record:?}");
    assert_eq!(waiting(&bed.service(), &session).await, ["later"]);
}

/// SES-3, SAFE-5: a mode set while a turn runs does not affect that turn, but applies to inputs that are
/// already queued.
#[tokio::test]
async fn a_mode_holds_from_the_next_turn_on() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::call("c2", "note", json!({ "text": "in the running turn" })),
        Scene::text("first"),
        Scene::call("c3", "note", json!({ "text": "in the queued turn" })),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let queued = busy(say(&session, "later"), OnBusy::Queue);
    let queued = service.submit(queued).await.unwrap();
    let said = service.command(&session, "/mode plan").await.unwrap().text;
    assert!(said.starts_with("Mode plan from the next turn"), "{said}");
    bed.gate.notify_one();
    all(events).await;
    all(queued).await;
    assert_eq!(*bed.notes.lock().unwrap(), ["in the running turn"]);
}

/// SES-3, SES-10: a fork does not copy the queue: an input runs once, in its own session.
#[tokio::test]
async fn a_fork_leaves_the_queue() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("in the fork"),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let queued = busy(say(&session, "later"), OnBusy::Queue);
    let queued = service.submit(queued).await.unwrap();
    let fork = Begin::Fork {
        of: session.clone(),
        after: None,
        id: None,
        place: None,
    };
    let forked = service.begin(fork).await.unwrap().id;
    assert_eq!(answer(&service, &forked, "instead").await, "in the fork");
    let record = bed.store().entries(&forked, 0, 100).await.unwrap();
    let numbers: Vec<u64> = record.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    bed.gate.notify_one();
    all(events).await;
    assert_eq!(texts(&all(queued).await), ["later", "second"]);
    let seen = bed.provider.seen();
    let asked = seen.iter().filter(|seen| seen.ends_with("user: later")).count();
    assert_eq!((seen.len(), asked), (4, 1), "{seen:?}");
}

/// LOOP-8: canceling through the service ends the running call, records it, and frees the session.
#[tokio::test]
async fn a_turn_is_canceled() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({})), Scene::text("after")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    assert!(service.cancel(&session).await);
    assert!(matches!(
        all(events).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    assert!(!service.cancel(&session).await);
    assert_eq!(answer(&service, &session, "again").await, "after");
    let last = bed.provider.seen().last().unwrap().clone();
    assert!(last.contains("canceled by user"), "{last}");
}

/// LOOP-8: a turn can be stopped before it runs: its plan is not awaited, whoever started it.
#[tokio::test]
async fn a_turn_is_canceled_while_it_is_prepared() {
    let bed = Bed::new([Scene::text("after")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    *bed.kit.is_stuck.lock().unwrap() = true;
    let turn = service.submit(say(&session, "go")).await.unwrap();
    assert!(service.cancel(&session).await);
    assert!(matches!(
        all(turn).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    let summary = service.summarize(&session).await.unwrap();
    assert!(service.cancel(&session).await);
    assert!(matches!(
        all(summary).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    *bed.kit.is_stuck.lock().unwrap() = false;
    assert_eq!(answer(&service, &session, "again").await, "after");
}

/// LOOP-8: a turn can be stopped while another process blocks the session's writes.
#[tokio::test]
async fn a_turn_is_canceled_while_the_store_is_locked() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("second"),
        Scene::text("third"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let other = bed.writer();
    let mut queued = service.submit(busy(say(&session, "later"), OnBusy::Queue));
    assert!(futures_util::poll!(&mut queued).is_pending());
    assert!(service.cancel(&session).await);
    // The call has ended, though its events cannot be stored yet.
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolResult { .. }) {
            break;
        }
    }
    assert!(futures_util::poll!(&mut queued).is_pending());
    other.execute_batch("ROLLBACK").unwrap();
    let queued = queued.await.unwrap();
    assert!(matches!(
        all(events).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    assert_eq!(answer(&service, &session, "go on").await, "third");
    assert_eq!(texts(&all(queued).await), ["later", "second"]);
}

/// SES-3, LOOP-8: stopping a turn starts nothing: queued inputs are held, can be taken back, and run before
/// the next input. The same holds for messages that the turn did not take.
#[tokio::test]
async fn a_stop_begins_nothing() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("steered"),
        Scene::text("second"),
        Scene::text("third"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    for (text, on_busy) in [
        ("later", OnBusy::Queue),
        ("never", OnBusy::Queue),
        ("mind the gap", OnBusy::Steer),
    ] {
        service.submit(busy(say(&session, text), on_busy)).await.unwrap();
    }
    assert!(service.cancel(&session).await);
    all(events).await;
    // If there were another turn, this query would be answered after it started.
    assert_eq!(
        waiting(&service, &session).await,
        ["mind the gap", "later", "never"]
    );
    assert!(!service.overview(&session).await.unwrap().is_busy);
    assert!(!service.cancel(&session).await, "nothing runs");
    let last = service.overview(&session).await.unwrap().queue[2].id.clone();
    assert!(service.take_back(&session, &last).await.is_some());
    assert_eq!(answer(&service, &session, "new").await, "third");
    assert_eq!(asked(&bed), ["go", "mind the gap", "later", "new"]);
}

/// SES-3: a held queue is released on demand, without a new input.
#[tokio::test]
async fn a_held_queue_goes_on_on_demand() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("second"),
        Scene::text("third"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let later = busy(say(&session, "later"), OnBusy::Queue);
    let later = service.submit(later).await.unwrap();
    assert!(service.cancel(&session).await);
    all(events).await;
    assert_eq!(waiting(&service, &session).await, ["later"]);
    assert!(service.go_on(&session).await);
    assert_eq!(texts(&all(later).await), ["later", "second"]);
    assert_eq!(asked(&bed), ["go", "later"]);
    assert!(!service.go_on(&"nowhere".into()).await);
}

/// SES-3, LOOP-8: a message to a turn that is being planned is held as well when that turn is stopped.
#[tokio::test]
async fn a_stop_of_what_is_prepared_begins_nothing() {
    let bed = Bed::new([Scene::text("second"), Scene::text("third")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    *bed.kit.is_stuck.lock().unwrap() = true;
    let turn = service.submit(say(&session, "go")).await.unwrap();
    let mut later = service.submit(busy(say(&session, "later"), OnBusy::Steer));
    assert!(futures_util::poll!(&mut later).is_pending());
    assert!(service.cancel(&session).await);
    all(turn).await;
    let later = later.await.unwrap();
    *bed.kit.is_stuck.lock().unwrap() = false;
    assert_eq!(waiting(&service, &session).await, ["later"]);
    assert!(!service.overview(&session).await.unwrap().is_busy);
    assert_eq!(answer(&service, &session, "new").await, "third");
    assert_eq!(texts(&all(later).await), ["later", "second"]);
}
