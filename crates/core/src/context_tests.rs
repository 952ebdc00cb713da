//! Repair as a table and as a property.

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::message::Reasoning;
use crate::script::call_part;

fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message::new(&SessionId::from("s"), role, parts, Timestamp(1)))
}

fn user(text: &str) -> Arc<Message> {
    message(Role::User, vec![Part::text(text)])
}

fn calls(ids: &[&str]) -> Arc<Message> {
    message(
        Role::Assistant,
        ids.iter().map(|id| call_part(id, "ls", "{}")).collect(),
    )
}

fn results(ids: &[&str]) -> Arc<Message> {
    let result = |id: &&str| {
        let content = format!("result of {id}");
        ToolResult {
            call_id: CallId::from(*id),
            name: "ls".to_owned(),
            content,
            metadata: None,
            is_error: false,
            images: Vec::new(),
        }
    };
    message(
        Role::Tool,
        ids.iter().map(|id| Part::ToolResult(result(id))).collect(),
    )
}

fn outline(messages: &[Arc<Message>]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match message.role {
            Role::User => format!("user {}", message.text()),
            Role::Assistant => {
                let calls: Vec<_> = message.calls().map(|call| call.id.as_str()).collect();
                format!("assistant {}[{}]", message.text(), calls.join(" "))
            }
            Role::Tool => {
                let mark = |result: &ToolResult| {
                    format!("{}{}", result.call_id, if result.is_error { "!" } else { "" })
                };
                format!(
                    "tool [{}]",
                    message.results().map(mark).collect::<Vec<_>>().join(" ")
                )
            }
            Role::System => "system".to_owned(),
        })
        .collect()
}

/// LOOP-16: every kind of damage and its repair.
#[test]
fn repairs() {
    type Case = (&'static str, Vec<Arc<Message>>, Vec<&'static str>);
    let cases: Vec<Case> = vec![
        (
            "whole",
            vec![user("a"), calls(&["1", "2"]), results(&["1", "2"])],
            vec!["user a", "assistant [1 2]", "tool [1 2]"],
        ),
        (
            "no result",
            vec![user("a"), calls(&["1"]), user("b")],
            vec!["user a", "assistant [1]", "tool [1!]", "user b"],
        ),
        (
            "half of the results",
            vec![user("a"), calls(&["1", "2"]), results(&["2"])],
            vec!["user a", "assistant [1 2]", "tool [1! 2]"],
        ),
        (
            "wrong order",
            vec![user("a"), calls(&["1", "2"]), results(&["2", "1"])],
            vec!["user a", "assistant [1 2]", "tool [1 2]"],
        ),
        (
            "in two messages",
            vec![user("a"), calls(&["1", "2"]), results(&["1"]), results(&["2"])],
            vec!["user a", "assistant [1 2]", "tool [1 2]"],
        ),
        (
            "orphan result",
            vec![user("a"), results(&["9"]), user("b")],
            vec!["user a", "user b"],
        ),
        (
            "one result too many",
            vec![user("a"), calls(&["1"]), results(&["1", "9"])],
            vec!["user a", "assistant [1]", "tool [1]"],
        ),
        (
            "result far away",
            vec![user("a"), calls(&["1"]), user("b"), results(&["1"])],
            vec!["user a", "assistant [1]", "tool [1!]", "user b"],
        ),
        (
            "starts in the middle",
            vec![results(&["1"]), calls(&["2"]), results(&["2"]), user("a")],
            vec!["user a"],
        ),
        (
            "empty messages",
            vec![
                user("a"),
                user(" \n"),
                message(Role::Assistant, vec![]),
                user("b"),
            ],
            vec!["user a", "user b"],
        ),
        (
            "reasoning alone",
            vec![
                user("a"),
                message(Role::Assistant, vec![Part::Reasoning(Reasoning::default())]),
                user("b"),
            ],
            vec!["user a", "user b"],
        ),
        (
            "the same id in two turns",
            vec![
                user("a"),
                calls(&["0"]),
                results(&["0"]),
                calls(&["0"]),
                results(&["0"]),
            ],
            vec![
                "user a",
                "assistant [0]",
                "tool [0]",
                "assistant [0_3_0]",
                "tool [0_3_0]",
            ],
        ),
        (
            "the same id twice in a reply",
            vec![user("a"), calls(&["0", "0"]), results(&["0", "0"])],
            vec!["user a", "assistant [0_1_0 0_1_1]", "tool [0_1_0 0_1_1]"],
        ),
        ("nothing", vec![], vec![]),
    ];
    for (name, history, expected) in cases {
        assert_eq!(outline(&prepare(&history)), expected, "{name}");
    }
}

/// CTX-6: repairs are counted, those of the last history only.
#[test]
fn repairs_are_counted() {
    let mut context = Context::default();
    let mut history = vec![user("a"), calls(&["1"]), results(&["1"])];
    context.prepare(&history);
    assert_eq!(context.repairs(), 0);
    history.push(calls(&["2"]));
    for _ in 0..3 {
        context.prepare(&history);
        assert_eq!(context.repairs(), 1, "a call without its result");
    }
    history.push(results(&["2"]));
    context.prepare(&history);
    assert_eq!(context.repairs(), 0);
    history.extend([user(""), results(&["9"])]);
    context.prepare(&history);
    assert_eq!(context.repairs(), 2, "an empty message and a result of nothing");
}

/// LOOP-16: valid messages are passed on unchanged, so that they are not encoded again.
#[test]
fn whole_messages_are_shared() {
    let history = vec![user("a"), calls(&["1"]), results(&["1"]), user("b")];
    let ready = prepare(&history);
    assert!(
        history
            .iter()
            .zip(&ready)
            .all(|(before, after)| Arc::ptr_eq(before, after))
    );
}

fn any_history() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let ids = proptest::collection::vec(prop::sample::select(vec!["1", "2", "3", "call_0"]), 0..4);
    let any = prop_oneof![
        Just(user("hello")),
        Just(user("")),
        Just(message(Role::Assistant, vec![Part::text("hm")])),
        Just(message(Role::System, vec![Part::text("sys")])),
        ids.clone().prop_map(|ids| calls(&ids)),
        ids.prop_map(|ids| results(&ids)),
    ];
    proptest::collection::vec(any, 0..16)
}

proptest! {
    /// LOOP-16: whatever happened to a history, the result is valid, and repairing it again changes nothing.
    #[test]
    fn repaired_is_valid(history in any_history()) {
        let ready = prepare(&history);
        prop_assert!(ready.first().is_none_or(|first| first.role == Role::User));
        let mut ids = HashSet::new();
        for (index, message) in ready.iter().enumerate() {
            let next = ready.get(index + 1);
            let wanted: Vec<_> = message.calls().map(|call| call.id.clone()).collect();
            for id in &wanted {
                prop_assert!(ids.insert(id.clone()), "{} twice", id);
            }
            if !wanted.is_empty() {
                let found: Vec<_> = next.into_iter().flat_map(|next| next.results()).map(|result| result.call_id.clone()).collect();
                prop_assert_eq!(&wanted, &found);
            }
            if message.role == Role::Tool {
                let before = index.checked_sub(1).and_then(|index| ready.get(index));
                prop_assert!(before.is_some_and(|before| before.calls().next().is_some()));
            } else {
                prop_assert!(has_content(message));
            }
        }
        prop_assert_eq!(outline(&prepare(&ready)), outline(&ready));
    }

    /// LOOP-16: an incremental repair gives the same result as a repair from scratch, whatever was added,
    /// lost or changed.
    #[test]
    fn going_on_is_starting_over(histories in proptest::collection::vec((any_history(), 0..16usize), 1..6)) {
        let mut context = Context::default();
        let mut history: Vec<Arc<Message>> = Vec::new();
        for (more, keep) in histories {
            history.truncate(keep);
            history.extend(more);
            let continued = outline(context.prepare(&history));
            prop_assert_eq!(continued, outline(&prepare(&history)));
        }
    }
}
