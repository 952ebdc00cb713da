//! All removed content can be read back verbatim.

use crate::clock::Timestamp;
use crate::message::{Compaction, ToolCall, ToolResult};

use super::*;

fn message(id: &str, role: Role, parts: Vec<Part>) -> Arc<Message> {
    let mut message = Message::new(&"s".into(), role, parts, Timestamp(1));
    message.id = id.into();
    Arc::new(message)
}

fn result(call: &str, content: &str) -> Part {
    Part::ToolResult(ToolResult {
        call_id: call.into(),
        name: "bash".into(),
        content: content.into(),
        metadata: None,
        is_error: false,
        images: Vec::new(),
    })
}

fn entries(events: Vec<Event>) -> Vec<Entry> {
    let entry = |(seq, event)| Entry {
        seq,
        time: Timestamp(1),
        event,
    };
    (1..).zip(events).map(entry).collect()
}

fn said(message: &Arc<Message>) -> Event {
    Event::Message {
        message: Arc::clone(message),
    }
}

/// CTX-15: the content behind a summary, a note or a message id is returned exactly; a reused id returns all
/// of its calls.
#[test]
fn everything_comes_back() {
    let call = Part::ToolCall(ToolCall {
        id: "c1".into(),
        name: "bash".into(),
        input: "{\"command\": \"ls\"}".into(),
        finished: true,
    });
    let long = "line\n".repeat(1_000);
    let first = message("m1", Role::User, vec![Part::text("go")]);
    let asked = message("m2", Role::Assistant, vec![Part::text("looking"), call]);
    let told = message("m3", Role::Tool, vec![result("c1", &long)]);
    let masked = message("m3", Role::Tool, vec![result("c1", "[left out]")]);
    let summary = message(
        "m4",
        Role::User,
        vec![Part::Compaction(Compaction {
            summary: "looked".into(),
            tokens_before: 9,
            tokens_after: 1,
        })],
    );
    let last = message("m5", Role::Tool, vec![result("c1", "again")]);
    let mut events = vec![
        said(&first),
        said(&asked),
        said(&told),
        said(&masked),
        said(&summary),
    ];
    events.push(Event::Session(SessionEvent::Compaction {
        before: 9,
        after: 1,
        history: vec!["m1".into(), "m4".into()],
        fidelity: None,
    }));
    let all = entries(events.clone());
    assert_eq!(find(&all, "c1").as_deref(), Some(long.as_str()));
    let span = find(&all, "m4").unwrap();
    let head =
        "--- assistant ---\nlooking\n--- call c1 bash ---\n{\"command\": \"ls\"}\n--- result c1 bash ---\n";
    assert_eq!(span, format!("{head}{long}\n"), "as it first was");
    assert_eq!(find(&all, "m1").as_deref(), Some("--- user ---\ngo\n"));
    assert_eq!(find(&all, "nothing"), None);
    assert_eq!(
        read_back(&all, "", "looking").as_deref(),
        Some("4\tlooking\n"),
        "without a reference"
    );
    assert_eq!(read_back(&all, "", "zebra"), None);
    events.push(said(&last));
    assert_eq!(
        find(&entries(events), "c1"),
        Some(format!(
            "--- result 2 of 2 of c1 ---\nagain\n--- result 1 of 2 of c1 ---\n{long}"
        ))
    );
}

/// CTX-15: a long span is read in pages and by search, and the answer says how to continue.
#[test]
fn long_spans_are_read_in_pages() {
    let text: String = (1..=2_000).map(|number| format!("line {number}\n")).collect();
    let input = |offset, limit, grep: Option<&str>| RecallInput {
        reference: Some("x".into()),
        offset,
        limit,
        grep: grep.map(str::to_owned),
    };
    let shown = |input: &RecallInput| page(&text, input).unwrap().content;
    let first = shown(&input(None, None, None));
    assert!(
        first.starts_with("1\tline 1\n2\t")
            && first.ends_with("[500 of 2000 lines; continue with offset=501]")
    );
    let second = shown(&input(Some(1_999), None, None));
    assert_eq!(second, "1999\tline 1999\n2000\tline 2000\n");
    let found = shown(&input(None, Some(2), Some("LINE 77")));
    assert_eq!(
        found,
        "77\tline 77\n770\tline 770\n[2 of 2000 lines; continue with offset=771]"
    );
    assert!(shown(&input(None, None, Some("zebra"))).contains("No line"));
    assert!(shown(&input(Some(9_999), None, None)).contains("beyond"));
    assert_eq!(
        page("short\n", &input(None, None, None)).unwrap().content,
        "short\n"
    );
}
