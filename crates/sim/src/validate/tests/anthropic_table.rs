#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::{Value, json};

use super::{Case, case, run};
use crate::seal;
use crate::wire::Protocol;

fn marker() -> Value {
    json!({"type": "ephemeral"})
}

fn base() -> Value {
    json!({
        "model": "m",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "be kind"}],
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": seal::sign("hm")},
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "t1", "name": "bash", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a"},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "b"}]},
                {"type": "text", "text": "and?"},
            ]},
        ],
    })
}

fn check(cases: Vec<Case>) {
    run(Protocol::Anthropic, &base(), cases);
}

/// LOOP-16, PROV-2: keys and types at the top level.
#[test]
fn top_level() {
    check(vec![
        case("/unknown", json!(1), "unknown: extra inputs are not permitted"),
        case("/model", json!(""), "model: must not be empty"),
        case("/model", json!(3), "model: must be a string"),
        case("/max_tokens", json!(0), "max_tokens: must be an integer above 0"),
        case("/max_tokens", json!("9"), "max_tokens"),
        case("/stream", json!("yes"), "stream: must be a boolean"),
        case("/stream", json!(null), "stream: must be a boolean"),
        case("/stream", json!(true), ""),
        case("/temperature", json!(1.5), "temperature: must be between 0 and 1"),
        case("/temperature", json!(0.5), ""),
        case("/system", json!(" "), "system: text must contain"),
        case("/system", json!("fine"), ""),
        case("/system/0/text", json!(""), "system.0.text: text must contain"),
        case("/system/0/type", json!("image"), "system.0.type"),
        case("/messages", json!([]), "at least one message"),
        case("/messages", json!("hi"), "messages: must be an array"),
    ]);
}

/// LOOP-16: roles, and no message without content.
#[test]
fn messages() {
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let prefill =
        |text: &str| json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": text}]);
    check(vec![
        case(
            "/messages/0/role",
            json!("assistant"),
            "first message must have the role user",
        ),
        case("/messages/0/role", json!("system"), "belongs into `system`"),
        case("/messages/0/role", json!("tool"), "must be user or assistant"),
        case("/messages/0/extra", json!(1), "messages.0.extra: extra inputs"),
        case("/messages", user(json!("")), "text must contain"),
        case("/messages", user(json!("\n ")), "text must contain"),
        case(
            "/messages",
            user(json!([])),
            "messages.0.content: must not be empty",
        ),
        case(
            "/messages",
            user(json!([{"type": "text", "text": "  "}])),
            "content.0.text: text must contain",
        ),
        case(
            "/messages",
            user(json!([{"type": "video"}])),
            "no block type `video`",
        ),
        case(
            "/messages",
            json!([{"role": "user"}]),
            "messages.0.content: field required",
        ),
        case(
            "/messages",
            json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
            "",
        ),
        case("/messages", prefill("The answer is"), ""),
        case(
            "/messages",
            prefill("The answer is "),
            "must not end with white space",
        ),
    ]);
}

/// LOOP-16: each call has exactly one result in the next merged turn, and results come first.
#[test]
fn calls_and_results() {
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = json!({"type": "text", "text": "and?"});
    let with = |first: Value, second: Value| {
        let mut messages = base()["messages"].clone();
        messages[2]["content"] = first;
        messages
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": second}));
        messages
    };
    check(vec![
        case(
            "/messages/2/content",
            json!([result("t1")]),
            "`t2` has no tool_result",
        ),
        case(
            "/messages/2/content",
            json!("no results"),
            "`t1` has no tool_result",
        ),
        case(
            "/messages/2/content",
            json!([result("t1"), result("t1"), result("t2")]),
            "more than one tool_result",
        ),
        case(
            "/messages/2/content",
            json!([result("t1"), result("t2"), result("t9")]),
            "unexpected tool_use_id `t9`",
        ),
        case(
            "/messages/2/content",
            json!([text, result("t1"), result("t2")]),
            "must come first",
        ),
        case("/messages/2/content", json!([result("t2"), result("t1")]), ""),
        case(
            "/messages",
            with(json!([result("t1")]), json!([result("t2")])),
            "",
        ),
        case(
            "/messages",
            with(json!([result("t1"), text]), json!([result("t2")])),
            "must come first",
        ),
        case(
            "/messages/0/content",
            json!([result("t1")]),
            "unexpected tool_use_id",
        ),
        case("/messages/1/content/3/id", json!("t1"), "`t1` is used twice"),
        case("/messages/1/content/2/id", json!("t 1"), "must match"),
        case("/messages/1/content/2/id", json!("t.1"), "must match"),
        case(
            "/messages/1/content/2/input",
            json!("{}"),
            "input: must be an object",
        ),
        case(
            "/messages/1/content/2/input",
            json!(null),
            "input: must be an object",
        ),
        case("/messages/1/content/2/name", json!("a b"), "name: must match"),
        case("/messages/2/content/0/content", json!(""), ""),
        case(
            "/messages/2/content/0/content",
            json!([{"type": "text", "text": ""}]),
            "text must contain",
        ),
        case(
            "/messages/2/content/0/is_error",
            json!("no"),
            "is_error: must be a boolean",
        ),
        case(
            "/messages/1/role",
            json!("user"),
            "may only appear in assistant messages",
        ),
    ]);
    let mut open = base();
    open["messages"].as_array_mut().unwrap().pop();
    let message = crate::validate::anthropic(&open).unwrap_err().to_string();
    assert!(message.contains("`t1` has no tool_result"), "{message}");
}

/// PROV-2: thinking goes back unchanged.
#[test]
fn thinking() {
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    let redacted = |data: &str| json!({"type": "redacted_thinking", "data": data});
    check(vec![
        case(
            "/messages/1/content/0/thinking",
            json!("hmm"),
            "cannot be modified",
        ),
        case(
            "/messages/1/content/0/signature",
            json!(""),
            "signature: must not be empty",
        ),
        case(
            "/messages/1/content/0",
            json!({"type": "thinking", "thinking": "hm"}),
            "signature: field required",
        ),
        case(
            "/messages/1/content/0/cache_control",
            marker(),
            "not allowed on thinking",
        ),
        case("/messages/1/content/0", redacted(&seal::wrap("x")), ""),
        case(
            "/messages/1/content/0",
            redacted("sim1.0.00"),
            "cannot be modified",
        ),
        case("/thinking", enabled(2048), ""),
        case(
            "/thinking",
            enabled(4096),
            "must be greater than thinking.budget_tokens",
        ),
        case("/thinking", enabled(100), "at least 1024"),
        case(
            "/thinking",
            json!({"type": "enabled"}),
            "budget_tokens: field required",
        ),
        case("/thinking", json!({"type": "adaptive"}), ""),
        case(
            "/thinking",
            json!({"type": "disabled", "budget_tokens": 2000}),
            "extra inputs",
        ),
        case("/thinking", json!({"type": "on"}), "must be enabled"),
    ]);
    let mut forced = base();
    forced["thinking"] = enabled(2048);
    run(
        Protocol::Anthropic,
        &forced,
        vec![
            case("/tool_choice", json!({"type": "any"}), "may not force a tool"),
            case("/tool_choice", json!({"type": "auto"}), ""),
            case("/temperature", json!(0.5), "may only be 1"),
        ],
    );
}

/// PROV-2: tools, the choice among them, cache markers and images.
#[test]
fn tools_markers_and_images() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let marked = |count: usize| -> Value {
        (0..count)
            .map(|_| json!({"type": "text", "text": "x", "cache_control": marker()}))
            .collect()
    };
    let image = |media: &str, data: &str| {
        json!([{"role": "user", "content": [{"type": "image", "source":
            {"type": "base64", "media_type": media, "data": data}}]}])
    };
    check(vec![
        case(
            "/tools",
            json!([tool("a"), tool("a")]),
            "tool names must be unique",
        ),
        case("/tools", json!([tool("a b")]), "must match"),
        case("/tools", json!([tool(&"x".repeat(65))]), "must match"),
        case(
            "/tools/0/input_schema",
            json!({"type": "string"}),
            "input_schema.type: must be \"object\"",
        ),
        case("/tools/0", json!({"name": "x"}), "input_schema: field required"),
        case("/tools/0/parameters", json!({}), "extra inputs"),
        case(
            "/tools/0",
            json!({"type": "web_search_20250305", "name": "web_search"}),
            "",
        ),
        case("/tool_choice", json!({"type": "tool", "name": "bash"}), ""),
        case(
            "/tool_choice",
            json!({"type": "tool", "name": "zsh"}),
            "no tool named `zsh`",
        ),
        case(
            "/tool_choice",
            json!({"type": "maybe"}),
            "must be auto, any, tool or none",
        ),
        case("/system", marked(4), ""),
        case("/system", marked(5), "at most 4 blocks"),
        case(
            "/system/0/cache_control",
            json!({"type": "forever"}),
            "must be \"ephemeral\"",
        ),
        case(
            "/system/0/cache_control",
            json!({"type": "ephemeral", "ttl": "1d"}),
            "must be 5m or 1h",
        ),
        case(
            "/system",
            json!([{"type": "text", "text": "", "cache_control": marker()}]),
            "empty text blocks",
        ),
        case("/messages", image("image/png", "aGk="), ""),
        case(
            "/messages",
            image("image/bmp", "aGk="),
            "must be one of image/jpeg",
        ),
        case("/messages", image("image/png", "aGk"), "not valid base64"),
        case("/messages", image("image/png", "a*k="), "not valid base64"),
    ]);
    let bare = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    let cases = vec![case(
        "/tool_choice",
        json!({"type": "auto"}),
        "only be given together with tools",
    )];
    run(Protocol::Anthropic, &bare, cases);
}
