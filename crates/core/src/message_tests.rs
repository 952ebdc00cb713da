//! Storage format of messages.

use serde_json::{Value, json};

use super::*;
use crate::id::CallId;

fn whole_message() -> Message {
    let parts = vec![
        Part::text("hi"),
        Part::Reasoning(Reasoning {
            text: "hm".into(),
            signature: Some("sig".into()),
            redacted: None,
        }),
        Part::Reasoning(Reasoning {
            text: String::new(),
            signature: None,
            redacted: Some("opaque".into()),
        }),
        Part::ToolCall(ToolCall {
            id: CallId::from("c1"),
            name: "ls".into(),
            input: "{\"a\":".into(),
            finished: false,
        }),
        Part::ToolResult(ToolResult {
            call_id: CallId::from("c1"),
            name: "ls".into(),
            content: "x".into(),
            metadata: Some(json!({"exit_code": 0})),
            is_error: true,
            images: Vec::new(),
        }),
        Part::Finish(Finish {
            reason: FinishReason::ToolUse,
            time: Timestamp(7),
        }),
        Part::Binary(Binary {
            path: "a.png".into(),
            mime: "image/png".into(),
            data: "AAAA".into(),
        }),
        Part::ImageUrl(ImageUrl {
            url: "https://x/y.png".into(),
            detail: Some("low".into()),
        }),
        Part::Compaction(Compaction {
            summary: "so far".into(),
            tokens_before: 9,
            tokens_after: 3,
        }),
        Part::Compressed(Compressed {
            text: "t".into(),
            reference: "blob:1".into(),
            tokens_before: 9,
            tokens_after: 3,
        }),
    ];
    let mut message = Message::new(&SessionId::from("s"), Role::Assistant, parts, Timestamp(5));
    message.model = Some("m".into());
    message
}

/// MSG-1, MSG-2: a message has its fields, and its parts are stored as `{"type", "data"}` and read back the
/// same.
#[test]
fn messages_are_stored_and_read_back() {
    let message = whole_message();
    let stored = serde_json::to_value(&message).expect("serializes");
    for key in [
        "id",
        "session_id",
        "role",
        "parts",
        "model",
        "created_at",
        "updated_at",
    ] {
        assert!(stored.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(stored["role"], "assistant");
    assert_eq!(
        stored["parts"][0],
        json!({"type": "text", "data": {"text": "hi"}})
    );
    let types: Vec<_> = stored["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["type"].as_str())
        .collect();
    assert_eq!(
        types,
        [
            "text",
            "reasoning",
            "reasoning",
            "tool_call",
            "tool_result",
            "finish",
            "binary",
            "image_url",
            "compaction",
            "compressed"
        ]
    );
    let text = serde_json::to_string(&message).expect("serializes");
    let back: Message = serde_json::from_str(&text).expect("reads back");
    assert_eq!(back, message);
    for role in [Role::User, Role::Assistant, Role::System, Role::Tool] {
        let text = serde_json::to_string(&role).expect("serializes");
        assert_eq!(serde_json::from_str::<Role>(&text).expect("reads back"), role);
    }
}

/// MSG-2: a part of a newer version is kept and written back byte for byte.
#[test]
fn unknown_parts_are_kept() {
    for part in [
        r#"{"type":"hologram","data":{"b":1.10,"a":[1e2, 340282366920938463463374607431768211456]}}"#,
        r#"{"type":"text","data":{"words":"a known name, an unknown shape"}}"#,
        r#"{"type":"finish","data":{"reason":"invented_later","time":3}}"#,
        r#"{"shape":"no type at all"}"#,
    ] {
        let parsed: Part = serde_json::from_str(part).expect("is kept");
        assert!(matches!(parsed, Part::Unknown(_)), "{part}");
        assert_eq!(serde_json::to_string(&parsed).expect("serializes"), part);
    }
}

/// MSG-3: the finish reasons and their names.
#[test]
fn finish_reasons() {
    use FinishReason::{
        Canceled, EndTurn, Error, MaxIterations, MaxTokens, PermissionDenied, Refusal, ToolUse,
    };
    let all = [
        EndTurn,
        ToolUse,
        MaxTokens,
        Refusal,
        Canceled,
        PermissionDenied,
        MaxIterations,
        Error,
    ];
    let names: Vec<Value> = all
        .iter()
        .filter_map(|reason| serde_json::to_value(reason).ok())
        .collect();
    let expected = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "refusal",
        "canceled",
        "permission_denied",
        "max_iterations",
        "error",
    ];
    assert_eq!(names, expected);
}

/// MSG-4: the provider's own items survive storage byte for byte.
#[test]
fn origin_is_verbatim() {
    let item = r#"{"type":"thinking","thinking":"a  b","signature":"s","n":1.0}"#;
    let mut message = whole_message();
    let items = vec![serde_json::value::RawValue::from_string(item.to_owned()).expect("is JSON")];
    message.origin = Some(Origin {
        provider: "p".into(),
        wire: "w".into(),
        items,
    });
    let text = serde_json::to_string(&message).expect("serializes");
    assert!(text.contains(item));
    let back: Message = serde_json::from_str(&text).expect("reads back");
    assert_eq!(back.origin, message.origin);
}

/// A message is encoded once per wire format; a changed copy is encoded again.
#[test]
fn memo_keeps_bytes() {
    let message = whole_message();
    let key = std::sync::Arc::from("wire");
    let first = message
        .memo
        .get_or_encode(&key, || bytes::Bytes::from_static(b"one"));
    let second = message.memo.get_or_encode(&key, || unreachable!("encoded twice"));
    assert_eq!(first.as_ptr(), second.as_ptr());
    let changed = message.finished(FinishReason::Error, Timestamp(9));
    let third = changed
        .memo
        .get_or_encode(&key, || bytes::Bytes::from_static(b"two"));
    assert_eq!(&third[..], b"two");
}
