#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use super::reply::{CallArguments, Times};
use super::{OnEnd, Reply, Script, When};
use crate::answer::{Pieces, Stop};
use crate::fault::{Deviation, Fault, Framing};
use crate::seen::Seen;
use crate::wire::Protocol;

/// PROV-5: YAML and the builder give the same script.
#[test]
fn yaml_and_builder_agree() {
    let yaml = r#"
model: sim-2
on_end: repeat
replies:
  - when: { user_contains: hi, wire: chat, no_tools: false }
    thinking: { text: hm, redacted: true }
    text: "x"
    calls:
      - { tool: bash, id: c1, args: { command: ls, list: [1, 2.5, true, null] } }
    stop: max_tokens
    usage: { input: 1, output: 2, cache_read: 3, cache_write: 4 }
    delta_chars: 12
    times: forever
  - fault: { status: 429, headers: { Retry-After: 1 }, message: slow }
    times: 3
  - text: y
    deltas: 2
    fault: { cut_after_events: 2, framing: crlf, chunk: 3, no_done: true, shared_index: false, delay_ms: 5 }
"#;
    let args = json!({"command": "ls", "list": [1, 2.5, true, null]});
    let built = Script::new()
        .model("sim-2")
        .on_end(OnEnd::Repeat)
        .reply(
            Reply::text("x")
                .redacted_thinking("hm")
                .and_call("bash", args)
                .id("c1")
                .stop(Stop::MaxTokens)
                .tokens(1, 2)
                .cached_tokens(3, 4)
                .delta_chars(12)
                .forever()
                .when(
                    When::new()
                        .user_contains("hi")
                        .wire(Protocol::Chat)
                        .no_tools(false),
                ),
        )
        .reply(
            Reply::default()
                .fault(Fault::status(429).header("retry-after", "1").message("slow"))
                .times(3),
        )
        .reply(
            Reply::text("y").deltas(2).fault(
                Fault::new()
                    .cut_after_events(2)
                    .framing(Framing::Crlf)
                    .chunk(3)
                    .deviation(Deviation::NoDone)
                    .delay_ms(5),
            ),
        );
    assert_eq!(Script::from_yaml(yaml, "s.yaml").unwrap(), built);
}

/// PROV-5: a mistake is reported with its line and with the expected value.
#[test]
fn mistakes_are_named() {
    let cases = [
        (
            "replies:\n  - txt: x",
            "s.yaml:2: unknown key `txt` in a reply; did you mean `text`?",
        ),
        (
            "replies:\n  - text: x\n    when:\n      user_contain: y",
            "s.yaml:4: unknown key `user_contain` in `when`; did you mean `user_contains`?",
        ),
        (
            "zzzzzzzz: 1",
            "s.yaml:1: unknown key `zzzzzzzz` in the script; valid keys are model, on_end, replies",
        ),
        (
            "on_end: stop",
            "s.yaml:1: `on_end` must be one of error, repeat, rules, not `stop`",
        ),
        (
            "replies:\n\n  - times: 0",
            "s.yaml:3: `times` must be a number above 0 or `forever`, not `0`",
        ),
        (
            "replies:\n  - text: 5",
            "s.yaml:2: `text` must be a text (use quotes), not `5`",
        ),
        ("replies: x", "s.yaml:1: `replies` must be a list, not `x`"),
        (
            "replies:\n  - fault: { status: 99 }",
            "s.yaml:2: `status` must be an HTTP status from 200 to 599, not `99`",
        ),
        (
            "replies:\n  - calls: [ { args: {} } ]",
            "s.yaml:2: `tool` must be the name of a tool, not nothing",
        ),
        (
            "replies:\n  - calls: [ { tool: x, args: 3 } ]",
            "s.yaml:2: `args` must be a table of arguments, not `3`",
        ),
        (
            "replies:\n  - fault:\n      framing: lfcr",
            "s.yaml:3: `framing` must be one of lf, crlf, cr, bom, comments, nospace, multiline, not `lfcr`",
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(
            Script::from_yaml(yaml, "s.yaml").unwrap_err().to_string(),
            expected
        );
    }
    let syntax = Script::from_yaml("replies:\n  - [", "s.yaml")
        .unwrap_err()
        .to_string();
    assert!(syntax.contains("not valid YAML"), "{syntax}");
    let missing = Script::from_file("no/such/file.yaml").unwrap_err().to_string();
    assert!(missing.starts_with("cannot read no/such/file.yaml"), "{missing}");
}

/// PROV-5: raw arguments stay as they are, however broken.
#[test]
fn raw_arguments_stay_raw() {
    let yaml = "replies:\n  - calls: [ { tool: bash, raw: '{\"command\": \"l' } ]";
    let script = Script::from_yaml(yaml, "s").unwrap();
    assert_eq!(
        script.replies[0].calls[0].arguments,
        CallArguments::Raw(r#"{"command": "l"#.to_owned())
    );
    assert_eq!(script.replies[0].times, Times::Count(1));
    assert_eq!(script.replies[0].pieces, Pieces::default());
}

fn seen() -> Seen {
    Seen::read(
        Protocol::Chat,
        &json!({"model": "m", "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
        ], "tools": [{"type": "function", "function": {"name": "bash"}}]}),
    )
}

/// PROV-5: templates are filled in, in texts and arguments; unknown ones stay.
#[test]
fn templates_are_filled() {
    let text = "{{user}}: {{last_result}}, {{ result:1 }}, {{result:9}}, {{nope}} {{";
    let answer = Reply::text(text)
        .and_call("bash", json!({"command": ["echo {{result:2}}"]}))
        .answer(&seen());
    assert_eq!(answer.text.as_deref(), Some("list: two, one, , {{nope}} {{"));
    assert_eq!(answer.calls[0].arguments, r#"{"command":["echo two"]}"#);
    assert_eq!(
        Reply::text("<{{last_quoted}}>").answer(&seen()).text.as_deref(),
        Some("<>")
    );
    let kept = Seen::read(
        Protocol::Chat,
        &json!({"messages": [
            {"role": "assistant", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "kept as \"x\" and \"y\"."},
            {"role": "tool", "tool_call_id": "b", "content": "nothing"},
        ]}),
    );
    assert_eq!(
        Reply::text("<{{last_quoted}}>").answer(&kept).text.as_deref(),
        Some("<y>")
    );
}

/// PROV-5: every condition holds and fails where it should.
#[test]
fn conditions_hold_or_not() {
    let cases = [
        (When::new(), true),
        (When::new().user_contains("li"), true),
        (When::new().user_contains("la"), false),
        (When::new().last_result_contains("two"), true),
        (When::new().last_result_contains("one"), false),
        (When::new().last_result_not_contains("one"), true),
        (When::new().last_result_not_contains("two"), false),
        (When::new().last_tool("bash"), true),
        (When::new().last_tool("grep"), false),
        (When::new().system_contains("kind"), true),
        (When::new().system_contains("rude"), false),
        (When::new().has_tool("bash"), true),
        (When::new().has_tool("grep"), false),
        (When::new().wire(Protocol::Chat), true),
        (When::new().wire(Protocol::Anthropic), false),
        (When::new().no_tools(true), false),
        (When::new().no_tools(false), true),
    ];
    let seen = seen();
    for (when, expected) in cases {
        assert_eq!(when.holds(Protocol::Chat, &seen), expected, "{when:?}");
    }
}
