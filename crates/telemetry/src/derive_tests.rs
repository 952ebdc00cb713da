use std::sync::Arc;

use windlass_core::event::{SessionEvent, StepStatus};
use windlass_core::message::{FinishReason, Text, ToolCall};
use windlass_core::model::Usage;

use super::*;
use crate::names;

const SESSION: &str = "s1";

fn subject() -> TraceSubject {
    TraceSubject {
        session: SESSION.into(),
        created_at: Timestamp(1000),
        agent: "windlass".to_owned(),
        content: false,
        redact: str::to_owned,
    }
}

fn message(id: &str, role: Role, parts: Vec<Part>, at: u64) -> Message {
    let mut message = Message::new(&SESSION.into(), role, parts, Timestamp(at));
    message.id = id.into();
    message
}

fn text(text: &str) -> Part {
    Part::Text(Text {
        text: text.to_owned(),
    })
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: "bash".to_owned(),
        input: "{}".to_owned(),
        finished: true,
    })
}

/// Numbers events; each has its time.
fn entries(events: Vec<(u64, Event)>) -> Vec<Entry> {
    let entry = |(seq, (time, event)): (u64, (u64, Event))| Entry {
        seq,
        time: Timestamp(time),
        event,
    };
    (1..).zip(events).map(entry).collect()
}

fn said(message: Message) -> Event {
    Event::Message {
        message: Arc::new(message),
    }
}

fn start() -> Event {
    Event::Start {
        provider: "gemini".to_owned(),
        model: "m".to_owned(),
    }
}

fn usage(input: u64) -> Event {
    Event::Usage {
        usage: Usage {
            input,
            output: 5,
            cache_read: 7,
            cache_write: 2,
            reasoning: 3,
            chunks: 4,
        },
        cost_usd: Some(0.5),
        cause: "turn".to_owned(),
    }
}

fn step(id: &str, number: u32, status: StepStatus, duration_ms: u64) -> Vec<Event> {
    let call_id: CallId = id.into();
    vec![
        Event::StepStart {
            call_id: call_id.clone(),
            title: String::new(),
            number,
        },
        Event::ToolCall {
            call_id: call_id.clone(),
            name: "bash".to_owned(),
            args: serde_json::json!({}),
        },
        Event::StepComplete {
            call_id,
            status,
            duration_ms,
        },
    ]
}

fn ended() -> Event {
    Event::Final {
        content: "bye".to_owned(),
        finish: FinishReason::EndTurn,
    }
}

/// A turn with two calls of the same id, as some providers send them.
fn turn(at: u64) -> Vec<(u64, Event)> {
    let mut reply = message(
        &format!("a{at}"),
        Role::Assistant,
        vec![call("c"), call("c")],
        at + 40,
    );
    reply.updated_at = Timestamp(at + 100);
    let mut events = vec![
        (
            at,
            said(message(&format!("u{at}"), Role::User, vec![text("hi")], at)),
        ),
        (at + 100, start()),
        (at + 100, usage(10)),
        (at + 100, said(reply)),
    ];
    let steps = [
        step("c", 1, StepStatus::Completed, 30),
        step("c", 2, StepStatus::Error, 20),
    ];
    events.extend(steps.concat().into_iter().map(|event| (at + 200, event)));
    let last = message(&format!("b{at}"), Role::Assistant, vec![text("bye")], at + 400);
    events.extend([
        (
            at + 200,
            said(message(&format!("t{at}"), Role::Tool, Vec::new(), at + 200)),
        ),
        (at + 400, usage(20)),
        (at + 400, said(last)),
        (at + 401, ended()),
    ]);
    events
}

/// OBS-1: spans follow from the record alone: names, times, usage, failures.
#[test]
fn a_turn_becomes_spans() {
    let all = entries(turn(1000));
    let turns = turns(&subject(), &all);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].last_seq, all.len() as u64);
    let spans = turns[0].clone().placed(&SESSION.into(), None);
    let lines: Vec<(&str, u64, u64)> = spans
        .iter()
        .map(|span| (span.name.as_str(), span.start_ms, span.end_ms))
        .collect();
    let expected = [
        ("invoke_agent windlass", 1000, 1401),
        ("chat m", 1000, 1100),
        ("execute_tool bash", 1170, 1200),
        ("execute_tool bash", 1180, 1200),
        ("chat m", 1200, 1400),
    ];
    assert_eq!(lines, expected);
    assert_eq!(spans[1].text(names::PROVIDER), Some("gcp.gemini"));
    assert_eq!(spans[1].int(names::INPUT_TOKENS), Some(19));
    assert_eq!(spans[1].int(names::CACHE_READ_TOKENS), Some(7));
    assert_eq!(spans[1].attribute(names::FIRST_CHUNK), Some(&0.04.into()));
    assert_eq!(spans[1].int(names::REASONING_TOKENS), Some(3));
    assert_eq!(spans[1].int(names::CHUNKS), Some(4));
    assert_eq!(spans[0].int(names::OUTPUT_TOKENS), Some(10));
    assert_eq!(spans[0].int(names::REASONING_TOKENS), Some(6));
    assert_eq!(spans[3].text(names::ERROR_TYPE), Some("tool_error"));
    let mut ids: Vec<[u8; 8]> = spans.iter().map(|span| span.context.span).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len());
    let root = spans[0].context;
    assert!(spans.iter().skip(1).all(|span| span.parent == Some(root.span)));
    assert_eq!(root, turn_context(&SESSION.into(), &"u1000".into(), None));
}

/// OBS-1: reading a session in parts gives the same spans as reading it at once.
#[test]
fn parts_give_the_same_spans() {
    let all = entries([turn(1000), turn(5000), turn(9000)].concat());
    let whole = turns(&subject(), &all);
    assert_eq!(whole.len(), 3);
    let mut parts = Vec::new();
    for turn in &whole {
        let after = parts.last().map_or(0, |last: &TurnTrace| last.last_seq);
        let part: Vec<Entry> = all
            .iter()
            .filter(|entry| entry.seq > after && entry.seq <= turn.last_seq)
            .cloned()
            .collect();
        parts.extend(turns(&subject(), &part));
    }
    assert_eq!(parts, whole);
}

/// OBS-1: a turn that runs is not exported, nor one that was copied from another session, nor a command of the user.
#[test]
fn only_own_ended_turns_count() {
    let mut open = turn(1000);
    open.pop();
    assert!(turns(&subject(), &entries(open)).is_empty());
    assert!(turns(&subject(), &entries(turn(500))).is_empty());
    let command = vec![
        (2000, said(message("u", Role::User, vec![text("out")], 2000))),
        (2000, ended()),
    ];
    assert!(turns(&subject(), &entries(command)).is_empty());
}

/// OBS-1: failed and canceled requests are spans, and a turn that could not start is one.
#[test]
fn failures_have_kinds() {
    let failed = Event::Failed {
        reason: FailureKind::Provider(windlass_core::provider::ProviderErrorKind::RateLimit),
        message: "slow down".to_owned(),
        hint: None,
        finish: FinishReason::Error,
    };
    let asked = |at| (at, said(message("u", Role::User, vec![text("hi")], at)));
    let kinds = |events: Vec<(u64, Event)>| -> Vec<(String, Option<String>)> {
        let turns = turns(&subject(), &entries(events));
        let spans = turns.into_iter().flat_map(|turn| turn.spans);
        spans
            .map(|span| (span.name.clone(), span.text(names::ERROR_TYPE).map(str::to_owned)))
            .collect()
    };
    let kind = |name: &str, kind: &str| (name.to_owned(), Some(kind.to_owned()));
    assert_eq!(
        kinds(vec![asked(2000), (2000, start()), (2100, failed.clone())]),
        [
            kind("invoke_agent windlass", "rate_limit"),
            kind("chat m", "rate_limit")
        ]
    );
    assert_eq!(
        kinds(vec![asked(2000), (2100, failed)]),
        [kind("invoke_agent windlass", "rate_limit")]
    );
    let canceled = Event::Canceled {
        message: "stopped".to_owned(),
    };
    assert_eq!(
        kinds(vec![asked(2000), (2000, start()), (2100, canceled)]),
        [
            kind("invoke_agent windlass", "canceled"),
            kind("chat m", "canceled")
        ]
    );
}

/// OBS-1: a compaction marks the turn, and its request is a span of its own.
#[test]
fn compactions_are_visible() {
    let mut events = turn(1000);
    let summary = Event::Usage {
        usage: Usage::default(),
        cost_usd: None,
        cause: "compaction".to_owned(),
    };
    let compaction = Event::Session(SessionEvent::Compaction {
        before: 100,
        after: 10,
        history: Vec::new(),
        fidelity: None,
    });
    events.splice(2..2, [(1050, compaction), (1060, summary)]);
    let spans = turns(&subject(), &entries(events)).remove(0).spans;
    assert_eq!(spans[0].attribute(names::COMPACTED), Some(&true.into()));
    assert_eq!(spans[1].text(names::CAUSE), Some("compaction"));
}

/// OBS-1: the call that started a sub-agent is found although ids repeat, while its turn still runs.
#[test]
fn callers_are_found() {
    let all = entries([turn(1000), turn(5000)].concat());
    let found = caller(&SESSION.into(), &all, Some(&"c".into()), Timestamp(5150));
    let span = call_span(&SESSION.into(), "a5000", 1);
    assert_eq!(found, Some(("u5000".into(), span)));
    assert_eq!(
        caller(&SESSION.into(), &all, Some(&"x".into()), Timestamp(5150)),
        None
    );
}

/// OBS-1: the names of the conventions are in one file.
#[test]
fn names_are_in_one_place() {
    fn check(folder: &std::path::Path) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                check(&path);
            } else if name.ends_with(".rs")
                && !name.ends_with("_tests.rs")
                && !name.ends_with("telemetry/src/names.rs")
            {
                let text = std::fs::read_to_string(&path).expect("a text");
                assert!(!text.contains(concat!("\"gen_ai", ".")), "{name}");
            }
        }
    }
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).expect("the crates") {
        let source = entry.expect("a crate").path().join("src");
        if source.is_dir() {
            check(&source);
        }
    }
}
