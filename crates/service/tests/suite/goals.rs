//! GOAL-1, GOAL-2: the goal of a session, through the client.

use std::time::Duration;

use serde_json::json;
use windlass_api::{
    Begin, Client, ClientError, Commands, Event, Follow, GoalCompletion, GoalEvent, GoalStop, Presence,
    SessionEvent, SessionId,
};
use windlass_core::event::LaterMessages;
use windlass_core::script::Scene;
use windlass_service::{AutonomyLimits, Goals, Service};

use super::bed::{Bed, all, answer, new_session, say};

/// Reply to `/done`.
const DONE: &str = "Goal completed. Your next message is a new goal, or /goal TEXT.";

/// A bed whose sessions have goals.
fn bed(scenes: impl IntoIterator<Item = Scene>) -> Bed {
    let bed = Bed::new(scenes);
    *bed.kit.goals.lock().unwrap() = Goals {
        subgoal: None,
        follows_goal: true,
        completion_phrases: vec!["task complete".to_owned()],
        later_messages: LaterMessages::Keep,
        ..Goals::default()
    };
    bed
}

/// Returns the active goal, on one line.
async fn goal(service: &Service, session: &SessionId) -> Option<String> {
    let told = told(service, session, "/goal").await;
    let words = told.strip_prefix("Goal: ")?.split_whitespace();
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Returns the goal for the status line.
async fn shown(service: &Service, session: &SessionId) -> Option<String> {
    service.overview(session).await.unwrap().goal
}

async fn told(service: &Service, session: &SessionId, line: &str) -> String {
    match service.command(session, line).await {
        Ok(reply) => reply.text,
        Err(error) => format!("refused: {error}"),
    }
}

/// Returns the goals in the record, in order.
async fn record(bed: &Bed, session: &SessionId) -> Vec<String> {
    let entries = bed.store().entries(session, 0, 1000).await.unwrap();
    let line = |event: Event| match event {
        Event::Session(SessionEvent::Goal { text, .. }) => Some(text.unwrap_or_else(|| "none".to_owned())),
        Event::Session(SessionEvent::GoalCompleted { text, how }) => Some(format!("{how:?}: {text}")),
        _ => None,
    };
    entries
        .into_iter()
        .filter_map(|entry| line(entry.event))
        .collect()
}

/// GOAL-1, GOAL-2, EVT-4: the first message is the goal, later ones do not change it; an answer that contains
/// a phrase completes it just before the turn ends; the next message is a new goal. Another process reads the
/// same state. No request mentions the goal.
#[tokio::test]
async fn goals_begin_and_are_reached() {
    let texts = [
        "I see.",
        "It prints \"task complete\".",
        "Task complete.",
        "Well.",
    ];
    let bed = bed(texts.map(Scene::text));
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(goal(&service, &session).await, None);
    assert!(told(&service, &session, "/goal").await.starts_with("No goal."));
    answer(&service, &session, "fix the\n  bug").await;
    assert_eq!(goal(&service, &session).await.as_deref(), Some("fix the bug"));
    assert_eq!(shown(&service, &session).await, None, "no command set it");
    answer(&service, &session, "and hurry").await;
    assert_eq!(told(&service, &session, "/goal").await, "Goal: fix the\n  bug");
    let events = all(service.submit(say(&session, "well?")).await.unwrap()).await;
    let reached = Event::Session(SessionEvent::GoalCompleted {
        text: "fix the\n  bug".to_owned(),
        how: GoalCompletion::Phrase,
    });
    let place = events.iter().position(|envelope| envelope.event == reached);
    assert_eq!(place, Some(events.len() - 2), "{events:?}");
    assert_eq!(goal(&service, &session).await, None);
    service.close().await;
    let service = bed.service();
    let shown = told(&service, &session, "/goal").await;
    assert!(shown.starts_with("Goal reached: fix the\n  bug\n"), "{shown}");
    answer(&service, &session, "now ship it").await;
    assert_eq!(goal(&service, &session).await.as_deref(), Some("now ship it"));
    service.close().await;
    let expected = ["fix the\n  bug", "Phrase: fix the\n  bug", "now ship it"];
    assert_eq!(record(&bed, &session).await, expected);
    for request in bed.provider.seen() {
        let seen = format!("{request:?}").to_lowercase();
        assert!(!seen.contains("goal"), "{seen}");
    }
}

/// GOAL-1, GOAL-2, CMD-1: `/goal TEXT` sets a goal in any state, `/goal clear` removes it, `/done` completes
/// it; impossible changes are refused and have no effect.
#[tokio::test]
async fn commands_change_the_goal() {
    let bed = bed([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let long = format!("/goal {}", "x".repeat(2_001));
    let off = "refused: working towards a goal unattended (--auto) is off";
    for (line, text, now) in [
        ("/done", "refused: there is no active goal", None),
        ("/goal ship it", "Goal: ship it", Some("ship it")),
        (
            "/goal create the new one",
            "Goal: the new one",
            Some("the new one"),
        ),
        (
            "/goal creates two\nlines",
            "Goal: creates two\nlines",
            Some("creates two lines"),
        ),
        (
            "/goal create",
            "refused: write it as /goal [TEXT | create --auto",
            Some("creates two lines"),
        ),
        (
            "/goal create --auto --turns 5 run",
            off,
            Some("creates two lines"),
        ),
        ("/goal --auto run", off, Some("creates two lines")),
        ("/goal create run --turns 5", off, Some("creates two lines")),
        (
            &long,
            "refused: a goal has at most 2000 characters",
            Some("creates two lines"),
        ),
        (
            "/done now",
            "refused: write it as /done",
            Some("creates two lines"),
        ),
        ("/done", DONE, None),
        ("/done", "refused: there is no active goal", None),
        ("/goal again", "Goal: again", Some("again")),
        ("/goal status", "Goal: again", Some("again")),
        ("/goal complete", DONE, None),
        ("/goal third", "Goal: third", Some("third")),
        ("/goal clear", "Goal cleared.", None),
        ("/goal", "No goal.", None),
    ] {
        let said = told(&service, &session, line).await;
        assert!(said.starts_with(text), "{line}: {said}");
        assert_eq!(goal(&service, &session).await.as_deref(), now, "{line}");
        assert_eq!(shown(&service, &session).await.as_deref(), now, "{line}");
    }
    service.close().await;
    let told = record(&bed, &session).await;
    assert_eq!(
        told,
        [
            "ship it",
            "the new one",
            "creates two\nlines",
            "Command: creates two\nlines",
            "again",
            "Command: again",
            "third",
            "none"
        ]
    );
}

/// GOAL-1: a goal belongs to its session: a session created by `/clear` has none, a fork has the goal of the
/// place it starts at, and a rewind restores the goal of that time.
#[tokio::test]
async fn goals_follow_forks_and_rewinds() {
    let bed = bed(["one", "Task complete.", "three"].map(Scene::text));
    bed.kit.keep_checkpoints();
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "first").await;
    let upto = service.overview(&session).await.unwrap().info.last_seq;
    answer(&service, &session, "second").await;
    answer(&service, &session, "third").await;
    assert_eq!(goal(&service, &session).await.as_deref(), Some("third"));
    let fork = |after| Begin::Fork {
        of: session.clone(),
        after,
        id: None,
        place: None,
    };
    for (after, expected) in [(Some(upto), "first"), (None, "third")] {
        let forked = service.begin(fork(after)).await.unwrap().id;
        assert_eq!(goal(&service, &forked).await.as_deref(), Some(expected));
    }
    told(&service, &session, "/undo --conversation").await;
    assert!(
        told(&service, &session, "/goal")
            .await
            .starts_with("Goal reached: first")
    );
    told(&service, &session, "/undo --conversation").await;
    assert_eq!(goal(&service, &session).await.as_deref(), Some("first"));
    let reply = service.command(&session, "/clear").await.unwrap();
    let Follow::Session(new) = reply.follow else {
        panic!("no session")
    };
    assert_eq!(goal(&service, &new.id).await, None);
    service.close().await;
    let again = bed.service();
    assert_eq!(goal(&again, &session).await.as_deref(), Some("first"));
    again.close().await;
}

/// GOAL-3, GOAL-9: the time of work without input is limited.
#[tokio::test]
async fn work_without_input_has_a_time_limit() {
    let bed = bed([Scene::text("never")]);
    bed.kit.goals.lock().unwrap().autonomy = AutonomyLimits {
        enabled: true,
        max_time: Duration::ZERO,
        ..AutonomyLimits::default()
    };
    let service = bed.service();
    let session = new_session(&service).await.id;
    let reply = service
        .command(&session, "/goal create --auto win")
        .await
        .unwrap();
    let Follow::Watch(events) = reply.follow else {
        panic!("nothing to watch")
    };
    let events = all(events).await;
    let end = &events.last().unwrap().event;
    let Event::Session(SessionEvent::Work(GoalEvent::GoalState { reason, message, .. })) = end else {
        panic!("{end:?}")
    };
    assert_eq!(*reason, Some(GoalStop::Time));
    assert_eq!(message, "it has taken 0 minutes, which is the limit");
    assert!(bed.provider.seen().is_empty());
    service.close().await;
}

/// GOAL-1: a goal survives a summary, although the record before it is no longer read.
#[tokio::test]
async fn goals_outlive_summaries() {
    let answers = (0..6).map(|number| Scene::text(&format!("answer {number} ").repeat(60)));
    let bed = bed(answers.chain([Scene::text("it was about numbers")]));
    let service = bed.service();
    let session = new_session(&service).await.id;
    told(&service, &session, "/goal count").await;
    for number in 0..6 {
        let text = format!("question {number} {}", "and so on ".repeat(40));
        answer(&service, &session, &text).await;
    }
    let events = all(service.summarize(&session).await.unwrap()).await;
    assert!(
        matches!(events.last().unwrap().event, Event::Final { .. }),
        "{events:?}"
    );
    service.close().await;
    let service = bed.service();
    assert_eq!(goal(&service, &session).await.as_deref(), Some("count"));
    service.close().await;
}

/// GOAL-1, CMD-2: a running turn does not see goals: they can be set and completed meanwhile. The output of a
/// user's command is not a goal.
#[tokio::test]
async fn a_running_turn_is_not_concerned() {
    let bed = bed([
        Scene::call("c1", "wait", json!({})),
        Scene::text("Task complete."),
    ]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let Follow::Watch(events) = service.command(&session, "/shell note x").await.unwrap().follow else {
        panic!("nothing to watch")
    };
    all(events).await;
    assert_eq!(goal(&service, &session).await, None);
    let events = service.submit(say(&session, "go")).await.unwrap();
    assert_eq!(goal(&service, &session).await.as_deref(), Some("go"));
    assert_eq!(told(&service, &session, "/done").await, DONE);
    bed.gate.notify_one();
    let events = all(events).await;
    let ends = events.iter().filter(|envelope| envelope.event.is_terminal());
    assert_eq!(ends.count(), 1);
    assert!(matches!(events.last().unwrap().event, Event::Final { .. }));
    service.close().await;
    assert_eq!(record(&bed, &session).await, ["go", "Command: go"]);
}

/// GOAL-1: if goals are off there are none, and commands about them report it.
#[tokio::test]
async fn goals_can_be_off() {
    let bed = bed(["Task complete."].map(Scene::text));
    bed.kit.goals.lock().unwrap().follows_goal = false;
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "first").await;
    for line in ["/goal", "/goal x", "/goal clear", "/done"] {
        let error = service.command(&session, line).await.err();
        let is_off = |error: ClientError| error.to_string().contains("agent.goal.enabled is false");
        assert!(error.is_some_and(is_off), "{line}");
    }
    assert_eq!(goal(&service, &session).await, None);
    service.close().await;
    assert_eq!(record(&bed, &session).await, Vec::<String>::new());
}
