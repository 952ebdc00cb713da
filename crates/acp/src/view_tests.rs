use std::sync::Arc;

use windlass_api::{FinishReason, SessionId, Timestamp, Usage};

use super::*;

fn view() -> View {
    let context = Context {
        window: 1000,
        ..Context::default()
    };
    View::new(ClientAbilities::default(), Path::new("/p"), context)
}

fn delta(text: &str) -> Event {
    Event::Delta {
        kind: DeltaKind::Text,
        text: text.to_owned(),
    }
}

fn message(role: Role, text: &str) -> Event {
    let message = Message::new(&SessionId::from("s"), role, vec![Part::text(text)], Timestamp(0));
    Event::Message {
        message: Arc::new(message),
    }
}

/// Returns the texts of the updates, with their kind.
fn texts(updates: &[Value]) -> Vec<String> {
    let text = |update: &Value| {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        format!(
            "{kind}: {}",
            update["content"]["text"].as_str().unwrap_or_default()
        )
    };
    updates.iter().map(text).collect()
}

/// ACP-1, EVT-4: pieces of a reply that a slow reader missed come with the stored message, and nothing comes twice.
#[test]
fn missed_pieces_are_made_up_for() {
    let cases = [
        (vec![], "whole", vec!["agent_message_chunk: whole"]),
        (vec!["who"], "whole", vec!["agent_message_chunk: le"]),
        (vec!["who", "le"], "whole", vec![]),
        (vec!["other"], "whole", vec!["agent_message_chunk: whole"]),
        (vec!["whole\n"], "whole", vec![]),
    ];
    for (pieces, whole, expected) in cases {
        let mut view = view();
        for piece in &pieces {
            view.event(&delta(piece));
        }
        let updates = view.event(&message(Role::Assistant, whole));
        assert_eq!(texts(&updates), expected, "{pieces:?}");
    }
}

/// ACP-1: the user's messages are shown only as part of the past, each once, and notices are not part of it.
#[test]
fn the_past_has_the_users_messages() {
    let mut view = view();
    let said = message(Role::User, "hello");
    let warning = Event::Warning {
        message: "careful".to_owned(),
    };
    assert_eq!(view.event(&said), [Value::Null; 0]);
    assert_eq!(texts(&view.event(&warning)), ["agent_thought_chunk: careful"]);
    view.show_past(true);
    assert_eq!(texts(&view.event(&said)), ["user_message_chunk: hello"]);
    assert_eq!(view.event(&said), [Value::Null; 0]);
    assert_eq!(view.event(&warning), [Value::Null; 0]);
}

/// ACP-1: a call without a result has failed when the turn ends.
#[test]
fn open_calls_end_with_the_turn() {
    let mut view = view();
    let call = Event::ToolCall {
        call_id: CallId::from("c"),
        name: "bash".to_owned(),
        args: json!({ "command": "ls" }),
    };
    let updates = view.event(&call);
    assert_eq!(
        (&updates[0]["title"], &updates[0]["status"]),
        (&json!("ls"), &json!("in_progress"))
    );
    let canceled = Event::Canceled {
        message: String::new(),
    };
    let updates = view.event(&canceled);
    assert_eq!(updates[0]["status"], "failed");
    assert_eq!(view.event(&canceled), [Value::Null; 0]);
}

/// ACP-1: tokens are those of the last request of the turn, and the cost is that of all calls, sub-agents included.
#[test]
fn usage_counts_everything() {
    let mut view = view();
    let usage = |cause: &str, input| Event::Usage {
        usage: Usage {
            input,
            output: 1,
            ..Usage::default()
        },
        cost_usd: Some(0.5),
        cause: cause.to_owned(),
    };
    view.event(&usage("turn", 10));
    let agent = AgentEvent::Subagent {
        agent: SessionId::from("a"),
        number: 1,
        name: "helper".to_owned(),
        depth: 1,
        event: Box::new(usage("turn", 999)),
    };
    view.event(&agent.into_event());
    let updates = view.event(&usage("summary", 99));
    assert_eq!(
        (&updates[0]["used"], &updates[0]["cost"]["amount"]),
        (&json!(11), &json!(1.5))
    );
}

/// ACP-1: an answer that no message contained is shown once.
#[test]
fn the_answer_is_shown_once() {
    let ended = |content: &str| Event::Final {
        content: content.to_owned(),
        finish: FinishReason::EndTurn,
    };
    let mut view = view();
    view.event(&message(Role::Assistant, "hi"));
    assert_eq!(view.event(&ended("hi")), [Value::Null; 0]);
    assert_eq!(
        texts(&view.event(&ended("other"))),
        ["agent_message_chunk: other"]
    );
}
