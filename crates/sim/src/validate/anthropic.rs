//! The rules of the Anthropic Messages API.

mod blocks;
mod pairs;

use serde_json::{Map, Value};

use super::fields::{Check, Kind, Null, array, fail, join, keys, not_blank, object, range, text};
use super::tools;

const TOP: [(&str, Kind); 22] = [
    ("model", Kind::Text),
    ("messages", Kind::Array),
    ("max_tokens", Kind::Integer),
    ("system", Kind::TextOrArray),
    ("metadata", Kind::Object),
    ("stop_sequences", Kind::Array),
    ("stream", Kind::Bool),
    ("temperature", Kind::Number),
    ("top_k", Kind::Integer),
    ("top_p", Kind::Number),
    ("thinking", Kind::Object),
    ("tools", Kind::Array),
    ("tool_choice", Kind::Object),
    ("service_tier", Kind::Text),
    ("container", Kind::TextOrObject),
    ("context_management", Kind::Object),
    ("mcp_servers", Kind::Array),
    ("output_config", Kind::Object),
    ("output_format", Kind::Object),
    ("inference_geo", Kind::Text),
    ("speed", Kind::Text),
    ("cache_control", Kind::Object),
];

/// Maximum number of cache markers in a request.
const MOST_MARKERS: usize = 4;
/// Beta feature, without its date, that allows system messages between the others.
pub(super) const SYSTEM_MESSAGES: &str = "mid-conversation-system-";

pub(super) fn check(body: &Value, has_system_messages: bool) -> Check {
    let map = object("body", body)?;
    text("", map, "model")?;
    let limit = max_tokens(map)?;
    keys("", map, &TOP, Null::Refused)?;
    range(map, "temperature", 0.0, 1.0)?;
    range(map, "top_p", 0.0, 1.0)?;
    tools::anthropic(map)?;
    thinking(map, limit)?;
    system(map)?;
    let Some(messages) = map.get("messages") else {
        return fail("messages", "field required");
    };
    conversation(array("messages", messages)?, has_system_messages)?;
    markers(body)
}

fn max_tokens(map: &Map<String, Value>) -> Result<u64, super::Violation> {
    match map.get("max_tokens") {
        None => fail("max_tokens", "field required"),
        Some(value) => match value.as_u64() {
            Some(limit) if limit > 0 => Ok(limit),
            _ => fail("max_tokens", "must be an integer above 0"),
        },
    }
}

fn thinking(map: &Map<String, Value>, limit: u64) -> Check {
    const KNOWN: [(&str, Kind); 3] = [
        ("type", Kind::Text),
        ("budget_tokens", Kind::Integer),
        ("display", Kind::Text),
    ];
    let Some(thinking) = map.get("thinking") else {
        return Ok(());
    };
    let thinking = object("thinking", thinking)?;
    keys("thinking", thinking, &KNOWN, Null::Refused)?;
    match text("thinking", thinking, "type")? {
        "enabled" => {}
        "adaptive" | "disabled" if !thinking.contains_key("budget_tokens") => return Ok(()),
        "adaptive" | "disabled" => {
            return fail("thinking.budget_tokens", "extra inputs are not permitted");
        }
        _ => return fail("thinking.type", "must be enabled, adaptive or disabled"),
    }
    match thinking.get("budget_tokens").and_then(Value::as_u64) {
        None => return fail("thinking.budget_tokens", "field required"),
        Some(budget) if budget < 1024 => {
            return fail("thinking.budget_tokens", "must be at least 1024");
        }
        Some(budget) if budget >= limit => {
            return fail("max_tokens", "must be greater than thinking.budget_tokens");
        }
        Some(_) => {}
    }
    if matches!(map.get("temperature").and_then(Value::as_f64), Some(heat) if heat < 1.0) {
        return fail("temperature", "may only be 1 when thinking is enabled");
    }
    let choice = map.get("tool_choice").and_then(|choice| choice["type"].as_str());
    if matches!(choice, Some("any" | "tool")) {
        return fail("tool_choice", "may not force a tool when thinking is enabled");
    }
    Ok(())
}

fn system(map: &Map<String, Value>) -> Check {
    match map.get("system") {
        None => Ok(()),
        Some(Value::String(system)) => not_blank("system", system),
        Some(system) => {
            for (index, block) in array("system", system)?.iter().enumerate() {
                let path = format!("system.{index}");
                let block = object(&path, block)?;
                if text(&path, block, "type")? != "text" {
                    return fail(join(&path, "type"), "must be \"text\"");
                }
                blocks::text_block(&path, block)?;
            }
            Ok(())
        }
    }
}

fn conversation(messages: &[Value], has_system_messages: bool) -> Check {
    if messages.is_empty() {
        return fail("messages", "at least one message is required");
    }
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages.{index}");
        let map = object(&path, message)?;
        let known = [("role", Kind::Text), ("content", Kind::TextOrArray)];
        keys(&path, map, &known, Null::Refused)?;
        let role = text(&path, map, "role")?;
        match role {
            "user" | "assistant" => {}
            "system" if has_system_messages => {}
            "system" => {
                return fail(join(&path, "role"), "system text belongs into `system`");
            }
            _ => return fail(join(&path, "role"), "must be user or assistant"),
        }
        if index == 0 && role != "user" {
            return fail("messages", "the first message must have the role user");
        }
        content(&join(&path, "content"), role, map.get("content"))?;
    }
    if let Some(last) = messages.last() {
        no_trailing_blank(messages.len() - 1, last)?;
    }
    pairs::check(messages)
}

fn content(path: &str, role: &str, content: Option<&Value>) -> Check {
    match content {
        None => fail(path, "field required"),
        Some(Value::String(text)) => not_blank(path, text),
        Some(content) => {
            let items = array(path, content)?;
            if items.is_empty() {
                return fail(path, "must not be empty");
            }
            for (index, block) in items.iter().enumerate() {
                blocks::check(&format!("{path}.{index}"), role, block)?;
            }
            Ok(())
        }
    }
}

fn no_trailing_blank(index: usize, last: &Value) -> Check {
    if last["role"] != "assistant" {
        return Ok(());
    }
    let text = match &last["content"] {
        Value::String(text) => Some(text.as_str()),
        content => content
            .as_array()
            .and_then(|blocks| blocks.last())
            .and_then(|block| block["text"].as_str()),
    };
    match text {
        Some(text) if text.ends_with(char::is_whitespace) => fail(
            format!("messages.{index}.content"),
            "the final assistant message must not end with white space",
        ),
        _ => Ok(()),
    }
}

fn markers(body: &Value) -> Check {
    let nested = |items: &Value| {
        items
            .as_array()
            .into_iter()
            .flatten()
            .map(|block| {
                let inner = block["content"].as_array().into_iter().flatten();
                marked(block) + inner.map(marked).sum::<usize>()
            })
            .sum::<usize>()
    };
    let messages = body["messages"].as_array().into_iter().flatten();
    let count = marked(body)
        + nested(&body["tools"])
        + nested(&body["system"])
        + messages.map(|message| nested(&message["content"])).sum::<usize>();
    if count > MOST_MARKERS {
        return fail(
            "cache_control",
            format!("at most {MOST_MARKERS} blocks may carry cache_control, found {count}"),
        );
    }
    Ok(())
}

fn marked(block: &Value) -> usize {
    usize::from(block.get("cache_control").is_some())
}
