//! Requests in the form in which other agents send them.

use serde_json::{Value, json};
use windlass_sim::{Reply, Script};

use crate::client::{post, start, start_with};

/// PROV-5: a request of Codex, with groups of tools, tools of the service, tools that take free text and metadata, is
/// accepted; a call of a tool in a group names the group, and free text goes back as such.
#[tokio::test]
async fn a_request_of_codex_is_answered() {
    let script = Script::new()
        .reply(Reply::raw_call("exec", "await tools.run()"))
        .reply(Reply::call("sleep", json!({"seconds": 1})))
        .reply(Reply::text("done"));
    let sim = start(script).await;
    let group = |name: &str, tools: Value| json!({"type": "namespace", "name": name, "description": "", "tools": tools});
    let function = json!({"type": "function", "name": "sleep", "parameters": {"type": "object"}});
    let added = json!({
        "type": "additional_tools", "id": "at_1", "role": "developer",
        "tools": [group("functions", json!([{"type": "custom", "name": "exec", "format": {"type": "text"}}]))],
    });
    let mut body = json!({
        "model": "m", "stream": true, "store": false, "client_metadata": {"a": "b"},
        "tools": [group("clock", json!([function])), {"type": "web_search", "external_web_access": true}],
        "input": [added, {"type": "message", "role": "user", "content": "go"}],
    });
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let answer = post(&sim, "/v1/responses", &body.to_string(), &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let events = answer.events();
        let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
        let call = last["response"]["output"][0].clone();
        kinds.push(
            [&call["type"], &call["name"], &call["namespace"]].map(|text| text.as_str().unwrap().to_owned()),
        );
        let kind = format!("{}_output", call["type"].as_str().unwrap());
        let output = json!({"type": kind, "call_id": call["call_id"], "output": "ok"});
        let input = body["input"].as_array_mut().unwrap();
        input.extend([call, output]);
    }
    assert_eq!(
        kinds,
        [
            ["custom_tool_call", "exec", "functions"],
            ["function_call", "sleep", "clock"]
        ]
    );
    let answer = post(&sim, "/v1/responses", &body.to_string(), &[]).await;
    assert!(answer.text().contains("done"), "{}", answer.text());
    assert!(sim.violations().is_empty());
}

/// PROV-5: system messages between the others, as Claude Code sends them, are accepted with the header that asks for them.
#[tokio::test]
async fn a_request_of_claude_code_is_answered() {
    let sim = start_with(Reply::text("yes")).await;
    let body = json!({
        "model": "m", "max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
        "messages": [{"role": "user", "content": "go"}, {"role": "system", "content": "Available agents: none"}],
    });
    let ask = async |headers: &[(&str, &str)]| {
        post(&sim, "/v1/messages?beta=true", &body.to_string(), headers)
            .await
            .status
    };
    let betas = "claude-code-20250219,mid-conversation-system-2026-04-07";
    assert_eq!(ask(&[("anthropic-beta", betas)]).await, 200);
    assert_eq!(ask(&[("anthropic-beta", "claude-code-20250219")]).await, 400);
    assert_eq!(ask(&[]).await, 400);
}
