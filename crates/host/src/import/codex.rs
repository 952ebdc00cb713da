//! Sessions of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.
//!
//! The `response_item` lines are the messages to and from the model; the others repeat them for display.
//! Older files have the items themselves as lines.

use serde_json::{Value, json};
use windlass_api::Part;
use windlass_core::clock::Timestamp;

use super::conversation::{Content, Conversation, call, parts, thought, time};
use super::lines::Lines;

/// Prefixes of messages that the program writes in the user's name.
const INJECTED: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skills_instructions>",
    "# AGENTS.md instructions",
];

pub(super) fn read(lines: Lines) -> Conversation {
    let mut conversation = Conversation::new("codex", lines.damaged);
    for (_, line) in &lines.values {
        let kind = line["type"].as_str().unwrap_or("header");
        let (payload, at) = (&line["payload"], time(&line["timestamp"]));
        match kind {
            "session_meta" => place(&mut conversation, payload),
            "turn_context" => {
                place(&mut conversation, payload);
                if let Some(model) = payload["model"].as_str() {
                    conversation.model = Some(model.to_owned());
                }
            }
            "response_item" => item(&mut conversation, payload, at),
            "compacted" => compacted(&mut conversation, payload, at),
            _ if payload.is_null() && is_item(kind) => item(&mut conversation, line, at),
            _ => conversation.skip(kind),
        }
    }
    conversation
}

fn place(conversation: &mut Conversation, payload: &Value) {
    if let Some(place) = payload["cwd"].as_str() {
        conversation.place.get_or_insert_with(|| place.to_owned());
    }
}

fn is_item(kind: &str) -> bool {
    ["message", "reasoning"].contains(&kind) || kind.ends_with("_call") || kind.ends_with("_call_output")
}

/// From here on, the model saw a summary.
fn compacted(conversation: &mut Conversation, payload: &Value, at: Timestamp) {
    conversation.start_over();
    match payload["replacement_history"].as_array() {
        Some(items) => items.iter().for_each(|value| item(conversation, value, at)),
        None => conversation.user(parts(&payload["message"]), at),
    }
}

fn item(conversation: &mut Conversation, item: &Value, at: Timestamp) {
    let kind = item["type"].as_str().unwrap_or("?");
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match kind {
        "message" => message(conversation, item, at),
        "reasoning" => {
            let texts = ["summary", "content"].map(|key| texts(&item[key]));
            let thought = texts.iter().find_map(|text| thought(text));
            conversation.assistant(thought.into_iter().collect(), at, None);
        }
        "function_call" => {
            let part = call(text("call_id"), text("name"), text("arguments").to_owned());
            conversation.assistant(vec![part], at, None);
        }
        "custom_tool_call" => {
            let input = json!({ "input": item["input"] }).to_string();
            conversation.assistant(vec![call(text("call_id"), text("name"), input)], at, None);
        }
        "local_shell_call" => {
            let input = json!({ "command": item["action"]["command"] }).to_string();
            conversation.assistant(vec![call(text("call_id"), "local_shell", input)], at, None);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let (content, is_error) = output(&item["output"]);
            conversation.result(text("call_id"), content, is_error);
        }
        other => conversation.skip(other),
    }
}

fn message(conversation: &mut Conversation, item: &Value, at: Timestamp) {
    let said = parts(&item["content"]);
    let is_injected = |part: &Part| match part {
        Part::Text(text) => INJECTED
            .iter()
            .any(|start| text.text.trim_start().starts_with(start)),
        _ => false,
    };
    match item["role"].as_str() {
        Some("assistant") => conversation.assistant(said, at, None),
        Some("user") if !said.iter().any(is_injected) => conversation.user(said, at),
        _ => conversation.skip("instructions"),
    }
}

fn texts(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Reads a tool result. It is a text, a list of blocks, or an object around either; a text may be JSON with
/// the output and the exit code.
fn output(value: &Value) -> (Content, bool) {
    let inner = value.get("content").or(value.get("output")).unwrap_or(value);
    let failed = value["success"] == false;
    let text = inner.as_str().unwrap_or_default();
    if let Ok(wrapped) = serde_json::from_str::<Value>(text)
        && wrapped["output"].is_string()
    {
        let code = wrapped["metadata"]["exit_code"].as_i64().unwrap_or_default();
        return (Content::of(&wrapped["output"]), failed || code != 0);
    }
    (Content::of(inner), failed)
}
