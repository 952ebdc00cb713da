//! Readers, one per wire. They trust nothing and skip unknown items.

use serde_json::Value;

use super::{Seen, SeenCall, SeenResult, SeenRole, SeenTurn, offered};
use crate::seal;

pub(super) fn anthropic(body: &Value) -> Seen {
    let mut seen = common(body, "max_tokens");
    seen.system = text_of(&body["system"]);
    seen.tools = names(body, |tool| tool["name"].as_str());
    seen.tool_choice = body["tool_choice"]["type"].as_str().map(|kind| match kind {
        "tool" => string(&body["tool_choice"]["name"]),
        other => other.to_owned(),
    });
    for message in items(&body["messages"]) {
        if message["role"] == "system" {
            push_text(&mut seen.system, &text_of(&message["content"]));
            continue;
        }
        let turn = turn_for(&mut seen.turns, role_of(message));
        if let Some(text) = message["content"].as_str() {
            push_text(&mut turn.text, text);
        }
        for block in items(&message["content"]) {
            anthropic_block(turn, block);
        }
    }
    seen
}

fn anthropic_block(turn: &mut SeenTurn, block: &Value) {
    match block["type"].as_str() {
        Some("text") => push_text(&mut turn.text, block["text"].as_str().unwrap_or_default()),
        Some("image") => turn.images += 1,
        Some("thinking") => turn.thinking.push(string(&block["thinking"])),
        Some("redacted_thinking") => turn.thinking.push(String::new()),
        Some("tool_use") => turn.calls.push(SeenCall {
            id: string(&block["id"]),
            name: string(&block["name"]),
            args: block["input"].clone(),
        }),
        Some("tool_result") => {
            turn.images += count(&block["content"], "image");
            turn.results.push(SeenResult {
                id: string(&block["tool_use_id"]),
                text: text_of(&block["content"]),
                is_error: block["is_error"].as_bool().unwrap_or(false),
            });
        }
        _ => {}
    }
}

pub(super) fn chat(body: &Value) -> Seen {
    let mut seen = common(body, "max_completion_tokens");
    if seen.max_tokens.is_none() {
        seen.max_tokens = body["max_tokens"].as_u64();
    }
    seen.tools = names(body, |tool| tool["function"]["name"].as_str());
    seen.tool_choice = openai_choice(&body["tool_choice"]);
    for message in items(&body["messages"]) {
        match message["role"].as_str() {
            Some("system" | "developer") => {
                push_text(&mut seen.system, &text_of(&message["content"]));
            }
            Some("tool") => turn_for(&mut seen.turns, SeenRole::User)
                .results
                .push(SeenResult {
                    id: string(&message["tool_call_id"]),
                    text: text_of(&message["content"]),
                    is_error: false,
                }),
            _ => chat_message(&mut seen.turns, message),
        }
    }
    seen
}

fn chat_message(turns: &mut Vec<SeenTurn>, message: &Value) {
    let turn = turn_for(turns, role_of(message));
    if let Some(reasoning) = message["reasoning_content"].as_str() {
        turn.thinking.push(reasoning.to_owned());
    }
    push_text(&mut turn.text, &text_of(&message["content"]));
    turn.images += count(&message["content"], "image_url");
    for call in items(&message["tool_calls"]) {
        turn.calls.push(SeenCall {
            id: string(&call["id"]),
            name: string(&call["function"]["name"]),
            args: arguments(&call["function"]["arguments"]),
        });
    }
}

pub(super) fn responses(body: &Value) -> Seen {
    let mut seen = common(body, "max_output_tokens");
    seen.system = string(&body["instructions"]);
    seen.tools = offered::names(body);
    seen.tool_choice = openai_choice(&body["tool_choice"]);
    if let Some(text) = body["input"].as_str() {
        push_text(&mut turn_for(&mut seen.turns, SeenRole::User).text, text);
    }
    for item in items(&body["input"]) {
        responses_item(&mut seen, item);
    }
    seen
}

fn responses_item(seen: &mut Seen, item: &Value) {
    match item["type"].as_str().unwrap_or("message") {
        "message" if matches!(item["role"].as_str(), Some("system" | "developer")) => {
            push_text(&mut seen.system, &text_of(&item["content"]));
        }
        "message" => {
            let turn = turn_for(&mut seen.turns, role_of(item));
            push_text(&mut turn.text, &text_of(&item["content"]));
            turn.images += count(&item["content"], "input_image");
        }
        "reasoning" => {
            let thought = item["encrypted_content"].as_str().and_then(seal::unwrap);
            turn_for(&mut seen.turns, SeenRole::Assistant)
                .thinking
                .push(thought.unwrap_or_else(|| text_of(&item["summary"])));
        }
        "function_call" => turn_for(&mut seen.turns, SeenRole::Assistant)
            .calls
            .push(SeenCall {
                id: string(&item["call_id"]),
                name: string(&item["name"]),
                args: arguments(&item["arguments"]),
            }),
        "custom_tool_call" => turn_for(&mut seen.turns, SeenRole::Assistant)
            .calls
            .push(SeenCall {
                id: string(&item["call_id"]),
                name: string(&item["name"]),
                args: item["input"].clone(),
            }),
        "function_call_output" | "custom_tool_call_output" => {
            let turn = turn_for(&mut seen.turns, SeenRole::User);
            turn.images += count(&item["output"], "input_image");
            turn.results.push(SeenResult {
                id: string(&item["call_id"]),
                text: text_of(&item["output"]),
                is_error: false,
            });
        }
        _ => {}
    }
}

/// The model and the choice of a stream are in the address; the server adds them.
pub(super) fn gemini(body: &Value) -> Seen {
    let mut seen = Seen {
        max_tokens: body["generationConfig"]["maxOutputTokens"].as_u64(),
        system: text_of(&body["systemInstruction"]["parts"]),
        ..Seen::default()
    };
    let functions = items(&body["tools"])
        .iter()
        .flat_map(|tool| items(&tool["functionDeclarations"]));
    seen.tools = functions.map(|function| string(&function["name"])).collect();
    let calling = &body["toolConfig"]["functionCallingConfig"];
    seen.tool_choice = calling["mode"].as_str().map(|mode| {
        let named = calling["allowedFunctionNames"][0].as_str();
        named.map_or_else(|| mode.to_ascii_lowercase(), str::to_owned)
    });
    for content in items(&body["contents"]) {
        let role = match content["role"].as_str() {
            Some("model") => SeenRole::Assistant,
            _ => SeenRole::User,
        };
        let turn = turn_for(&mut seen.turns, role);
        for part in items(&content["parts"]) {
            gemini_part(turn, part);
        }
    }
    seen
}

fn gemini_part(turn: &mut SeenTurn, part: &Value) {
    let text = part["text"].as_str().unwrap_or_default();
    if part["thought"] == true {
        turn.thinking.push(text.to_owned());
        return;
    }
    push_text(&mut turn.text, text);
    if part["inlineData"].is_object() {
        turn.images += 1;
    }
    if let Some(call) = part["functionCall"].as_object() {
        turn.calls.push(SeenCall {
            id: call.get("id").map(string).unwrap_or_default(),
            name: call.get("name").map(string).unwrap_or_default(),
            args: call.get("args").cloned().unwrap_or_default(),
        });
    }
    if let Some(response) = part["functionResponse"].as_object() {
        let said = response.get("response").cloned().unwrap_or_default();
        let text = ["output", "result", "error"]
            .iter()
            .find_map(|key| said[*key].as_str());
        turn.results.push(SeenResult {
            id: response.get("id").map(string).unwrap_or_default(),
            text: text.map_or_else(|| said.to_string(), str::to_owned),
            is_error: said["error"].is_string(),
        });
    }
}

fn common(body: &Value, limit_key: &str) -> Seen {
    Seen {
        model: string(&body["model"]),
        stream: body["stream"].as_bool().unwrap_or(false),
        max_tokens: body[limit_key].as_u64(),
        ..Seen::default()
    }
}

fn names<'body>(body: &'body Value, name: impl Fn(&'body Value) -> Option<&'body str>) -> Vec<String> {
    items(&body["tools"])
        .iter()
        .filter_map(|tool| name(tool).map(str::to_owned))
        .collect()
}

fn openai_choice(choice: &Value) -> Option<String> {
    choice
        .as_str()
        .or_else(|| choice["function"]["name"].as_str())
        .or_else(|| choice["name"].as_str())
        .or_else(|| choice["type"].as_str())
        .map(str::to_owned)
}

fn role_of(message: &Value) -> SeenRole {
    match message["role"].as_str() {
        Some("assistant") => SeenRole::Assistant,
        _ => SeenRole::User,
    }
}

/// Returns the last turn if it has this role, otherwise a new one.
fn turn_for(turns: &mut Vec<SeenTurn>, role: SeenRole) -> &mut SeenTurn {
    let index = match turns.last() {
        Some(last) if last.role == role => turns.len() - 1,
        _ => {
            turns.push(SeenTurn::new(role));
            turns.len() - 1
        }
    };
    &mut turns[index]
}

/// Returns the text of a string, or of the text parts in an array.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let mut out = String::new();
    for part in items(content) {
        let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
        push_text(&mut out, text.unwrap_or_default());
    }
    out
}

fn push_text(out: &mut String, text: &str) {
    if !out.is_empty() && !text.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

fn count(content: &Value, kind: &str) -> usize {
    items(content).iter().filter(|part| part["type"] == kind).count()
}

fn arguments(text: &Value) -> Value {
    let text = text.as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
