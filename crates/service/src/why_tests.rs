//! Timed events in, wait chain out.

use std::sync::Arc;

use serde_json::json;
use windlass_api::{DeltaKind, FinishReason, ProviderErrorKind, SessionId, StepStatus};
use windlass_core::clock::Timestamp;
use windlass_core::message::ToolCall;
use windlass_core::tool::Category;

use super::*;

fn start() -> Event {
    Event::Start {
        provider: "anthropic".into(),
        model: "opus".into(),
    }
}

fn said(role: Role, calls: &[(&str, &str)]) -> Event {
    let call = |(id, name): &(&str, &str)| {
        Part::ToolCall(ToolCall {
            id: CallId::from(*id),
            name: (*name).to_owned(),
            input: "{}".to_owned(),
            finished: true,
        })
    };
    let parts = calls.iter().map(call).collect();
    let message = Message::new(&SessionId::from("s"), role, parts, Timestamp(0));
    Event::Message {
        message: Arc::new(message),
    }
}

fn step(id: &str, title: &str) -> Event {
    Event::StepStart {
        call_id: CallId::from(id),
        title: title.to_owned(),
        number: 1,
    }
}

fn output(id: &str) -> Event {
    Event::ToolOutput {
        call_id: CallId::from(id),
        text: "…".into(),
    }
}

fn result(id: &str) -> Event {
    Event::ToolResult {
        call_id: CallId::from(id),
        name: "bash".into(),
        content: String::new(),
        is_error: false,
        details: Some(json!({})),
    }
}

fn complete(id: &str) -> Event {
    Event::StepComplete {
        call_id: CallId::from(id),
        status: StepStatus::Completed,
        duration_ms: 1,
    }
}

fn delta() -> Event {
    Event::Delta {
        kind: DeltaKind::Text,
        text: "a".into(),
    }
}

fn retry(delay_ms: u64) -> Event {
    Event::Retry {
        attempt: 2,
        max_attempts: 5,
        delay_ms,
        kind: ProviderErrorKind::Overloaded,
        message: "overloaded".into(),
        discard: false,
    }
}

fn request(id: &str) -> Event {
    Event::Waiting(Waiting::PermissionRequest {
        call_id: CallId::from(id),
        tool: "bash".into(),
        category: Category::Admin,
        subjects: vec!["make test".into(), "rm -r x".into()],
        reasons: vec!["it removes files".into()],
        preview: None,
        once_only: false,
        agent: None,
    })
}

fn answer(id: &str) -> Event {
    Event::Waiting(Waiting::PermissionAnswer {
        call_id: CallId::from(id),
        allowed: true,
    })
}

fn ended() -> Event {
    Event::Final {
        content: String::new(),
        finish: FinishReason::EndTurn,
    }
}

fn compaction() -> Event {
    Event::Session(SessionEvent::Compaction {
        before: 2,
        after: 1,
        history: Vec::new(),
        fidelity: None,
    })
}

/// Applies events at given seconds, and compares the chain at another second.
#[track_caller]
fn check(events: &[(u64, Event)], at: u64, expected: &str) {
    let mut why = Why::default();
    for (second, event) in events {
        why.hear(Duration::from_secs(*second), event);
    }
    assert_eq!(lines(&why.chain(Duration::from_secs(at), None)), expected);
}

/// OBS-3: a turn that waits for a model reports which model, since when, and whether the reply has started.
#[test]
fn models_are_waited_for() {
    check(&[], 5, "");
    check(
        &[(1, said(Role::User, &[]))],
        3,
        "waiting for provider: the first request is being prepared — for 2 s; ends when it is sent, or when \
         you stop the turn",
    );
    check(
        &[(1, said(Role::User, &[])), (2, start())],
        14,
        "waiting for provider: anthropic/opus to answer — for 12 s; ends when it answers, or when you stop the turn",
    );
    check(
        &[(2, start()), (5, delta()), (9, delta())],
        12,
        "waiting for provider: anthropic/opus to continue; the reply has taken 10 s so far — for 3 s; ends \
         when it continues, or when you stop the turn",
    );
    check(&[(2, start()), (5, delta()), (6, ended())], 9, "");
}

/// OBS-3: a retry reports its time, attempt and reason; once it is sent, the turn waits for the model.
#[test]
fn retries_are_waited_for() {
    let events = [(0, start()), (10, retry(8_000))];
    check(
        &events,
        13,
        "waiting for retry: retry 2 of 5, because overloaded — for 3 s; ends when it is sent, in 5 s, or when \
         you stop the turn",
    );
    check(
        &events,
        20,
        "waiting for provider: anthropic/opus to answer — for 2 s; ends when it answers, or when you stop the turn",
    );
}

/// OBS-3: the running call is reported, with the time since its last output and the number of calls after it.
#[test]
fn tools_are_waited_for() {
    let mut events = vec![
        (0, start()),
        (
            1,
            said(
                Role::Assistant,
                &[("a", "bash"), ("b", "bash"), ("c", "read_file")],
            ),
        ),
    ];
    check(
        &events,
        1,
        "waiting for tool: bash, about to start, then 2 more calls — for 0 s; ends when it ends or times out, \
         or when you stop the turn",
    );
    events.extend([(2, step("a", "bash make test")), (60, output("a"))]);
    check(
        &events,
        200,
        "waiting for tool: bash make test, last output 2 min 20 s ago, then 2 more calls — for 3 min 18 s; \
         ends when it ends or times out, or when you stop the turn",
    );
    // A call that ran in parallel is known from its first event.
    events.extend([
        (205, output("b")),
        (210, result("a")),
        (210, complete("a")),
        (210, step("b", "bash ls")),
    ]);
    check(
        &events,
        211,
        "waiting for tool: bash ls, last output 6 s ago, then 1 more call — for 6 s; ends when it ends or \
         times out, or when you stop the turn",
    );
    events.extend([
        (212, result("b")),
        (213, step("c", "read_file")),
        (214, result("c")),
    ]);
    let asking = "waiting for provider: anthropic/opus to answer — for 4 s; ends when it answers, or when \
                  you stop the turn";
    check(&events, 218, asking);
    events.push((214, said(Role::Tool, &[])));
    check(&events, 218, asking);
}

/// OBS-3: a turn that waits for a person reports what for: the call outside, the person inside.
#[test]
fn people_are_waited_for() {
    let mut events = vec![
        (0, start()),
        (1, said(Role::Assistant, &[("a", "bash"), ("b", "bash")])),
        (2, request("a")),
    ];
    check(
        &events,
        9,
        "waiting for tool: bash make test · rm -r x, then 1 more call — for 7 s; ends when it is approved and \
         has run\n  waiting for approval: permission to run bash make test · rm -r x, because it removes \
         files — for 7 s; ends when someone answers, or when you stop the turn",
    );
    let question = Event::Waiting(Waiting::Question {
        call_id: CallId::from("a"),
        text: "Which one?".into(),
        options: Vec::new(),
    });
    events.extend([(10, answer("a")), (11, step("a", "ask_user")), (12, question)]);
    check(
        &events,
        20,
        "waiting for tool: ask_user, then 1 more call — for 9 s; ends when it ends or times out, or when you \
         stop the turn\n  waiting for question: Which one? — for 8 s; ends when someone answers, or when you \
         stop the turn",
    );
}

/// OBS-3: a running compaction is reported, within a turn and on demand, and nothing remains of it
/// afterwards.
#[test]
fn summaries_are_waited_for() {
    let line = "waiting for summary: the conversation is being compacted — for 4 s; ends when the summary is done or \
                times out, or when you stop the turn";
    check(
        &[(1, Event::Session(SessionEvent::Compacting { before: 1 }))],
        5,
        line,
    );
    let mut events = vec![
        (0, start()),
        (1, Event::Session(SessionEvent::Compacting { before: 1 })),
        (2, said(Role::User, &[])),
    ];
    check(&events, 5, line);
    events.push((6, compaction()));
    check(
        &events,
        8,
        "waiting for provider: anthropic/opus to answer — for 2 s; ends when it answers, or when you stop the turn",
    );
    check(&[(0, compaction())], 8, "");
}

/// OBS-3: memory does not grow with a turn: only calls without a result are stored.
#[test]
fn only_open_calls_are_kept() {
    let mut why = Why::default();
    why.hear(Duration::ZERO, &start());
    for number in 0..1000 {
        let id = number.to_string();
        why.hear(Duration::ZERO, &said(Role::Assistant, &[(&id, "bash")]));
        why.hear(Duration::ZERO, &step(&id, "bash"));
        why.hear(Duration::ZERO, &result(&id));
        why.hear(Duration::ZERO, &said(Role::Tool, &[]));
    }
    assert!(why.calls.capacity() < 16, "{}", why.calls.capacity());
}
