//! JSON of every public type: an example of each, and proof that none is missing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

/// Public types that do not serialize.
const WITHOUT_JSON: &[&str] = &[
    "EventStream",
    // State of a front end, which no message carries.
    "Approval",
    "ApprovalKey",
    "ApprovalChoice",
    "Cleaning",
    "Pressed",
    "Approvers",
    "HeldMessages",
    "SenderMessage",
];

/// Checks examples of a type: each serializes to this JSON, and is the same after a round trip.
#[track_caller]
fn check<T: Serialize + DeserializeOwned>(examples: Vec<(T, Value)>) {
    for (value, expected) in examples {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        let back: T = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), expected);
    }
}

/// Checks the examples of each type and returns the names of the types.
macro_rules! checked {
    ($($name:ident: [$($value:expr => $json:tt),+ $(,)?])+) => {{
        $(check::<$name>(vec![$(($value, json!($json))),+]);)+
        vec![$(stringify!($name)),+]
    }};
}

fn id() -> SessionId {
    "s1".into()
}

fn info() -> SessionInfo {
    serde_json::from_value(info_json()).unwrap()
}

fn info_json() -> Value {
    json!({
        "id": "s1", "parent": null, "label": {"title": "T", "name": null, "key": null}, "place": "/project",
        "standing": "answered", "model": ["p", "m"],
        "totals": {"messages": 2, "prompt_tokens": 3, "completion_tokens": 4, "context_tokens": 5, "cost_usd": 0.5, "unpriced": false},
        "summary": null, "last_seq": 7, "created_at": 1, "updated_at": 2
    })
}

fn agent_json() -> Value {
    let nothing = json!({"tokens": null, "cost_usd": null, "turns": null, "seconds": null});
    json!({
        "session": "s2", "root": "s1", "parent": "s1", "call": null, "number": 1, "depth": 1, "name": "scout",
        "type": "explorer", "task": "look", "background": false, "wake": false, "place": "/project", "worktree": null,
        "state": "timed_out", "reason": "after 5 s", "waiting_on": null, "result": "half", "delivered": true,
        "budget": nothing, "spent": {"tokens": 3, "cost_usd": 0.5, "turns": 1, "seconds": 5}, "created_at": 1,
        "ended_at": 2, "seen_at": 2
    })
}

fn message() -> Message {
    serde_json::from_value(message_json()).unwrap()
}

fn message_json() -> Value {
    json!({
        "id": "m1", "session_id": "s1", "role": "user", "parts": [{"type": "text", "data": {"text": "hi"}}],
        "created_at": 1, "updated_at": 1
    })
}

fn part() -> Part {
    Part::text("hi")
}

fn requests() -> Vec<&'static str> {
    checked! {
        Submission: [Submission::text(id(), "hi") => {
            "session": "s1", "parts": [{"type": "text", "data": {"text": "hi"}}], "on_busy": "refuse"
        }]
        OnBusy: [OnBusy::Refuse => "refuse", OnBusy::Queue => "queue", OnBusy::Steer => "steer"]
        Begin: [
            Begin::New { id: Some(id()), place: "/project".into(), label: Label::default(), parent: None } => {
                "type": "new",
                "data": {
                    "id": "s1", "place": "/project", "label": {"title": null, "name": null, "key": null}, "parent": null
                }
            },
            Begin::Keyed { key: SessionKey::main("a").unwrap(), place: "/project".into() } =>
                {"type": "keyed", "data": {"key": "agent:a:main", "place": "/project"}},
            Begin::Resume(id()) => {"type": "resume", "data": "s1"},
            Begin::Fork { of: id(), after: Some(3), id: None, place: Some("/project".into()) } =>
                {"type": "fork", "data": {"of": "s1", "after": 3, "id": null, "place": "/project"}},
            Begin::Instead { of: id(), begin: Box::new(Begin::Resume("s2".into())) } =>
                {"type": "instead", "data": {"of": "s1", "begin": {"type": "resume", "data": "s2"}}},
        ]
        UserReply: [
            UserReply::Permission(Answer::Once) => {"type": "permission", "data": {"type": "once"}},
            UserReply::Text("blue".into()) => {"type": "text", "data": "blue"},
        ]
        Answer: [
            Answer::Once => {"type": "once"},
            Answer::Session => {"type": "session"},
            Answer::Always => {"type": "always"},
            Answer::AlwaysFor(vec!["bash(git *)".parse().expect("a rule")]) => {"type": "always_for", "data": ["bash(git *)"]},
            Answer::No => {"type": "no"},
            Answer::NoBecause("too much".into()) => {"type": "no_because", "data": "too much"},
        ]
        Input: [Input { text: "hi".into(), attachments: vec![part()] } => {
            "text": "hi", "attachments": [{"type": "text", "data": {"text": "hi"}}]
        }]
        Find: [Find { words: "a".into(), limit: 5, ..Find::default() } => {"words": "a", "place": null, "limit": 5}]
    }
}

fn replies() -> Vec<&'static str> {
    checked! {
        FolderMade: [
            FolderMade {
                folder: "/project".into(),
                files: 3,
                as_of: Timestamp(5),
                after: Some("bash".into()),
                left: vec![".env: never stored".into()],
                is_new: true,
            } => {
                "folder": "/project", "files": 3, "as_of": 5, "after": "bash", "left": [".env: never stored"],
                "is_new": true
            },
        ]
        ClientError: [
            ClientError::Busy(id()) => {"type": "busy", "data": "s1"},
            ClientError::QueueFull(id()) => {"type": "queue_full", "data": "s1"},
            ClientError::Unknown(id()) => {"type": "unknown", "data": "s1"},
            ClientError::Empty => {"type": "empty"},
            ClientError::Closed(id()) => {"type": "closed", "data": "s1"},
            ClientError::CommandUsage("u".into()) => {"type": "command_usage", "data": "u"},
            ClientError::Command("c".into()) => {"type": "command", "data": "c"},
            ClientError::CommandBusy { session: id(), command: "undo".into() } =>
                {"type": "command_busy", "data": {"session": "s1", "command": "undo"}},
            ClientError::Setup("s".into()) => {"type": "setup", "data": "s"},
            ClientError::Store("d".into()) => {"type": "store", "data": "d"},
        ]
        ChannelError: [
            ChannelError::Turn("t".into()) => {"type": "turn", "data": "t"},
            ChannelError::Fatal("f".into()) => {"type": "fatal", "data": "f"},
        ]
        Ended: [Ended { session: id(), refused: Some(ClientError::Empty) } =>
            {"session": "s1", "refused": {"type": "empty"}}]
        CommandInfo: [
            CommandInfo {
                name: "help".into(),
                aliases: vec!["h".into()],
                arguments: "[COMMAND]".into(),
                help: "Lists commands.".into(),
                source: CommandSource::BuiltIn,
            } => {
                "name": "help", "aliases": ["h"], "arguments": "[COMMAND]", "help": "Lists commands.",
                "source": "built_in"
            },
        ]
        CommandSource: [
            CommandSource::BuiltIn => "built_in",
            CommandSource::User => "user",
            CommandSource::Project => "project",
        ]
        CommandReply: [CommandReply { text: "done".into(), follow: Follow::Nothing } =>
            {"text": "done", "follow": {"type": "nothing"}}]
        Follow: [
            Follow::Nothing => {"type": "nothing"},
            Follow::Submit(vec![part()]) => {"type": "submit", "data": [{"type": "text", "data": {"text": "hi"}}]},
            Follow::Session(Box::new(info())) => {"type": "session", "data": (info_json())},
            Follow::Watch(EventStream::default()) => {"type": "watch"},
            Follow::Edit { command: "/plan set".into(), text: "- [ ] a: b".into() } =>
                {"type": "edit", "data": {"command": "/plan set", "text": "- [ ] a: b"}},
            Follow::Leave => {"type": "leave"},
        ]
        Offer: [
            Offer {
                name: "p".into(),
                model: "m".into(),
                needs_key: true,
                is_ready: false,
                hint: "set P_KEY".into(),
            } => {"name": "p", "model": "m", "needs_key": true, "is_ready": false, "hint": "set P_KEY"},
        ]
        Overview: [
            Overview {
                info: info(),
                provider: "p".into(),
                model: "m".into(),
                window: 1000,
                mode: "default".into(),
                effort: "low".into(),
                surroundings: FolderFacts::default(),
                is_busy: true,
                queue: vec![Arc::new(message())],
                goal: Some("g".into()),
                subgoal: None,
            } => {
                "info": (info_json()), "provider": "p", "model": "m", "window": 1000, "mode": "default",
                "effort": "low",
                "surroundings": {"branch": null, "instructions": []}, "is_busy": true, "queue": [(message_json())], "goal": "g", "subgoal": null
            },
        ]
        ContextReport: [
            ContextReport { model: "m".into(), window: 1000, tokens: 2, bytes: 5, ..ContextReport::default() } => {
                "model": "m", "window": 1000, "used_tokens": 0, "bytes": 5, "tokens": 2, "cost_usd": null, "spans": [],
                "notices": []
            },
        ]
        ContextSpan: [
            ContextSpan {
                origin: SpanOrigin::Message,
                role: Some(Role::User),
                message: Some("m1".into()),
                what: "you hi".into(),
                bytes: 5,
                tokens: 2,
                age_ms: Some(7),
                is_cached: true,
                cost_usd: None,
            } => {
                "origin": "message", "role": "user", "message": "m1", "what": "you hi", "bytes": 5, "tokens": 2,
                "age_ms": 7, "is_cached": true, "cost_usd": null
            },
        ]
        SpanOrigin: [
            SpanOrigin::Options => "options", SpanOrigin::System => "system", SpanOrigin::Tools => "tools",
            SpanOrigin::Message => "message", SpanOrigin::Frame => "frame",
        ]
        FolderFacts: [FolderFacts { branch: Some("main".into()), instructions: vec!["AGENTS.md".into()] } =>
            {"branch": "main", "instructions": ["AGENTS.md"]}]
        Wait: [Wait { on: WaitOn::Tool, what: "bash".into(), for_ms: 12, ends: "with the command".into() } =>
            {"on": "tool", "what": "bash", "for_ms": 12, "ends": "with the command"}]
        WaitOn: [
            WaitOn::Provider => "provider", WaitOn::Retry => "retry", WaitOn::Tool => "tool",
            WaitOn::Approval => "approval", WaitOn::Question => "question", WaitOn::Lock => "lock",
            WaitOn::Child => "child", WaitOn::Summary => "summary", WaitOn::Place => "place",
        ]
    }
}

/// The types of the core. Their JSON is also stored, so the core tests their variants.
fn core_types() -> Vec<&'static str> {
    checked! {
        Changed: [Changed::Created => "created"]
        UserName: [
            UserName::default() => "",
            UserName::try_from("ada".to_owned()).unwrap() => "ada",
        ]
        Checkpoint: [
            Checkpoint {
                number: 1,
                time: Timestamp(2),
                message: Some("m1".into()),
                prompt: "go".into(),
                tools: vec!["edit".into()],
                files: 3,
                undone: false,
            } => {
                "number": 1, "time": 2, "message": "m1", "prompt": "go", "tools": ["edit"], "files": 3, "undone": false
            },
        ]
        FileChange: [FileChange { path: "a".into(), what: Changed::Mode, diff: None } =>
            {"path": "a", "what": "mode", "diff": null}]
        Timestamp: [Timestamp(7) => 7]
        DeltaKind: [DeltaKind::ToolInput => "tool_input"]
        Envelope: [
            Envelope { v: EVENT_VERSION, session: id(), seq: 4, event: Event::Text { text: "a".into() } } =>
                {"v": 1, "session": "s1", "seq": 4, "type": "text", "text": "a"},
            Envelope { v: EVENT_VERSION, session: id(), seq: 5, event: Event::Message { message: Arc::new(message()) } } =>
                {"v": 1, "session": "s1", "seq": 5, "type": "message", "message": (message_json())},
        ]
        Event: [Event::Text { text: "a".into() } => {"type": "text", "text": "a"}]
        FailureKind: [
            FailureKind::Stopped => "stopped",
            FailureKind::Provider(ProviderErrorKind::Quota) => {"provider": "quota"},
        ]
        GoalCompletion: [GoalCompletion::Phrase => "phrase"]
        SessionEvent: [SessionEvent::Goal { text: Some("g".into()), explicit: true } =>
            {"type": "goal", "text": "g", "explicit": true}]
        StepStatus: [StepStatus::Completed => "completed"]
        Waiting: [Waiting::Question { call_id: "c".into(), text: "?".into(), options: vec![] } =>
            {"type": "question", "call_id": "c", "text": "?", "options": []}]
        CallId: ["c".into() => "c"]
        MessageId: ["m".into() => "m"]
        SessionId: [id() => "s1"]
        Entry: [
            Entry { seq: 3, time: Timestamp(9), event: Event::Text { text: "a".into() } } =>
                {"seq": 3, "time": 9, "type": "text", "text": "a"},
            Entry { seq: 4, time: Timestamp(9), event: Event::Message { message: Arc::new(message()) } } =>
                {"seq": 4, "time": 9, "type": "message", "message": (message_json())},
        ]
        Label: [Label { title: None, name: Some("n".into()), key: None } => {"title": null, "name": "n", "key": null}]
        SessionInfo: [info() => (info_json())]
        AgentRow: [serde_json::from_value(agent_json()).unwrap() => (agent_json())]
        SessionKey: [SessionKey::group("a", "chat", "x:1").unwrap() => "agent:a:chat:group:x:1"]
        SessionStatus: [SessionStatus::Answered => "answered"]
        Binary: [Binary { path: "a.png".into(), mime: "image/png".into(), data: "AA==".into() } =>
            {"path": "a.png", "mime": "image/png", "data": "AA=="}]
        FinishReason: [FinishReason::EndTurn => "end_turn"]
        Message: [message() => (message_json())]
        Part: [part() => {"type": "text", "data": {"text": "hi"}}]
        Role: [Role::User => "user"]
        Usage: [Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 1, chunks: 0 } =>
            {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 1}]
        ProviderErrorKind: [ProviderErrorKind::Quota => "quota"]
        Category: [Category::Read => "read"]
    }
}

/// Names of the types that the crate declares or exports again.
fn public_types() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        if file.file_name().to_string_lossy().ends_with("_tests.rs") {
            continue;
        }
        for line in text.lines() {
            let declared = line
                .strip_prefix("pub struct ")
                .or_else(|| line.strip_prefix("pub enum "));
            let name = declared.and_then(|rest| rest.split(|letter: char| !letter.is_alphanumeric()).next());
            names.extend(name.map(str::to_owned));
        }
        for statement in text.split("pub use windlass_core::").skip(1) {
            let statement = statement.split(';').next().unwrap();
            let words = statement.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let is_type =
                |word: &&str| word.starts_with(char::is_uppercase) && word.chars().any(char::is_lowercase);
            names.extend(words.filter(is_type).map(str::to_owned));
        }
    }
    names
}

fn evidence() -> Evidence {
    Evidence {
        exit_code: Some(0),
        output: Some("o".into()),
        tree: None,
    }
}

fn goal_types() -> Vec<&'static str> {
    checked! {
        Criterion: [
            Criterion::Command { command: "make".into() } => {"kind": "command", "command": "make"},
            Criterion::File { path: "a".into() } => {"kind": "file", "path": "a"},
            Criterion::User => {"kind": "user"},
        ]
        Evidence: [evidence() => {"exit_code": 0, "output": "o"}]
        CheckRun: [
            CheckRun { criterion: Criterion::User, passed: true, evidence: evidence(), excerpt: String::new() } =>
                {"criterion": {"kind": "user"}, "passed": true, "exit_code": 0, "output": "o"},
        ]
        ClaimStatus: [ClaimStatus::Unproven => "unproven"]
        ClaimCheck: [
            ClaimCheck {
                text: "it builds".into(),
                command: "make".into(),
                claimed_exit_code: 0,
                status: ClaimStatus::False,
                evidence: evidence(),
            } => {
                "text": "it builds", "command": "make", "claimed_exit_code": 0, "status": "false", "exit_code": 0,
                "output": "o"
            },
        ]
        GoalState: [GoalState::Blocked => "blocked"]
        GoalStop: [GoalStop::SameBlocker => "same_blocker"]
        GoalRun: [
            GoalRun {
                text: "build".into(),
                criteria: vec![Criterion::User],
                plan: false,
                max_turns: 5,
                max_cost_usd: None,
                before_usd: 0.5,
                before_tokens: 7,
            } => {
                "text": "build", "criteria": [{"kind": "user"}], "max_turns": 5, "before_usd": 0.5, "before_tokens": 7
            },
        ]
        GoalEvent: [
            GoalEvent::GoalTurn { number: 2 } => {"type": "goal_turn", "number": 2},
            GoalEvent::GoAhead { input: "m1".into() } => {"type": "go_ahead", "input": "m1"},
            GoalEvent::GoalState {
                state: GoalState::Paused,
                reason: Some(GoalStop::User),
                message: "stopped".into(),
                at: Timestamp(3),
                until: None,
            } => {"type": "goal_state", "state": "paused", "reason": "user", "message": "stopped", "at": 3},
        ]
        StepState: [StepState::Active => "active"]
        PlanStep: [
            PlanStep {
                id: "a".into(),
                title: "look".into(),
                depends_on: Vec::new(),
                check: None,
                status: StepState::Done,
            } => {"id": "a", "title": "look", "status": "done"},
        ]
        Plan: [Plan { goal: "g".into(), steps: Vec::new() } => {"goal": "g", "steps": []}]
        NoteKind: [NoteKind::Good => "good"]
        GoalRequest: [
            GoalRequest { text: "build".into(), ..GoalRequest::default() } =>
                {"text": "build", "checks": [], "files": [], "asks": false, "turns": null, "max_cost_usd": null},
        ]
        CancelPost: [CancelPost { after: 7 } => {"after": 7}]
        ChildQuestion: [
            ChildQuestion {
                child: "s".into(),
                call: "c".into(),
                shown: "s/c".into(),
                event: Event::Status { text: "waits".into() },
            } => {"child": "s", "call": "c", "shown": "s/c", "event": {"type": "status", "text": "waits"}},
        ]
    }
}

/// EVT-2: every public type has JSON in snake case and survives a round trip.
#[test]
fn every_public_type_is_json() {
    let checked = [
        requests(),
        replies(),
        core_types(),
        goal_types(),
        vec!["CommandLine"],
    ]
    .concat();
    let checked: BTreeSet<String> = checked.into_iter().map(str::to_owned).collect();
    let mut expected = public_types();
    for name in WITHOUT_JSON {
        assert!(expected.remove(*name), "{name} is not a public type");
    }
    assert!(expected.len() > 40, "{expected:?}");
    let missing: Vec<&String> = expected.difference(&checked).collect();
    assert!(missing.is_empty(), "add an example of the JSON of {missing:?}");
}

/// EVT-2: a command line borrows its text, in JSON as well.
#[test]
fn a_command_line_is_json() {
    let line = command_line("/help cost").unwrap();
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(text, r#"{"name":"help","arguments":"cost"}"#);
    assert_eq!(serde_json::from_str::<CommandLine<'_>>(&text).unwrap(), line);
}

/// EVT-2: fields with an obvious default may be left out.
#[test]
fn defaults_may_be_left_out() {
    let submission: Submission = serde_json::from_value(json!({"session": "s1", "parts": []})).unwrap();
    assert_eq!(submission.on_busy, OnBusy::Refuse);
    assert_eq!(
        Input::deserialize(json!({"text": "hi"})).unwrap(),
        Input::text("hi")
    );
    assert_eq!(Find::deserialize(json!({})).unwrap(), Find::default());
}
