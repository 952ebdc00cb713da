#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use super::Seen;
use crate::wire::Protocol;

const OUTLINE: &str = "\
model m stream max_tokens=64 tool_choice=bash
tools bash
system be brief
user hello
thinking hm
assistant looking
call #1 bash {\"command\":\"ls\"}
result #1 a.txt
user and now?
";

/// PROV-5: the same conversation reads the same on every wire.
#[test]
fn the_wires_agree() {
    let call = json!({"command": "ls"}).to_string();
    let anthropic = json!({
        "model": "m", "stream": true, "max_tokens": 64, "system": [{"type": "text", "text": "be brief"}],
        "tools": [{"name": "bash"}], "tool_choice": {"type": "tool", "name": "bash"},
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}]},
                {"type": "text", "text": "and now?"},
            ]},
        ],
    });
    let chat = json!({
        "model": "m", "stream": true, "max_completion_tokens": 64,
        "tools": [{"type": "function", "function": {"name": "bash"}}],
        "tool_choice": {"type": "function", "function": {"name": "bash"}},
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": "looking", "reasoning_content": "hm", "tool_calls": [
                {"id": "x", "type": "function", "function": {"name": "bash", "arguments": call}},
            ]},
            {"role": "tool", "tool_call_id": "x", "content": "a.txt"},
            {"role": "user", "content": "and now?"},
        ],
    });
    let responses = json!({
        "model": "m", "stream": true, "max_output_tokens": 64, "instructions": "be brief",
        "tools": [{"type": "function", "name": "bash"}], "tool_choice": {"type": "function", "name": "bash"},
        "input": [
            {"role": "user", "content": "hello"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "looking"}]},
            {"type": "function_call", "call_id": "y", "name": "bash", "arguments": call},
            {"type": "function_call_output", "call_id": "y", "output": "a.txt"},
            {"role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
        ],
    });
    for (wire, body) in [
        (Protocol::Anthropic, anthropic),
        (Protocol::Chat, chat),
        (Protocol::Responses, responses),
    ] {
        assert_eq!(Seen::read(wire, &body).outline(), OUTLINE, "{wire}");
    }
}

/// PROV-5: an outline stays short, whatever the request contains.
#[test]
fn long_texts_are_cut() {
    let body = json!({"model": "m", "input": "ä".repeat(500)});
    let outline = Seen::read(Protocol::Responses, &body).outline();
    assert!(outline.contains("… (+380 chars)"), "{outline}");
}

/// PROV-5: reading never fails, even on nonsense.
#[test]
fn nonsense_is_skipped() {
    for body in [
        json!(null),
        json!([1]),
        json!({"messages": [3, {"content": {}}], "input": [null]}),
    ] {
        for wire in [Protocol::Anthropic, Protocol::Chat, Protocol::Responses] {
            let _ = Seen::read(wire, &body).outline();
        }
    }
}
