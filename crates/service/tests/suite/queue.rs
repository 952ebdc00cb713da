//! Inputs for a session that is busy.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{Begin, Client, ClientError, Commands, Event, EventStream, OnBusy, Submission};
use windlass_core::log::SessionLog;
use windlass_core::script::Scene;

use super::bed::{Bed, all, answer, new_session, say, texts};

fn busy(submission: Submission, on_busy: OnBusy) -> Submission {
    Submission {
        on_busy,
        ..submission
    }
}

/// Reads until a call has begun.
async fn begun(events: &mut EventStream) {
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolCall { .. }) {
            return;
        }
    }
    panic!("no call");
}

/// SES-2, SES-3: an input for a busy session is refused, waits its turn, or steers, as it asks for; a full queue refuses.
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

/// SES-3, SES-5: what waits in the queue is stored: it is asked first when the session is opened again.
#[tokio::test]
async fn the_queue_survives() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("second"),
        Scene::text("third"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    service
        .submit(busy(say(&session, "waiting"), OnBusy::Queue))
        .await
        .unwrap();
    service.close().await;
    assert!(matches!(
        all(events).await.last().unwrap().event,
        Event::Canceled { .. }
    ));

    let again = bed.service();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    let later = again.subscribe(&session, 0).await.unwrap();
    let first: Vec<_> = later
        .take_while(|envelope| {
            let over = matches!(&envelope.event, Event::Final { .. });
            std::future::ready(!over)
        })
        .collect()
        .await;
    assert!(texts(&first).contains(&"waiting".to_owned()), "{first:?}");
    assert_eq!(answer(&again, &session, "new").await, "third");
}

/// SES-3: what steers a turn that ends before it hears it is not lost when the session is left: it is asked first when the
/// session is opened again, before what waited already.
#[tokio::test]
async fn steering_survives() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("second"),
        Scene::text("third"),
        Scene::text("fourth"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    for (text, on_busy) in [("waiting", OnBusy::Queue), ("mind the gap", OnBusy::Steer)] {
        service.submit(busy(say(&session, text), on_busy)).await.unwrap();
    }
    service.close().await;

    let again = bed.service();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    let later = again.subscribe(&session, 0).await.unwrap();
    let mut answers = 0;
    let both = later
        .take_while(|envelope| {
            answers += u32::from(matches!(&envelope.event, Event::Final { .. }));
            std::future::ready(answers < 2)
        })
        .collect::<Vec<_>>();
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    let said = texts(&both.expect("both are asked"));
    let place = |text: &str| said.iter().position(|said| said == text);
    assert!(place("mind the gap").is_some(), "{said:?}");
    assert!(place("mind the gap") < place("waiting"), "{said:?}");
    assert_eq!(answer(&again, &session, "new").await, "fourth");
}

/// SES-3, SAFE-5: a mode that is chosen while a turn runs leaves that turn as it began, and holds for what is queued already.
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
    assert!(said.starts_with("Mode: plan, from the next turn on"), "{said}");
    bed.gate.notify_one();
    all(events).await;
    all(queued).await;
    assert_eq!(*bed.notes.lock().unwrap(), ["in the running turn"]);
}

/// SES-3, SES-10: what waits in a session is not copied with it: it is asked once, where it was said.
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
