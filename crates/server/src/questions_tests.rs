use serde_json::{Value, json};

use super::*;

fn entries(events: &[Value]) -> Vec<Entry> {
    let entry = |(place, event): (usize, &Value)| {
        let mut event = event.clone();
        event["seq"] = json!(place + 1);
        event["time"] = json!(0);
        serde_json::from_str(&event.to_string()).unwrap()
    };
    events.iter().enumerate().map(entry).collect()
}

fn asks(call: &str) -> Value {
    json!({
        "type": "permission_request", "call_id": call, "tool": "bash", "category": "write", "subjects": ["ls"],
        "reasons": []
    })
}

fn result(call: &str) -> Value {
    json!({ "type": "tool_result", "call_id": call, "name": "bash", "content": "x", "is_error": true })
}

fn ended(kind: &str) -> Value {
    match kind {
        "interrupted" => {
            json!({ "type": "failed", "reason": "interrupted", "message": "x", "finish": "error" })
        }
        kind => json!({ "type": kind, "content": "x", "message": "x", "finish": "end_turn" }),
    }
}

fn open(events: &[Value]) -> Vec<(String, bool)> {
    let open = open_questions(&entries(events));
    open.into_iter()
        .map(|question| (question.call.to_string(), question.is_interrupted))
        .collect()
}

/// SRV-2: a question is open until it is answered, its call has a result, or its turn ends.
#[test]
fn questions_end_with_their_turn() {
    let start = json!({ "type": "start", "provider": "p", "model": "m" });
    let answer = json!({ "type": "permission_answer", "call_id": "a", "allowed": true });
    let one = [("a".to_owned(), false)];
    assert_eq!(open(&[start.clone(), asks("a")]), one);
    assert_eq!(open(&[start.clone(), asks("a"), answer]), []);
    assert_eq!(open(&[start.clone(), asks("a"), result("a")]), []);
    assert_eq!(open(&[start.clone(), asks("a"), ended("canceled")]), []);
    assert_eq!(open(&[start.clone(), asks("a"), asks("a")]), one);
    let question = json!({ "type": "question", "call_id": "q", "text": "which?", "options": [] });
    assert_eq!(open(&[start.clone(), question]), [("q".to_owned(), false)]);
    // What a sub-agent asks does not end with the turn above it.
    assert_eq!(
        open(&[start.clone(), asks("agent-1:a"), ended("final"), start]),
        [("agent-1:a".to_owned(), false)]
    );
}

/// SRV-2: the question of a turn that was interrupted stays open, although its call has a result that says so; a new
/// turn closes it.
#[test]
fn interrupted_questions_stay_open() {
    let start = json!({ "type": "start", "provider": "p", "model": "m" });
    let lost = [start.clone(), asks("a"), result("a"), ended("interrupted")];
    assert_eq!(open(&lost), [("a".to_owned(), true)]);
    let mut later = lost.to_vec();
    later.push(start);
    assert_eq!(open(&later), []);
    assert!(was_asked(&entries(&later), &CallId::from("a")));
    assert!(!was_asked(&entries(&later), &CallId::from("b")));
}

/// SRV-2: answers are remembered with their sender, and old ones are forgotten.
#[test]
fn senders_are_remembered() {
    let answers = Answers::default();
    let session = SessionId::from("s");
    for number in 0..=REMEMBERED {
        answers.remember(&session, &CallId::from(number.to_string()), "phone");
    }
    assert_eq!(answers.by(&session, &CallId::from("0")), None);
    assert_eq!(answers.by(&session, &CallId::from("1")).as_deref(), Some("phone"));
}
