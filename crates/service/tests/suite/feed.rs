//! Readers of a session's events.

use futures_util::StreamExt;
use windlass_api::{Client, Event};
use windlass_core::script::Scene;
use windlass_service::Options;

use super::bed::{Bed, all, answer, new_session, say};

/// EVT-5: a reader gets every state event after a number, stored and live ones, each once and in order.
#[tokio::test]
async fn a_reader_begins_anywhere() {
    let bed = Bed::new((0..4).map(|number| Scene::text(&format!("answer {number}"))));
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "one").await;
    let reader = service.subscribe(&session, 2).await.unwrap();
    let late = service.subscribe(&session, 0).await.unwrap();
    answer(&service, &session, "two").await;
    service.close().await;
    let stored = bed.store().entries(&session, 0, 1000).await.unwrap();
    let numbers = |events: Vec<windlass_api::Envelope>| -> Vec<u64> {
        let states = events.into_iter().filter(|envelope| !envelope.event.is_live());
        states.map(|envelope| envelope.seq).collect()
    };
    let last = stored.last().unwrap().seq;
    assert_eq!(numbers(all(reader).await), (3..=last).collect::<Vec<_>>());
    assert_eq!(numbers(all(late).await), (1..=last).collect::<Vec<_>>());
}

/// EVT-5: publishing never waits; a slow reader loses live events and learns how many, but loses no state
/// event.
#[tokio::test]
async fn a_slow_reader_loses_only_what_is_live() {
    let long = "word ".repeat(3000);
    let bed = Bed::new((0..400).map(|_| Scene::text(&long)));
    let options = Options {
        buffer: 4,
        ..Options::default()
    };
    let service = bed.service_of(windlass_store::owner(), options);
    let session = new_session(&service).await.id;
    // This reader does not read until the end.
    let slow = service.subscribe(&session, 0).await.unwrap();
    for number in 0..400 {
        answer(&service, &session, &format!("question {number}")).await;
    }
    service.close().await;
    let stored = bed.store().entries(&session, 0, 100_000).await.unwrap();
    let events = all(slow).await;
    let states: Vec<u64> = events
        .iter()
        .filter(|envelope| !envelope.event.is_live())
        .map(|envelope| envelope.seq)
        .collect();
    assert_eq!(states, stored.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    let told = |envelope: &windlass_api::Envelope| matches!(&envelope.event, Event::Status { text } if text.contains("were dropped"));
    assert!(events.iter().any(told), "it is told");
}

/// EVT-5: a dropped reader does not block anything.
#[tokio::test]
async fn a_reader_may_leave() {
    let bed = Bed::new([Scene::text("one"), Scene::text("two")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut reader = service.submit(say(&session, "go")).await.unwrap();
    reader.next().await;
    drop(reader);
    // The turn continues; the next input finds the session idle.
    loop {
        match service.submit(say(&session, "again")).await {
            Ok(events) => {
                all(events).await;
                return;
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
}
