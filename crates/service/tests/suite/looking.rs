//! Queries of a front end: stored sessions, the status of a session, and wait chains.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{
    Begin, Client, ClientError, Commands, Event, EventStream, Find, Label, MessageId, OnBusy, Presence,
    Records, SessionId, SessionInfo, Submission, WaitOn, Waiting,
};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::script::Scene;
use windlass_service::Service;

use super::bed::{Bed, all, answer, new_session, say, texts};

async fn begin(service: &Service, title: &str, name: Option<&str>, place: &str) -> SessionId {
    let begin = Begin::New {
        id: None,
        place: place.to_owned(),
        label: Label {
            title: Some(title.to_owned()),
            name: name.map(str::to_owned),
            key: None,
        },
        parent: None,
    };
    service.begin(begin).await.unwrap().id
}

fn find(words: &str) -> Find {
    Find {
        words: words.to_owned(),
        ..Find::default()
    }
}

fn ids(found: Vec<SessionInfo>) -> Vec<SessionId> {
    found.into_iter().map(|info| info.id).collect()
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

/// UI-2: sessions are found by name, by the start of their id and by content, each once and the best match
/// first; without words, the most recently changed comes first.
#[tokio::test]
async fn sessions_are_found() {
    let bed = Bed::new([Scene::text("the parser is slow"), Scene::text("yes")]);
    let service = bed.service();
    let parser = begin(&service, "Fix the Parser", None, "/project").await;
    let said = begin(&service, "Something else", None, "/project").await;
    let named = begin(&service, "untitled", Some("parser"), "/other").await;
    answer(&service, &said, "what about it?").await;
    answer(&service, &parser, "and the parser?").await;
    let found = |find: Find| {
        let service = service.clone();
        async move { ids(service.sessions(&find).await.unwrap()) }
    };
    let cases = [
        ("PARSER", vec![&named, &parser, &said]),
        // Any word may occur; the best match comes first.
        ("fix parser", vec![&parser, &said]),
        (said.as_str(), vec![&said]),
        ("nowhere", vec![]),
    ];
    for (words, expected) in cases {
        let sessions = found(find(words)).await;
        assert_eq!(sessions.iter().collect::<Vec<_>>(), expected, "{words}");
    }
    let here = Find {
        place: Some("/project".to_owned()),
        limit: 1,
        ..find("parser")
    };
    let here = found(here).await;
    assert_eq!((here.len(), here.first()), (1, Some(&parser)));
    assert_eq!(found(find("  ")).await.first(), Some(&parser));
    assert_eq!(found(Find { limit: 2, ..find("") }).await.len(), 2);
}

/// UI-2: the last entries of a session are read from its end, page by page, without making it live.
#[tokio::test]
async fn records_are_read_from_the_end() {
    let bed = Bed::new([Scene::text("one")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "hello").await;
    service.close().await;
    let service = bed.service();
    let whole = service.tail(&session, None, 1000).await.unwrap();
    let last = whole.last().unwrap().seq;
    assert_eq!(whole.len() as u64, last);
    let cases = [
        (None, 2, last - 1, last),
        (Some(last), 2, last - 2, last - 1),
        (Some(3), 10, 1, 2),
        (Some(u64::MAX), 1, last, last),
    ];
    for (before, limit, from, to) in cases {
        let page = service.tail(&session, before, limit).await.unwrap();
        let seqs: Vec<u64> = page.iter().map(|entry| entry.seq).collect();
        assert_eq!(seqs, (from..=to).collect::<Vec<_>>(), "{before:?} {limit}");
    }
    assert_eq!(service.tail(&session, Some(1), 5).await.unwrap(), []);
    assert_eq!(service.tail(&session, None, 0).await.unwrap(), []);
    let unknown = SessionId::from("nobody");
    assert_eq!(
        service.tail(&unknown, None, 1).await,
        Err(ClientError::Unknown(unknown))
    );
    // A query does not acquire the session: another process still can.
    let other = bed.service_of("somebody else".to_owned(), windlass_service::Options::default());
    other.begin(Begin::Resume(session)).await.unwrap();
}

/// UI-2: file changes of turns are listed for a live session, even while a turn runs; for another session
/// they are not.
#[tokio::test]
async fn changes_are_shown() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({})), Scene::text("done")]);
    bed.kit.keep_checkpoints();
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(service.checkpoints(&session).await.unwrap(), []);
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let kept = service.checkpoints(&session).await.unwrap();
    assert_eq!(kept.len(), 1);
    let changes = service.changes(&session, kept[0].number).await.unwrap();
    assert_eq!(changes[0].path, "file1.txt");
    assert!(matches!(
        service.changes(&session, 7).await,
        Err(ClientError::Command(_))
    ));
    bed.gate.notify_one();
    all(events).await;
    let asleep = SessionId::from("asleep");
    assert!(service.checkpoints(&asleep).await.is_err());
    assert!(service.changes(&asleep, 1).await.is_err());
}

/// UI-2, OBS-3: the status of a session is available at any time: model, mode and queue; and the wait chain
/// of a running turn, for a front end and for `/why`.
#[tokio::test]
async fn a_session_says_how_it_stands() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({})), Scene::text("done")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let idle = service.overview(&session).await.unwrap();
    let told = (
        idle.provider.as_str(),
        idle.model.as_str(),
        idle.window,
        idle.mode.as_str(),
    );
    assert_eq!(told, ("first", "first-1", 100_000, "auto"));
    assert!(!idle.is_busy && idle.queue.is_empty());
    assert_eq!(service.why(&session).await, []);
    assert_eq!(
        why(&service, &session).await,
        "Nothing runs; the session waits for you."
    );

    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    assert!(service.overview(&session).await.unwrap().is_busy);
    let chain = service.why(&session).await;
    assert_eq!((chain.len(), chain[0].on), (1, WaitOn::Tool), "{chain:?}");
    assert!(
        why(&service, &session)
            .await
            .starts_with("waiting for tool: wait — for ")
    );
    bed.gate.notify_one();
    all(events).await;
    assert_eq!(service.why(&session).await, []);
    assert_eq!(service.why(&SessionId::from("asleep")).await, []);
    assert!(service.overview(&SessionId::from("nobody")).await.is_err());
}

async fn why(service: &Service, session: &SessionId) -> String {
    service.command(session, "/why").await.unwrap().text
}

/// UI-2, SES-3: a queued input can be taken back; it is then never sent, even after a restart, and its event
/// stream ends.
#[tokio::test]
async fn a_waiting_input_is_taken_back() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    let queue = |text: &str| Submission {
        on_busy: OnBusy::Queue,
        ..say(&session, text)
    };
    let dropped = service.submit(queue("dropped")).await.unwrap();
    let kept = service.submit(queue("kept")).await.unwrap();
    let waiting = service.overview(&session).await.unwrap().queue;
    let wanted: MessageId = waiting[0].id.clone();
    let taken = service.take_back(&session, &wanted).await.unwrap();
    assert_eq!(taken.id, wanted);
    assert_eq!(service.take_back(&session, &wanted).await, None);
    assert_eq!(all(dropped).await, []);
    bed.gate.notify_one();
    let heard = all(events).await;
    let is_shorter = |event: &Event| matches!(event, Event::Waiting(Waiting::Queue { messages, .. }) if messages.len() == 1);
    assert!(heard.iter().any(|envelope| is_shorter(&envelope.event)));
    assert_eq!(texts(&all(kept).await), ["kept", "second"]);
    assert_eq!(service.take_back(&SessionId::from("asleep"), &wanted).await, None);
}

/// A clock that is set manually.
#[derive(Default)]
struct ByHand(Mutex<Duration>);

#[async_trait]
impl Clock for ByHand {
    fn now(&self) -> Timestamp {
        Timestamp(1)
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// OBS-3: a write that another process blocks for more than a second is reported as a lock, with the
/// condition that ends it, although the session's own task waits for it as well.
#[tokio::test]
async fn a_locked_store_is_reported() {
    let mut bed = Bed::new([Scene::text("first")]);
    let clock = Arc::new(ByHand::default());
    bed.clock = Arc::clone(&clock) as _;
    let service = bed.service();
    let session = new_session(&service).await.id;
    let other = bed.writer();
    let mut submitted = service.submit(say(&session, "go"));
    assert!(futures_util::poll!(&mut submitted).is_pending());
    // The session's task has taken the request, and waits.
    tokio::task::yield_now().await;
    assert_eq!(service.why(&session).await, [], "nobody waits for long yet");
    *clock.0.lock().unwrap() = Duration::from_secs(5);
    let chain = service.why(&session).await;
    assert_eq!(
        (chain.len(), chain[0].on, chain[0].for_ms),
        (1, WaitOn::Lock, 5_000)
    );
    let said = service.command(&session, "/why").await.unwrap().text;
    assert!(
        said.starts_with("waiting for lock: the session store")
            && said.contains("ends when that process is done"),
        "{said}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    all(submitted.await.unwrap()).await;
    assert_eq!(service.why(&session).await, []);
}
