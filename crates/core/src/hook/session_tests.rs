//! Hooks at the start and the end of a session, on tokio's paused time.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::time::Instant;

use super::*;
use crate::clock::Timestamp;
use crate::log::{Label, SessionStatus, Totals};

/// Tokio's time, which a test pauses.
struct TokioClock(Instant);

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp(1)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        crate::clock::system().sleep(duration).await;
    }
}

type Log = Arc<Mutex<Vec<String>>>;

/// Behavior of a follower at each point.
#[derive(Clone, Copy)]
enum Does {
    Nothing,
    Fail,
    Hang,
}

/// A hook that notes its calls.
struct Follower {
    name: &'static str,
    log: Log,
    does: Does,
}

impl Follower {
    async fn at(&self, point: String) -> Result<(), String> {
        let line = format!("{} {point}", self.name);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        match self.does {
            Does::Nothing => Ok(()),
            Does::Fail => Err("no disk".to_owned()),
            Does::Hang => std::future::pending().await,
        }
    }
}

impl Hook for Follower {
    fn name(&self) -> &str {
        self.name
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(7)
    }

    fn session(&self) -> Option<&dyn SessionHook> {
        Some(self)
    }
}

#[async_trait]
impl SessionHook for Follower {
    async fn session_started(&self, session: &SessionInfo, opening: SessionOpening) -> Result<(), String> {
        self.at(format!("started {} {opening:?}", session.id)).await
    }

    async fn session_ended(&self, session: &SessionInfo, closing: SessionClosing) -> Result<(), String> {
        self.at(format!("ended {} {closing:?}", session.id)).await
    }
}

/// A hook without a part for sessions.
struct Other;

impl Hook for Other {
    fn name(&self) -> &str {
        "other"
    }
}

/// Three followers, of which the one in the middle does something else.
fn followers(middle: Does) -> (Hooks, Log) {
    let log = Log::default();
    let follower = |name, does| Follower {
        name,
        log: Arc::clone(&log),
        does,
    };
    let hooks = Hooks::new()
        .with(follower("a", Does::Nothing))
        .with(Other)
        .with(follower("b", middle))
        .with(follower("c", Does::Nothing));
    (hooks, log)
}

fn session() -> SessionInfo {
    SessionInfo {
        id: "s".into(),
        parent: None,
        label: Label::default(),
        place: "/project".to_owned(),
        standing: SessionStatus::default(),
        model: None,
        totals: Totals::default(),
        summary: None,
        last_seq: 0,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
        user: crate::log::UserName::default(),
        waits: None,
    }
}

/// Opens and closes a session. Returns the warnings and the duration of each.
async fn open_and_close(hooks: &Hooks, cancel: &CancellationToken) -> [(Vec<String>, Duration); 2] {
    let clock = TokioClock(Instant::now());
    let opening = SessionOpening::Forked;
    let opened = hooks.session_started(&clock, &session(), opening, cancel).await;
    let between = clock.elapsed();
    let closed = hooks
        .session_ended(&clock, &session(), SessionClosing::Parked)
        .await;
    [(opened, between), (closed, clock.elapsed() - between)]
}

/// LOOP-18: every hook sees the start of a session in the order of the list, and its end in reverse. A hook
/// that fails or hangs is reported, and the hooks after it are called.
#[tokio::test(start_paused = true)]
async fn hooks_follow_a_session() {
    let failed = "the hook `b` failed: no disk";
    let silent = "the hook `b` did not answer within 7 s";
    let late = "the hook `b` failed: it did not answer before the session was closed";
    let cases = [
        (Does::Nothing, [(None, 0), (None, 0)]),
        (Does::Fail, [(Some(failed), 0), (Some(failed), 0)]),
        (Does::Hang, [(Some(silent), 7), (Some(late), 5)]),
    ];
    for (does, expected) in cases {
        let (hooks, log) = followers(does);
        assert!(hooks.follow_sessions());
        let found = open_and_close(&hooks, &CancellationToken::new()).await;
        for ((warnings, took), (warning, seconds)) in found.iter().zip(expected) {
            assert_eq!(warnings.as_slice(), warning.as_slice());
            assert_eq!(took.as_secs(), seconds);
        }
        assert_eq!(
            *log.lock().unwrap_or_else(PoisonError::into_inner),
            [
                "a started s Forked",
                "b started s Forked",
                "c started s Forked",
                "c ended s Parked",
                "b ended s Parked",
                "a ended s Parked",
            ]
        );
    }
}

/// LOOP-18: hooks that hang at the end of a session share one time limit, and each of them is called.
#[tokio::test(start_paused = true)]
async fn the_end_has_one_time_limit() {
    let log = Log::default();
    let hooks = ["a", "b", "c"].into_iter().fold(Hooks::new(), |hooks, name| {
        hooks.with(Follower {
            name,
            log: Arc::clone(&log),
            does: Does::Hang,
        })
    });
    let clock = TokioClock(Instant::now());
    let warnings = hooks
        .session_ended(&clock, &session(), SessionClosing::Shutdown)
        .await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!(clock.elapsed().as_secs(), CLOSING_LIMIT.as_secs());
    assert_eq!(log.lock().unwrap_or_else(PoisonError::into_inner).len(), 3);
}

/// LOOP-18: hooks at the start of a session are not waited for once it is stopped; each of them is called.
#[tokio::test(start_paused = true)]
async fn the_start_can_be_canceled() {
    let (hooks, log) = followers(Does::Hang);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let [(warnings, took), _] = open_and_close(&hooks, &cancel).await;
    assert_eq!(warnings, ["the hook `b` failed: it was canceled"]);
    assert_eq!(took, Duration::ZERO);
    assert_eq!(log.lock().unwrap_or_else(PoisonError::into_inner).len(), 6);
}

/// LOOP-18: hooks of turns alone do not follow sessions.
#[tokio::test]
async fn other_hooks_do_not_follow_sessions() {
    let hooks = Hooks::new().with(Other);
    assert!(!hooks.follow_sessions());
    let found = open_and_close(&hooks, &CancellationToken::new()).await;
    assert!(found.iter().all(|(warnings, _)| warnings.is_empty()));
}

/// A hook that sends sub-agents back to work.
struct Insistent(&'static str);

impl Hook for Insistent {
    fn name(&self) -> &str {
        self.0
    }

    fn session(&self) -> Option<&dyn SessionHook> {
        Some(self)
    }
}

#[async_trait]
impl SessionHook for Insistent {
    async fn child_started(&self, child: &AgentRow) -> Result<(), String> {
        Err(format!("no room for {}", child.title()))
    }

    async fn child_ended(&self, child: &AgentRow) -> ChildAction {
        ChildAction::Continue(format!("{}: check {}", self.0, child.title()))
    }
}

fn child() -> AgentRow {
    AgentRow {
        session: "c".into(),
        family: crate::log::AgentFamily {
            root: "s".into(),
            parent: "s".into(),
            call: None,
            number: 2,
            depth: 1,
        },
        job: crate::log::AgentJob {
            name: "scout".to_owned(),
            ..crate::log::AgentJob::default()
        },
        status: crate::log::AgentStatus::default(),
        budget: crate::log::AgentBudget::default(),
        spent: crate::log::AgentBudget::default(),
        created_at: Timestamp(1),
        ended_at: None,
        server: None,
        seen_at: Timestamp(1),
    }
}

/// LOOP-18: hooks follow sub-agents: an error at the start is a warning, and the last hook that wants a sub-agent to
/// continue decides; one that does not answer is reported, and the result is accepted.
#[tokio::test(start_paused = true)]
async fn hooks_follow_sub_agents() {
    let clock = TokioClock(Instant::now());
    let hooks = Hooks::new().with(Insistent("a")).with(Insistent("b")).with(Other);
    let warnings = hooks.child_started(&clock, &child()).await;
    assert_eq!(
        warnings,
        [
            "the hook `a` failed: no room for 2 scout",
            "the hook `b` failed: no room for 2 scout"
        ]
    );
    let (action, warnings) = hooks.child_ended(&clock, &child()).await;
    assert_eq!(action, ChildAction::Continue("b: check 2 scout".to_owned()));
    assert!(warnings.is_empty());
    let (hooks, _log) = followers(Does::Nothing);
    assert_eq!(
        hooks.child_ended(&clock, &child()).await,
        (ChildAction::Accept, Vec::new())
    );
}
