//! Hooks that follow the sessions of a service.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use windlass_api::{Begin, Client, Event, SessionId, SessionInfo};
use windlass_core::hook::{Hook, SessionClosing, SessionHook, SessionOpening};
use windlass_core::script::Scene;
use windlass_service::{Options, Service};

use super::bed::{Bed, all, answer, new_session, say};

/// Time limit of a hook that must not reach it.
const LONG: Duration = Duration::from_secs(600);
/// Time limit of a hook that reaches it.
const SHORT: Duration = Duration::from_millis(20);

/// A hook that reports its calls to the test.
struct Follower {
    seen: mpsc::UnboundedSender<String>,
    time_limit: Duration,
    /// Behavior at the start and the end of a session.
    start: Behavior,
    end: Behavior,
}

#[derive(Clone)]
enum Behavior {
    Return,
    Fail,
    Panic,
    Wait(Arc<Notify>),
}

impl Behavior {
    fn hang() -> Self {
        Self::Wait(Arc::default())
    }

    async fn run(&self) -> Result<(), String> {
        match self {
            Self::Return => Ok(()),
            Self::Fail => Err("no disk".to_owned()),
            Self::Panic => panic!("a bug in a hook"),
            Self::Wait(gate) => {
                gate.notified().await;
                Ok(())
            }
        }
    }
}

impl Hook for Follower {
    fn name(&self) -> &str {
        "follower"
    }

    fn time_limit(&self) -> Duration {
        self.time_limit
    }

    fn session(&self) -> Option<&dyn SessionHook> {
        Some(self)
    }
}

#[async_trait]
impl SessionHook for Follower {
    async fn session_started(&self, session: &SessionInfo, opening: SessionOpening) -> Result<(), String> {
        let _ = self.seen.send(format!("{} started {opening:?}", session.id));
        self.start.run().await
    }

    async fn session_ended(&self, session: &SessionInfo, closing: SessionClosing) -> Result<(), String> {
        let messages = session.totals.messages;
        let line = format!("{} ended {closing:?} with {messages} messages", session.id);
        let _ = self.seen.send(line);
        self.end.run().await
    }
}

/// Calls of the hook, in order.
struct Seen(mpsc::UnboundedReceiver<String>);

impl Seen {
    async fn next(&mut self) -> String {
        let next = tokio::time::timeout(Duration::from_secs(60), self.0.recv());
        next.await.unwrap().unwrap()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn follow(bed: &Bed, time_limit: Duration, start: Behavior, end: Behavior) -> Seen {
    let (seen, calls) = mpsc::unbounded_channel();
    bed.kit.hooks.lock().unwrap().push(Follower {
        seen,
        time_limit,
        start,
        end,
    });
    Seen(calls)
}

async fn close(service: &Service) {
    let closed = tokio::time::timeout(Duration::from_secs(60), service.close());
    closed.await.unwrap();
}

/// Returns the recorded warnings of a session.
async fn warnings(bed: &Bed, session: &SessionId) -> Vec<String> {
    let entries = bed.store().entries(session, 0, usize::MAX).await.unwrap();
    let warnings = entries.into_iter().filter_map(|entry| match entry.event {
        Event::Warning { message } => Some(message),
        _ => None,
    });
    warnings.collect()
}

/// LOOP-18: a hook sees one start and one end of each session that is opened, also of one whose turn is
/// canceled by the end of the program.
#[tokio::test]
async fn a_hook_sees_each_session_start_and_end_once() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("first"),
        Scene::text("second"),
    ]);
    let mut seen = follow(&bed, LONG, Behavior::Return, Behavior::Return);
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(seen.next().await, format!("{session} started New"));
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    while !matches!(events.next().await.unwrap().event, Event::ToolCall { .. }) {}
    close(&service).await;
    assert!(matches!(
        all(events).await.last().unwrap().event,
        Event::Canceled { .. }
    ));
    // The input, the call and its result.
    let ended = seen.next().await;
    assert_eq!(ended, format!("{session} ended Shutdown with 3 messages"));

    let again = bed.service();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    again.begin(Begin::Resume(session.clone())).await.unwrap();
    answer(&again, &session, "go on").await;
    assert_eq!(seen.next().await, format!("{session} started Resumed"));
    let fork = Begin::Fork {
        of: session.clone(),
        after: None,
        id: None,
        place: None,
    };
    let instead = Begin::Instead {
        of: session.clone(),
        begin: Box::new(fork),
    };
    let fork = again.begin(instead).await.unwrap().id;
    let mut calls = [seen.next().await, seen.next().await];
    calls.sort_by_key(|call| call.contains("ended"));
    let ended = format!("{session} ended Ended with 5 messages");
    assert_eq!(calls, [format!("{fork} started Forked"), ended]);
    close(&again).await;
    let ended = seen.next().await;
    assert_eq!(ended, format!("{fork} ended Shutdown with 5 messages"));
    assert!(seen.is_empty());
    assert_eq!(warnings(&bed, &session).await, Vec::<String>::new());
}

/// LOOP-18: a hook that hangs when the program ends is reported, and holds up neither the end nor the release
/// of the session.
#[tokio::test]
async fn a_hanging_hook_does_not_keep_the_service_open() {
    let bed = Bed::new([Scene::text("first"), Scene::text("second")]);
    let mut seen = follow(&bed, SHORT, Behavior::Return, Behavior::hang());
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "go").await;
    close(&service).await;
    assert_eq!(seen.next().await, format!("{session} started New"));
    let ended = seen.next().await;
    assert_eq!(ended, format!("{session} ended Shutdown with 2 messages"));
    let late = "the hook `follower` failed: it did not answer before the session was closed";
    assert_eq!(warnings(&bed, &session).await, [late]);
    assert_eq!(answer(&bed.service(), &session, "go on").await, "second");
}

/// LOOP-18: a hook that hangs when a session is opened can be canceled, by the user and by the end of the
/// program.
#[tokio::test]
async fn a_hanging_start_can_be_canceled() {
    let bed = Bed::new([Scene::text("first")]);
    let mut seen = follow(&bed, LONG, Behavior::hang(), Behavior::Return);
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(seen.next().await, format!("{session} started New"));
    assert!(service.cancel(&session).await);
    assert_eq!(answer(&service, &session, "go").await, "first");
    let other = new_session(&service).await.id;
    assert_eq!(seen.next().await, format!("{other} started New"));
    close(&service).await;
    let mut ended = [seen.next().await, seen.next().await];
    ended.sort_by_key(|call| call.starts_with(other.as_str()));
    assert_eq!(
        ended,
        [
            format!("{session} ended Shutdown with 2 messages"),
            format!("{other} ended Shutdown with 0 messages"),
        ]
    );
    let canceled = "the hook `follower` failed: it was canceled";
    assert_eq!(warnings(&bed, &session).await, [canceled]);
    assert_eq!(warnings(&bed, &other).await, [canceled]);
}

/// LOOP-18: a hook that fails or panics is reported in the session, which works as without the hook.
#[tokio::test]
async fn a_hook_that_fails_is_reported() {
    let cases = [
        (Behavior::Fail, "the hook `follower` failed: no disk"),
        (Behavior::Panic, "a hook failed with an internal error: "),
    ];
    for (behavior, expected) in cases {
        let bed = Bed::new([Scene::text("first")]);
        let _seen = follow(&bed, LONG, behavior.clone(), behavior);
        let service = bed.service();
        let session = new_session(&service).await.id;
        assert_eq!(answer(&service, &session, "go").await, "first");
        close(&service).await;
        let warnings = warnings(&bed, &session).await;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let are_expected = warnings.iter().all(|warning| warning.starts_with(expected));
        assert!(are_expected, "{warnings:?}");
    }
}

/// LOOP-18: an idle session is closed with its hooks; an input that arrives while they run opens it again and
/// is answered.
#[tokio::test]
async fn an_input_during_the_end_opens_the_session_again() {
    let bed = Bed::new([Scene::text("first")]);
    let gate = Arc::<Notify>::default();
    let end = Behavior::Wait(Arc::clone(&gate));
    let mut seen = follow(&bed, LONG, Behavior::Return, end);
    let options = Options {
        idle: SHORT,
        ..Options::default()
    };
    let service = bed.service_of(windlass_store::owner(), options);
    let session = new_session(&service).await.id;
    assert_eq!(seen.next().await, format!("{session} started New"));
    let ended = seen.next().await;
    assert_eq!(ended, format!("{session} ended Parked with 0 messages"));
    let (answered, ()) = tokio::join!(answer(&service, &session, "go"), async {
        // The input is sent before the hook ends.
        tokio::task::yield_now().await;
        gate.notify_one();
    });
    assert_eq!(answered, "first");
    assert_eq!(seen.next().await, format!("{session} started Resumed"));
    let ended = seen.next().await;
    assert!(
        ended.starts_with(&format!("{session} ended Parked with 2")),
        "{ended}"
    );
    gate.notify_one();
    close(&service).await;
    assert!(seen.is_empty());
}
