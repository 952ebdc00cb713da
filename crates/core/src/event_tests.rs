//! Published format of events.

use serde_json::json;

use super::*;
use crate::clock::Timestamp;

fn envelope(event: Event) -> Envelope {
    Envelope {
        v: EVENT_VERSION,
        session: SessionId::from("s"),
        seq: 3,
        event,
    }
}

fn work(event: GoalEvent) -> Event {
    Event::Session(SessionEvent::Work(event))
}

fn samples() -> Vec<Event> {
    let call_id = CallId::from("c1");
    let message = Message::user(&SessionId::from("s"), "hi", Timestamp(1));
    vec![
        Event::Start {
            provider: "sim".into(),
            model: "sim-1".into(),
        },
        Event::Message {
            message: Arc::new(message),
        },
        Event::Reasoning { text: "hm".into() },
        Event::Text {
            text: "let me look".into(),
        },
        Event::StepStart {
            call_id: call_id.clone(),
            title: "ls".into(),
            number: 1,
        },
        Event::ToolCall {
            call_id: call_id.clone(),
            name: "ls".into(),
            args: json!({"_raw": "{"}),
        },
        Event::ToolResult {
            call_id: call_id.clone(),
            name: "ls".into(),
            content: "x".into(),
            is_error: false,
            details: None,
        },
        Event::StepComplete {
            call_id: call_id.clone(),
            status: StepStatus::Completed,
            duration_ms: 5,
        },
        Event::Waiting(Waiting::PermissionRequest {
            call_id: call_id.clone(),
            tool: "bash".into(),
            category: crate::tool::Category::Admin,
            subjects: vec!["git push".into()],
            reasons: vec!["it reaches the network".into()],
            preview: None,
            once_only: false,
            agent: None,
        }),
        Event::Waiting(Waiting::Question {
            call_id: call_id.clone(),
            text: "which?".into(),
            options: vec!["a".into()],
        }),
        Event::Waiting(Waiting::PermissionAnswer {
            call_id: call_id.clone(),
            allowed: true,
        }),
        Event::Usage {
            usage: Usage::default(),
            cost_usd: Some(0.1),
            cause: "turn".into(),
        },
        Event::Session(SessionEvent::Compaction {
            before: 9,
            after: 3,
            history: vec!["m".into()],
            fidelity: Some(crate::compact::Fidelity::default()),
        }),
        Event::Session(SessionEvent::Rewind { to: 4 }),
        Event::Session(SessionEvent::Title { title: "t".into() }),
        Event::Session(SessionEvent::Goal {
            text: Some("ship it".into()),
            explicit: true,
        }),
        Event::Session(SessionEvent::Goal {
            text: None,
            explicit: false,
        }),
        Event::Session(SessionEvent::GoalCompleted {
            text: "ship it".into(),
            how: GoalCompletion::Phrase,
        }),
        work(GoalEvent::GoalRun(GoalRun {
            text: "ship it".into(),
            criteria: vec![
                Criterion::Command {
                    command: "make".into(),
                },
                Criterion::File { path: "a".into() },
                Criterion::User,
            ],
            plan: true,
            max_turns: 50,
            max_cost_usd: Some(1.5),
            before_usd: 0.25,
            before_tokens: 7,
        })),
        work(GoalEvent::GoalTurn { number: 1 }),
        work(GoalEvent::GoAhead { input: "m1".into() }),
        work(GoalEvent::GoalCheck(CheckRun {
            criterion: Criterion::Command {
                command: "make".into(),
            },
            passed: true,
            evidence: Evidence {
                exit_code: Some(0),
                output: Some("o".into()),
                tree: Some("t".into()),
            },
            excerpt: "ok".into(),
        })),
        work(GoalEvent::GoalVerdict {
            turn: 5,
            achieved: false,
            reason: "not yet".into(),
        }),
        work(GoalEvent::GoalState {
            state: GoalState::Active,
            reason: Some(GoalStop::RateLimit),
            message: "m".into(),
            at: Timestamp(3),
            until: Some(Timestamp(4)),
        }),
        work(GoalEvent::Claim(ClaimCheck {
            text: "tests pass".into(),
            command: "make".into(),
            claimed_exit_code: 0,
            status: ClaimStatus::False,
            evidence: Evidence::default(),
        })),
        work(GoalEvent::Plan(Plan {
            goal: "ship it".into(),
            steps: vec![PlanStep {
                id: "a".into(),
                title: "build".into(),
                depends_on: vec!["b".into()],
                check: Some("make".into()),
                status: StepState::Done,
            }],
        })),
        Event::Retry {
            attempt: 1,
            max_attempts: 8,
            delay_ms: 2000,
            kind: ProviderErrorKind::RateLimit,
            message: "slow down".into(),
            discard: false,
        },
        Event::Warning { message: "w".into() },
        Event::Error { message: "e".into() },
        Event::Final {
            content: "done".into(),
            finish: FinishReason::EndTurn,
        },
        Event::Canceled { message: "c".into() },
        Event::Failed {
            reason: FailureKind::Provider(ProviderErrorKind::Auth),
            message: "no key".into(),
            hint: Some("set it".into()),
            finish: FinishReason::Error,
        },
        Event::Delta {
            kind: DeltaKind::Text,
            text: "d".into(),
        },
        Event::ToolOutput {
            call_id,
            text: "line".into(),
        },
        Event::Status {
            text: "compacting".into(),
        },
    ]
}

/// EVT-6: every event is one flat JSON object with version, session, sequence number and type, and
/// round-trips.
#[test]
fn events_round_trip() {
    for event in samples() {
        let stored = serde_json::to_value(envelope(event.clone())).expect("serializes");
        assert_eq!((stored["v"].as_u64(), stored["seq"].as_u64()), (Some(1), Some(3)));
        assert!(stored["type"].is_string(), "{stored}");
        let back: Envelope = serde_json::from_value(stored).expect("reads back");
        assert_eq!(back.event, event);
    }
}

/// EVT-6: the published schema matches the code. `UPDATE_DOCS=1` rewrites it.
#[test]
fn the_published_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.schema.json");
    let current = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &current).expect("docs can be written");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        published, current,
        "run with UPDATE_DOCS=1 to update docs/events.schema.json"
    );
}

/// EVT-2: exactly three events are terminal, and none of them is live.
#[test]
fn terminal_and_live() {
    let terminal = samples().iter().filter(|event| event.is_terminal()).count();
    let live = samples().iter().filter(|event| event.is_live()).count();
    assert_eq!((terminal, live), (3, 3));
    assert!(
        !samples()
            .iter()
            .any(|event| event.is_live() && event.is_terminal())
    );
}
