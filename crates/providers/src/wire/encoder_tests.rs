use tokio_util::sync::CancellationToken;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::message::{Part, Role, ToolCall, ToolResult};
use windlass_core::provider::ToolChoice;

use super::*;
use crate::registry;

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(&SessionId::from("s"), text, Timestamp(0)))
}

fn step(number: usize) -> [Arc<Message>; 2] {
    let id = format!("toolu_{number}");
    let call = ToolCall {
        id: id.as_str().into(),
        name: "grep".to_owned(),
        input: "{}".to_owned(),
        finished: true,
    };
    let result = ToolResult {
        call_id: id.into(),
        name: "grep".to_owned(),
        content: "x".to_owned(),
        metadata: None,
        is_error: false,
        images: Vec::new(),
    };
    let session = SessionId::from("s");
    [
        Arc::new(Message::new(
            &session,
            Role::Assistant,
            vec![Part::ToolCall(call)],
            Timestamp(0),
        )),
        Arc::new(Message::new(
            &session,
            Role::Tool,
            vec![Part::ToolResult(result)],
            Timestamp(0),
        )),
    ]
}

fn encoder(wire: Wire) -> Encoder {
    Encoder::new(
        wire,
        "test",
        registry::lookup("sim-1", &[]),
        Quirks::default(),
        None,
    )
}

fn request(prefix: &Arc<Prefix>, messages: &[Arc<Message>]) -> Request {
    Request {
        prefix: Arc::clone(prefix),
        messages: messages.to_vec(),
        tool_choice: ToolChoice::Auto,
        max_output: None,
        session: SessionId::from("s"),
        cancel: CancellationToken::new(),
    }
}

fn prefix() -> Arc<Prefix> {
    let tool = ToolSpec {
        name: "grep".to_owned(),
        description: "Finds.".to_owned(),
        schema: serde_json::json!({"type": "object"}).into(),
    };
    Arc::new(Prefix {
        system: "Be brief.".to_owned(),
        tools: vec![tool],
        ..Prefix::default()
    })
}

fn unmarked(body: &Bytes) -> String {
    let marker = String::from_utf8(anthropic::MARKER.to_vec()).unwrap();
    String::from_utf8(body.to_vec()).unwrap().replace(&marker, "")
}

/// PROV-2: nothing is encoded twice: two requests share the bytes of their pieces in memory.
#[test]
fn pieces_are_shared_between_requests() {
    for wire in Wire::ALL {
        let encoder = encoder(wire);
        let prefix = prefix();
        let mut messages = vec![user("go")];
        messages.extend(step(1));
        let first = encoder.pieces(&messages);
        let first_prefix = encoder.prefix(&prefix);
        messages.extend(step(2));
        let second = encoder.pieces(&messages);
        assert_eq!((first.len(), second.len()), (3, 5));
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.as_ptr(), b.as_ptr());
        }
        assert_eq!(first_prefix.as_ptr(), encoder.prefix(&prefix).as_ptr());
    }
}

/// PROV-2: a request is a prefix of the next one, so that the provider's cache holds all of it.
#[test]
fn a_request_begins_the_next_one() {
    for wire in Wire::ALL {
        let encoder = encoder(wire);
        let prefix = prefix();
        let mut messages = vec![user("go")];
        let mut before = unmarked(&encoder.body(&request(&prefix, &messages)));
        for number in 0..5 {
            messages.extend(step(number));
            let body = encoder.body(&request(&prefix, &messages));
            assert!(serde_json::from_slice::<Value>(&body).is_ok());
            let now = unmarked(&body);
            assert!(
                now.starts_with(before.strip_suffix("]}").unwrap()),
                "{before}\n{now}"
            );
            before = now;
        }
    }
}

/// PROV-2: at most four breakpoints: tools, system, the last message, and the last one of the previous
/// request.
#[test]
fn breakpoints_follow_the_conversation() {
    let encoder = encoder(Wire::Anthropic);
    let prefix = prefix();
    let mut messages = vec![user("go")];
    let mut expected = vec![0];
    for number in 0..4 {
        let body: Value = serde_json::from_slice(&encoder.body(&request(&prefix, &messages))).unwrap();
        let list = body["messages"].as_array().unwrap();
        let is_marked = |message: &Value| {
            message["content"]
                .as_array()
                .unwrap()
                .iter()
                .any(|block| block.get("cache_control").is_some())
        };
        let marked: Vec<usize> = (0..list.len()).filter(|index| is_marked(&list[*index])).collect();
        assert_eq!(marked, expected);
        assert!(
            body["tools"][0].get("cache_control").is_some()
                && body["system"][0].get("cache_control").is_some()
        );
        messages.extend(step(number));
        expected = vec![messages.len() - 3, messages.len() - 1];
    }
}

/// PROV-2: a reply in last place, as after a pause, carries no marker.
#[test]
fn replies_are_not_marked() {
    let messages = [user("go"), Arc::clone(&step(1)[0])];
    let pieces = encoder(Wire::Anthropic).pieces(&messages);
    assert_eq!(anthropic::breakpoints(&pieces), [0]);
    assert!(anthropic::breakpoints(&[]).is_empty());
}

proptest::proptest! {
    /// PROV-2: however a conversation continues — new messages, replies, a compaction, another prefix, a
    /// repetition, a body still in use — a body that extends the last one equals the body made from scratch.
    #[test]
    fn a_continued_body_is_a_fresh_body(steps in proptest::collection::vec((0..6usize, proptest::bool::ANY), 1..20)) {
        for wire in Wire::ALL {
            let continued = encoder(wire);
            let mut prefix = prefix();
            let mut messages = vec![user("go")];
            let mut held = Vec::new();
            for (number, (kind, hold)) in steps.iter().enumerate() {
                match kind {
                    0 => messages.extend(step(number)),
                    // The same ids again: these must be renamed.
                    1 => messages.extend(step(0)),
                    2 => messages.push(user("more")),
                    3 => messages = vec![user("start over"), user(" ")],
                    4 => prefix = self::prefix(),
                    _ => messages.push(Arc::new(Message::new(
                        &SessionId::from("s"), Role::Assistant, vec![Part::text("well \n")], Timestamp(0),
                    ))),
                }
                let body = continued.body(&request(&prefix, &messages));
                let fresh = encoder(wire).body(&request(&prefix, &messages));
                proptest::prop_assert_eq!(String::from_utf8_lossy(&body), String::from_utf8_lossy(&fresh));
                if *hold {
                    held.push((body.clone(), body.to_vec()));
                }
            }
            // Bodies handed out earlier have not changed.
            for (body, copy) in held {
                proptest::prop_assert_eq!(&body[..], &copy[..]);
            }
        }
    }
}

/// CTX-16: every byte of a request belongs to exactly one span, and the body is the one that would be sent.
#[test]
fn a_layout_covers_every_byte() {
    for wire in Wire::ALL {
        let prefix = prefix();
        let mut messages = Vec::new();
        for number in 0..4 {
            let layout = encoder(wire).layout(&request(&prefix, &messages));
            assert_eq!(layout.body, encoder(wire).body(&request(&prefix, &messages)));
            let mut end = 0;
            for span in &layout.spans {
                assert_eq!(span.range.start, end, "{:?}", layout.spans);
                end = span.range.end;
            }
            assert_eq!(end, layout.body.len());
            let of = |id: &windlass_core::id::MessageId| {
                layout
                    .spans
                    .iter()
                    .any(|span| span.of == SpanOf::Message(id.clone()))
            };
            assert!(
                messages.iter().all(|message: &Arc<Message>| of(&message.id)),
                "{:?}",
                layout.spans
            );
            if number == 0 {
                messages.push(user("go"));
            } else {
                messages.extend(step(number));
            }
        }
    }
}
