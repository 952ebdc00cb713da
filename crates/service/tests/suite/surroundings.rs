//! The environment is described to the model once.

use windlass_api::{Commands, Follow, SessionId};
use windlass_core::script::Scene;
use windlass_core::turn::Limits;
use windlass_service::Service;

use super::bed::{Bed, all, answer, new_session};

fn bed() -> Bed {
    let bed = Bed::new((0..10).map(|number| Scene::text(&format!("answer {number}"))));
    move_to(&bed, "/here");
    bed
}

fn move_to(bed: &Bed, place: &str) {
    *bed.kit.surroundings.lock().unwrap() = Some(place.to_owned());
}

/// Sends a prompt. Returns the described environments, in order.
async fn told(bed: &Bed, service: &Service, session: &SessionId) -> Vec<String> {
    answer(service, session, "go on").await;
    let seen = bed.provider.seen().last().cloned().unwrap();
    let places = seen.split("user: <environment>\n").skip(1);
    let place = |rest: &str| rest.lines().next().unwrap_or_default().to_owned();
    places.map(place).collect()
}

/// SES-10, SES-11: the first message of every session describes the environment, later ones do not; after a
/// rewind to before it the next one does, even if the session was opened again in between.
#[tokio::test]
async fn surroundings_are_reported_once() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    service.command(&session, "/rewind 1").await.unwrap();
    assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    let other = new_session(&service).await.id;
    assert_eq!(told(&bed, &service, &other).await, ["/here"]);
    service.command(&other, "/rewind 1").await.unwrap();
    service.close().await;

    let again = bed.service();
    assert_eq!(told(&bed, &again, &other).await, ["/here"]);
    assert_eq!(told(&bed, &again, &session).await, ["/here"]);
}

/// SES-10: a session that is resumed in another environment describes it, and again when it is back.
#[tokio::test]
async fn other_surroundings_are_reported() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    move_to(&bed, "/there");
    assert_eq!(told(&bed, &service, &session).await, ["/here", "/there"]);
    assert_eq!(told(&bed, &service, &session).await, ["/here", "/there"]);
    move_to(&bed, "/here");
    let back = ["/here", "/there", "/here"];
    assert_eq!(told(&bed, &service, &session).await, back);
}

/// CTX-15, SES-13: compaction and trimming leave the description in the conversation, once.
#[tokio::test]
async fn surroundings_outlive_compaction_and_trimming() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    for _ in 0..3 {
        assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    }
    let Follow::Watch(events) = service.command(&session, "/compact").await.unwrap().follow else {
        panic!("nothing to watch")
    };
    all(events).await;
    assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    *bed.kit.limits.lock().unwrap() = Limits {
        max_conversation_messages: 3,
        ..Limits::default()
    };
    for _ in 0..2 {
        assert_eq!(told(&bed, &service, &session).await, ["/here"]);
    }
    service.close().await;
    assert_eq!(told(&bed, &bed.service(), &session).await, ["/here"]);
}
