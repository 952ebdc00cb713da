use serde_json::{Value, json};

use super::{case, run};
use crate::seal;
use crate::wire::Protocol;

fn call(id: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "bash", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "ok"})
}

fn base() -> Value {
    json!({
        "model": "m",
        "instructions": "be kind",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "bash", "parameters": {"type": "object"}}],
        "input": [
            {"role": "user", "content": "hello"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal::wrap("hm")},
            call("a"),
            call("b"),
            output("a"),
            output("b"),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "and?"}]},
        ],
    })
}

/// PROV-3: keys, types, tools and unsupported features.
#[test]
fn top_level_and_tools() {
    let cases = vec![
        case("/unknown", json!(1), "unknown: extra inputs are not permitted"),
        case("/messages", json!([]), "messages: extra inputs"),
        case("/previous_response_id", json!("resp_1"), "not supported"),
        case("/previous_response_id", json!(null), ""),
        case("/background", json!(true), "not supported"),
        case("/instructions", json!(["x"]), "instructions: must be a string"),
        case("/include", json!(["everything"]), "include[0]: must be one of"),
        case("/max_output_tokens", json!(3), "at least 16"),
        case("/stream_options", json!({}), "only allowed when stream is true"),
        case("/tools/0/function", json!({}), "extra inputs"),
        case("/tools/0/type", json!("web"), "must be one of function, custom"),
        case("/tools/0/strict", json!(true), "additionalProperties"),
        case(
            "/tools/0",
            json!({"type": "web_search", "external_web_access": true}),
            "",
        ),
        case(
            "/tools/0",
            json!({"type": "custom", "name": "patch", "format": {"type": "text"}}),
            "",
        ),
        case(
            "/tools/0",
            json!({"type": "namespace", "name": "team", "description": "x", "tools": [{"type": "function", "name": "call"}]}),
            "",
        ),
        case(
            "/tools/0",
            json!({"type": "namespace", "name": "team", "tools": [{"type": "web_search"}]}),
            "tools[0].tools[0].type: must be function or custom",
        ),
        case("/tool_choice", json!({"type": "web_search"}), ""),
        case("/client_metadata", json!({"a": "b"}), ""),
        case("/tool_choice", json!({"type": "function", "name": "bash"}), ""),
        case(
            "/tool_choice",
            json!({"type": "function", "name": "zsh"}),
            "no tool named `zsh`",
        ),
        case("/input", json!("hi"), ""),
        case("/input", json!(" "), "text must contain"),
        case("/input", json!([]), "must not be an empty array"),
    ];
    run(Protocol::Responses, &base(), cases);
    let bare = json!({"model": "m", "input": "x"});
    let cases = vec![case(
        "/tool_choice",
        json!("required"),
        "only allowed when tools are given",
    )];
    run(Protocol::Responses, &bare, cases);
}

/// LOOP-16: items in an order that the service accepts.
#[test]
fn items() {
    let user = json!({"role": "user", "content": "x"});
    let reasoning =
        json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": seal::wrap("x")});
    let cases = vec![
        case(
            "/input/0/role",
            json!("assistant"),
            "first message must have the role user",
        ),
        case("/input/0/content", json!(""), "text must contain"),
        case("/input/7/content/0/type", json!("text"), "not allowed here"),
        case("/input/6/content/0/type", json!("input_text"), "not allowed here"),
        case("/input/4/call_id", json!("z"), "no open function call found"),
        case("/input/4/output", json!(""), ""),
        case(
            "/input/4/output",
            json!(3),
            "output: must be a string or an array",
        ),
        case("/input/4", user, "no tool output found for function call `a`"),
        case("/input/5", output("a"), "no open function call found"),
        case(
            "/input/5",
            call("c"),
            "no tool output found for function call `b`",
        ),
        case("/input/3", call("a"), "`a` is used twice"),
        case("/input/2/arguments", json!({}), "arguments: must be a string"),
        case("/input/2/id", json!("toolu_1"), "begins with `fc`"),
        case("/input/6/id", json!("x"), "begins with `msg`"),
        case("/input/1/id", json!("x"), "begins with `rs`"),
        case(
            "/input/1/encrypted_content",
            json!("gAAA"),
            "could not be verified",
        ),
        case(
            "/input/1/encrypted_content",
            json!(null),
            "not persisted when store is false",
        ),
        case("/input/1/summary", json!(null), "summary: field required"),
        case(
            "/input/6",
            reasoning.clone(),
            "without its required following item",
        ),
        case("/input/7", reasoning, "without its required following item"),
        case("/input/6/type", json!("item_reference"), "not supported"),
        case(
            "/input",
            json!([{"role": "user", "content": "x"}, call("a")]),
            "no tool output found",
        ),
        case(
            "/input",
            json!([{"role": "user", "content": "x"}, output("a")]),
            "no open function call",
        ),
    ];
    run(Protocol::Responses, &base(), cases);
}
