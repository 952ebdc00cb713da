//! Sessions from start to end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{
    Begin, Client, ClientError, Commands, Event, Follow, OnBusy, Presence, Records, SessionEvent, SessionId,
    Submission,
};
use windlass_core::log::{SessionStatus, SpentBy};
use windlass_core::message::{Binary, ImageUrl, Part};
use windlass_core::script::{Scene, ScriptedProvider};
use windlass_service::{Options, Service};

use super::bed::{Bed, all, answer, new_session, say, texts};

/// SES-1, SES-2, SES-5: a turn is stored as it happens, and another process continues from there.
#[tokio::test]
async fn a_session_continues_in_another_process() {
    let bed = Bed::new([
        Scene::call("c1", "note", serde_json::json!({ "text": "one" })),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(answer(&service, &session, "go").await, "first");
    service.close().await;

    let again = bed.service();
    let info = again.begin(Begin::Resume(session.clone())).await.unwrap();
    assert_eq!(
        (info.standing, info.totals.messages),
        (SessionStatus::Answered, 4)
    );
    assert_eq!(info.label.title.as_deref(), Some("go"));
    assert_eq!(answer(&again, &session, "go on").await, "second");
    let seen = bed.provider.seen();
    assert!(
        seen[2].contains("user: go\n") && seen[2].contains("noted"),
        "{}",
        seen[2]
    );
    assert!(seen[2].ends_with("user: go on"), "{}", seen[2]);
    let spent = bed.store().spent(Some(&session), SpentBy::Cause).await.unwrap();
    assert_eq!(spent.iter().map(|row| row.calls).sum::<u64>(), 3);
}

/// SES-2: a session has one owner; a second one finds it busy, and gets it when the first is done.
#[tokio::test]
async fn two_processes_do_not_share_a_session() {
    let bed = Bed::new([Scene::text("first"), Scene::text("second")]);
    let first = bed.service();
    let session = new_session(&first).await.id;
    answer(&first, &session, "go").await;
    let second = bed.service();
    let refused = second.submit(say(&session, "me too")).await.err();
    assert_eq!(refused, Some(ClientError::Busy(session.clone())));
    first.close().await;
    assert_eq!(answer(&second, &session, "now").await, "second");
    let unknown = second.begin(Begin::Resume("nothing".into())).await.err();
    assert_eq!(unknown, Some(ClientError::Unknown("nothing".into())));
}

/// SES-10: a fork starts with the history of another session up to an entry, and leaves that session
/// unchanged.
#[tokio::test]
async fn a_fork_begins_with_anothers_past() {
    let bed = Bed::new([Scene::text("first"), Scene::text("second"), Scene::text("other")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "one").await;
    let upto = bed.store().get(&session).await.unwrap().unwrap().last_seq;
    answer(&service, &session, "two").await;
    let before = bed.store().entries(&session, 0, 1000).await.unwrap();
    let fork = Begin::Fork {
        of: session.clone(),
        after: Some(upto),
        id: None,
        place: None,
    };
    let forked = service.begin(fork).await.unwrap().id;
    assert_eq!(answer(&service, &forked, "instead").await, "other");
    let seen = bed.provider.seen();
    assert!(
        seen[2].contains("user: one") && !seen[2].contains("user: two"),
        "{}",
        seen[2]
    );
    assert_eq!(bed.store().entries(&session, 0, 1000).await.unwrap(), before);
}

/// SES-7, SES-8: a summary on demand is stored and its cost recorded, the next turn starts from it, and it is
/// refused while the session is busy.
#[tokio::test]
async fn a_session_is_summarized_on_demand() {
    let answers = (0..6).map(|number| Scene::text(&format!("answer {number} ").repeat(60)));
    let bed = Bed::new(answers.chain([Scene::text("it was about numbers"), Scene::text("after")]));
    let service = bed.service();
    let session = new_session(&service).await.id;
    for number in 0..6 {
        answer(
            &service,
            &session,
            &format!("question {number} {}", "and so on ".repeat(40)),
        )
        .await;
    }
    let events = all(service.summarize(&session).await.unwrap()).await;
    assert!(
        events
            .iter()
            .any(|envelope| matches!(envelope.event, Event::Session(SessionEvent::Compaction { .. }))),
        "{events:?}"
    );
    service.close().await;
    let info = bed.store().get(&session).await.unwrap().unwrap();
    assert!(info.summary.is_some());
    let spent = bed.store().spent(Some(&session), SpentBy::Cause).await.unwrap();
    assert!(
        spent.iter().any(|row| row.of == "summary" && row.calls == 1),
        "{spent:?}"
    );
    let again = bed.service();
    answer(&again, &session, "and now").await;
    let last = bed.provider.seen().last().unwrap().clone();
    assert!(
        last.contains("it was about numbers") && last.contains("question 2") && !last.contains("answer 2"),
        "{last}"
    );
}

/// SES-7: a summary on demand works after a single exchange, however short, and the next turn starts from it.
#[tokio::test]
async fn a_single_exchange_is_summarized() {
    let bed = Bed::new([
        Scene::text("hello yourself"),
        Scene::text("greetings were exchanged"),
        Scene::text("after"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "hello").await;
    let events = all(service.summarize(&session).await.unwrap()).await;
    assert!(
        matches!(&events.last().unwrap().event, Event::Final { content, .. } if content.contains("was summarized")),
        "{events:?}"
    );
    answer(&service, &session, "and now").await;
    let last = bed.provider.seen().last().unwrap().clone();
    assert!(
        last.contains("greetings were exchanged") && !last.contains("hello yourself"),
        "{last}"
    );
}

/// Waits until the session has no owner.
async fn given_back(bed: &Bed, session: &SessionId) {
    let free = async {
        while bed.store().holder(session).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), free).await.unwrap();
}

/// SES-2: a session that is idle for long enough is released, however often its lease is renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn an_idle_session_is_given_back() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    for _ in 0..=60 {
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    tokio::time::resume();
    given_back(&bed, &session).await;
}

fn hasty() -> Options {
    Options {
        idle: Duration::from_millis(1),
        ..Options::default()
    }
}

/// SES-2: a released session continues with the next input: its events arrive, its file changes are listed,
/// and it has the mode set by the user.
#[tokio::test]
async fn a_session_that_was_given_back_continues() {
    let bed = Bed::new([
        Scene::call("c1", "note", json!({ "text": "in plan mode" })),
        Scene::text("first"),
    ]);
    let kept = bed.kit.keep_checkpoints();
    let service = bed.service_of("somewhere".into(), hasty());
    let session = new_session(&service).await.id;
    service.command(&session, "/mode plan").await.unwrap();
    let heard = service.subscribe(&session, 0).await.unwrap();
    given_back(&bed, &session).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), heard.collect::<Vec<_>>()).await;
    assert!(
        ended.unwrap().is_empty(),
        "a session that ends tells whoever listens"
    );
    // Listening alone does not open it.
    let heard = service.subscribe(&session, 0).await.unwrap();
    assert_eq!(bed.store().holder(&session).await.unwrap(), None);
    assert_eq!(answer(&service, &session, "go").await, "first");
    assert_eq!(
        *bed.notes.lock().unwrap(),
        Vec::<String>::new(),
        "the mode was lost"
    );
    let heard = all(heard).await;
    assert!(texts(&heard).contains(&"first".to_owned()), "{heard:?}");
    given_back(&bed, &session).await;
    assert_eq!(service.checkpoints(&session).await.unwrap().len(), 1);
    drop(kept);
}

async fn went_to(service: &Service, session: &SessionId, line: &str) -> SessionId {
    match service.command(session, line).await.unwrap().follow {
        Follow::Session(info) => info.id,
        _ => panic!("{line}: no session"),
    }
}

/// SES-2, SES-10: a session that is left for another one can be opened by other processes immediately, and be
/// deleted; if a turn runs, the turn and the queue end first.
#[tokio::test]
async fn a_session_that_is_left_is_given_back() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let first = new_session(&service).await.id;
    let second = went_to(&service, &first, "/clear").await;
    given_back(&bed, &first).await;
    let third = went_to(&service, &second, "/session fork").await;
    given_back(&bed, &second).await;
    went_to(&service, &third, &format!("/session resume {second}")).await;
    given_back(&bed, &third).await;
    let deleted = service
        .command(&second, &format!("/session delete {third} --yes"))
        .await;
    assert!(deleted.unwrap().text.starts_with("Deleted session"));

    let turn = service.submit(say(&second, "go")).await.unwrap();
    let later = Submission {
        on_busy: OnBusy::Queue,
        ..say(&second, "later")
    };
    let later = service.submit(later).await.unwrap();
    let begin = Begin::Instead {
        of: second.clone(),
        begin: Box::new(Begin::Resume(first.clone())),
    };
    service.begin(begin).await.unwrap();
    bed.gate.notify_one();
    all(turn).await;
    assert_eq!(texts(&all(later).await), ["later", "second"]);
    given_back(&bed, &second).await;
    assert!(!service.overview(&first).await.unwrap().is_busy);
}

/// UI-2: an image for a model that cannot read images causes a warning at the start of the turn, each time,
/// and only then.
#[tokio::test]
async fn images_that_are_not_read_are_reported() {
    let scenes = || (0..3).map(|_| Scene::text("done"));
    let file = |path: &str, mime: &str| {
        Part::Binary(Binary {
            path: path.to_owned(),
            mime: mime.to_owned(),
            data: "iVBORw0KGgo=".to_owned(),
        })
    };
    let address = |url: &str| {
        Part::ImageUrl(ImageUrl {
            url: url.to_owned(),
            detail: None,
        })
    };
    let attached = [
        file("a.png", "image/png"),
        file("notes.txt", "text/plain"),
        address("https://example.org/b.png"),
        address("data:image/png;base64,iVBORw0KGgo="),
    ];
    let told =
        "scripted does not read images: it only gets the name of a.png, https://example.org/b.png, an image.";
    for reads in [false, true] {
        let mut bed = Bed::new(scenes());
        if !reads {
            bed.provider = Arc::new(ScriptedProvider::new(scenes()).without_images());
        }
        let service = bed.service();
        let session = new_session(&service).await.id;
        for with_images in [true, false, true] {
            let mut submission = say(&session, "look");
            if with_images {
                submission.parts.extend(attached.clone());
            }
            let events = all(service.submit(submission).await.unwrap()).await;
            let warnings = events.iter().filter_map(|envelope| match &envelope.event {
                Event::Warning { message } => Some(message.as_str()),
                _ => None,
            });
            let expected: &[&str] = if with_images && !reads { &[told] } else { &[] };
            assert_eq!(warnings.collect::<Vec<_>>(), expected);
        }
    }
}
