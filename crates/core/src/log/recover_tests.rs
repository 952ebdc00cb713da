//! Recovery of the records of stopped processes.

use serde_json::json;

use super::*;
use crate::id::{CallId, SessionId};

fn entries(events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
    (1..)
        .zip(events)
        .map(|(seq, event)| Entry {
            seq,
            time: Timestamp(seq),
            event,
        })
        .collect()
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message::new(&SessionId::from("s"), role, parts, Timestamp(1))
}

fn told(message: &Message) -> Event {
    Event::Message {
        message: Arc::new(message.clone()),
    }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::from(id),
        name: "bash".into(),
        input: "{}".into(),
        finished: true,
    })
}

fn result(id: &str, content: &str) -> Event {
    Event::ToolResult {
        call_id: CallId::from(id),
        name: "bash".into(),
        content: content.into(),
        is_error: false,
        details: Some(json!({ "exit_code": 0 })),
    }
}

fn the_end() -> Event {
    Event::Final {
        content: "done".into(),
        finish: FinishReason::EndTurn,
    }
}

/// Returns the recovered record, asserting that it is complete.
fn whole(mut record: Vec<Entry>, draft: Option<Message>) -> Vec<Entry> {
    let added = recover(&record, draft.clone(), Timestamp(9));
    let first = record.len() as u64 + 1;
    record.extend(entries(added).into_iter().map(|entry| Entry {
        seq: first + entry.seq - 1,
        ..entry
    }));
    assert!(
        recover(&record, draft, Timestamp(10)).is_empty(),
        "nothing is left to do"
    );
    record
}

/// SES-5: a finished turn, a new session and an empty one need no recovery.
#[test]
fn what_is_whole_is_left_alone() {
    let user = told(&message(Role::User, vec![Part::text("go")]));
    for record in [vec![], vec![user, the_end()]] {
        assert!(recover(&entries(record), None, Timestamp(9)).is_empty());
    }
}

/// SES-5: an accepted message without an answer is kept, and the turn is reported as interrupted.
#[test]
fn an_accepted_message_is_not_lost() {
    let record = whole(
        entries([told(&message(Role::User, vec![Part::text("go")]))]),
        None,
    );
    assert_eq!(History::read(&record).messages().len(), 1);
    assert!(matches!(
        record.last().map(|entry| &entry.event),
        Some(Event::Failed {
            reason: FailureKind::Interrupted,
            ..
        })
    ));
}

/// SES-4, SES-5: a partial reply becomes a message marked as interrupted; an incomplete call in it is
/// dropped.
#[test]
fn a_draft_becomes_a_message() {
    let user = message(Role::User, vec![Part::text("go")]);
    let draft = message(Role::Assistant, vec![Part::text("I will"), call("half")]);
    let record = whole(entries([told(&user)]), Some(draft.clone()));
    let history = History::read(&record);
    let last = history.messages().last().expect("a message");
    assert_eq!(
        (last.id.clone(), last.text()),
        (draft.id.clone(), "I will".to_owned())
    );
    assert_eq!(last.finish(), Some(FinishReason::Interrupted));
    assert_eq!(last.calls().count(), 0);
    // A draft whose message was stored at the last moment adds nothing.
    let stored = entries([told(&user), told(&draft), the_end()]);
    assert!(recover(&stored, Some(draft), Timestamp(9)).is_empty());
}

/// SES-5: a finished call keeps its result and is not run again; a call that may have run is reported as
/// interrupted.
#[test]
fn calls_are_told_as_they_stand() {
    let user = message(Role::User, vec![Part::text("go")]);
    let asked = message(Role::Assistant, vec![call("a"), call("b"), call("a")]);
    let record = whole(
        entries([
            told(&user),
            told(&asked),
            result("a", "first"),
            result("b", "second"),
        ]),
        None,
    );
    let history = History::read(&record);
    let last = history.messages().last().expect("a message");
    let results: Vec<(&str, bool)> = last
        .results()
        .map(|result| (result.content.as_str(), result.is_error))
        .collect();
    assert_eq!(
        results,
        [("first", false), ("second", false), (INTERRUPTED_TEXT, true)]
    );
    assert_eq!(last.role, Role::Tool);
}
