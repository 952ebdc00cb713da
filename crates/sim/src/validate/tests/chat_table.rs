use serde_json::{Value, json};

use super::{case, run};
use crate::wire::Protocol;

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn base() -> Value {
    json!({
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            tool("a"),
            tool("b"),
            {"role": "user", "content": [{"type": "text", "text": "and?"}]},
        ],
    })
}

/// PROV-3: keys, types and tools.
#[test]
fn top_level_and_tools() {
    let cases = vec![
        case("/unknown", json!(1), "unknown: extra inputs are not permitted"),
        case("/temperature", json!(3), "between 0 and 2"),
        case("/temperature", json!(null), ""),
        case(
            "/stream_options",
            json!({"include_usage": true}),
            "only allowed when stream is true",
        ),
        case("/max_tokens", json!(0), "above 0"),
        case("/tools", json!([]), "must not be an empty array"),
        case("/tools/0/type", json!("web"), "must be function or custom"),
        case("/tools/0/function/name", json!("a b"), "must match"),
        case(
            "/tools/0/function/parameters",
            json!({"type": "array"}),
            "must be \"object\"",
        ),
        case("/tools/0/function/strict", json!(true), "additionalProperties"),
        case("/tools/0/name", json!("x"), "extra inputs"),
        case("/tool_choice", json!("required"), ""),
        case("/tool_choice", json!("sometimes"), "must be auto, none, required"),
        case(
            "/tool_choice",
            json!({"type": "function", "function": {"name": "zsh"}}),
            "no tool named `zsh`",
        ),
        case("/parallel_tool_calls", json!(false), ""),
    ];
    run(Protocol::Chat, &base(), cases);
    let bare = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x"}]});
    let cases = vec![
        case("/tool_choice", json!("auto"), "only allowed when tools are given"),
        case(
            "/parallel_tool_calls",
            json!(true),
            "only allowed when tools are given",
        ),
        case("/stream_options", json!({"include_usage": true}), ""),
        case("/stream_options", json!({"usage": true}), "extra inputs"),
    ];
    run(Protocol::Chat, &bare, cases);
}

/// LOOP-16: calls, results, and no message without content.
#[test]
fn messages() {
    let user = json!({"role": "user", "content": "x"});
    let assistant = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
    let image = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
    let cases = vec![
        case("/messages", json!([]), "must not be an empty array"),
        case(
            "/messages",
            json!([{"role": "system", "content": "x"}]),
            "no user message",
        ),
        case(
            "/messages/1/role",
            json!("assistant"),
            "first message must have the role user",
        ),
        case("/messages/1/role", json!("bot"), "first message"),
        case("/messages/5/role", json!("bot"), "must be system, developer"),
        case("/messages/0/role", json!("developer"), ""),
        case("/messages/1/content", json!(""), "text must contain"),
        case("/messages/1/content", json!([]), "must not be an empty array"),
        case("/messages/1/content", json!(null), "content"),
        case("/messages/5/content/0/text", json!(" "), "text must contain"),
        case(
            "/messages/5/content/0/type",
            json!("input_text"),
            "not allowed here",
        ),
        case("/messages/1/content", image("data:image/png;base64,aGk="), ""),
        case(
            "/messages/1/content",
            image("data:image/png;base64,?"),
            "not valid base64",
        ),
        case(
            "/messages/1/content",
            image("data:image/tiff;base64,aGk="),
            "must be one of",
        ),
        case(
            "/messages/1/content",
            image("/etc/passwd"),
            "http address or a data URL",
        ),
        case("/messages/2/tool_calls", json!([]), "must not be an empty array"),
        case("/messages/2/tool_calls/0/id", json!("b"), "`b` is used twice"),
        case(
            "/messages/2/tool_calls/0/id",
            json!("x".repeat(41)),
            "longer than 40",
        ),
        case(
            "/messages/2/tool_calls/0/function/arguments",
            json!({}),
            "arguments: must be a string",
        ),
        case("/messages/2/content", json!(""), ""),
        case(
            "/messages/3/tool_call_id",
            json!("z"),
            "`z` is not one that is open",
        ),
        case("/messages/3/content", json!(""), ""),
        case("/messages/3", user, "`a` has none"),
        case("/messages/4", tool("a"), "`a` is not one that is open"),
        case(
            "/messages",
            json!([{"role": "user", "content": "x"}, assistant]),
            "`a` has none",
        ),
        case(
            "/messages",
            json!([{"role": "user", "content": "x"}, tool("a")]),
            "tool message must answer",
        ),
        case(
            "/messages",
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": null}]),
            "only be null when there are tool_calls",
        ),
    ];
    run(Protocol::Chat, &base(), cases);
}
