//! The rules of the OpenAI Chat Completions API.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::fields::{
    Check, Kind, Null, array, call_id, each_part, fail, image_url, join, keys, not_blank, object, range,
    text, tool_name,
};
use super::tools::{self, Shape};

const TOP: [(&str, Kind); 35] = [
    ("model", Kind::Text),
    ("messages", Kind::Array),
    ("audio", Kind::Object),
    ("frequency_penalty", Kind::Number),
    ("function_call", Kind::TextOrObject),
    ("functions", Kind::Array),
    ("logit_bias", Kind::Object),
    ("logprobs", Kind::Bool),
    ("max_completion_tokens", Kind::Integer),
    ("max_tokens", Kind::Integer),
    ("metadata", Kind::Object),
    ("modalities", Kind::Array),
    ("n", Kind::Integer),
    ("parallel_tool_calls", Kind::Bool),
    ("prediction", Kind::Object),
    ("presence_penalty", Kind::Number),
    ("prompt_cache_key", Kind::Text),
    ("prompt_cache_options", Kind::Object),
    ("prompt_cache_retention", Kind::Text),
    ("reasoning_effort", Kind::Text),
    ("response_format", Kind::Object),
    ("safety_identifier", Kind::Text),
    ("seed", Kind::Integer),
    ("service_tier", Kind::Text),
    ("stop", Kind::TextOrArray),
    ("store", Kind::Bool),
    ("stream", Kind::Bool),
    ("stream_options", Kind::Object),
    ("temperature", Kind::Number),
    ("tool_choice", Kind::TextOrObject),
    ("tools", Kind::Array),
    ("top_logprobs", Kind::Integer),
    ("top_p", Kind::Number),
    ("user", Kind::Text),
    ("verbosity", Kind::Text),
];

/// Maximum length of a call id.
const LONGEST_ID: usize = 40;

pub(super) fn check(body: &Value) -> Check {
    let map = object("body", body)?;
    text("", map, "model")?;
    keys("", map, &TOP, Null::Absent)?;
    range(map, "temperature", 0.0, 2.0)?;
    range(map, "top_p", 0.0, 1.0)?;
    limits(map)?;
    stream_options(map)?;
    tools::openai(map, Shape::Nested)?;
    match map.get("messages") {
        None => fail("messages", "field required"),
        Some(messages) => conversation(array("messages", messages)?),
    }
}

fn limits(map: &Map<String, Value>) -> Check {
    let given = |key: &str| map.get(key).filter(|value| !value.is_null());
    for key in ["max_tokens", "max_completion_tokens"] {
        if given(key).is_some_and(|value| value.as_u64().unwrap_or(0) == 0) {
            return fail(key, "must be an integer above 0");
        }
    }
    if given("max_tokens").is_some() && given("max_completion_tokens").is_some() {
        return fail("max_tokens", "may not be given with max_completion_tokens");
    }
    Ok(())
}

fn stream_options(map: &Map<String, Value>) -> Check {
    let options = match map.get("stream_options") {
        None | Some(Value::Null) => return Ok(()),
        Some(options) => object("stream_options", options)?,
    };
    if map.get("stream") != Some(&Value::Bool(true)) {
        return fail("stream_options", "is only allowed when stream is true");
    }
    let known = [("include_usage", Kind::Bool), ("include_obfuscation", Kind::Bool)];
    keys("stream_options", options, &known, Null::Absent)
}

/// State while checking the messages.
#[derive(Default)]
struct Walk<'v> {
    /// Calls of the last assistant message that have no result yet.
    open: Vec<&'v str>,
    ids: HashSet<&'v str>,
    started: bool,
}

fn conversation(messages: &[Value]) -> Check {
    if messages.is_empty() {
        return fail("messages", "must not be an empty array");
    }
    let mut walk = Walk::default();
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        let map = object(&path, message)?;
        let role = text(&path, map, "role")?;
        if role != "tool" {
            all_answered(&path, &walk.open)?;
        }
        match role {
            "system" | "developer" => input(&path, map, &["text"])?,
            "user" => {
                walk.started = true;
                input(&path, map, &["text", "image_url", "input_audio", "file"])?;
            }
            _ if !walk.started => {
                return fail(path, "the first message must have the role user");
            }
            "assistant" => assistant(&path, map, &mut walk)?,
            "tool" => tool(&path, map, &mut walk)?,
            _ => {
                return fail(
                    join(&path, "role"),
                    "must be system, developer, user, assistant or tool",
                );
            }
        }
    }
    if !walk.started {
        return fail("messages", "there is no user message");
    }
    all_answered("messages", &walk.open)
}

fn all_answered(path: &str, open: &[&str]) -> Check {
    match open.first() {
        Some(id) => fail(
            path,
            format!(
                "an assistant message with tool_calls must be followed by tool messages for each call; `{id}` has none"
            ),
        ),
        None => Ok(()),
    }
}

/// Checks a message of anyone but the model and the tools.
fn input(path: &str, map: &Map<String, Value>, allowed: &[&str]) -> Check {
    let known = [
        ("role", Kind::Text),
        ("content", Kind::TextOrArray),
        ("name", Kind::Text),
    ];
    keys(path, map, &known, Null::Refused)?;
    content(path, map, allowed)
}

fn assistant<'v>(path: &str, map: &'v Map<String, Value>, walk: &mut Walk<'v>) -> Check {
    let known = [
        ("role", Kind::Text),
        ("content", Kind::TextOrArray),
        ("name", Kind::Text),
        ("refusal", Kind::Text),
        ("audio", Kind::Object),
        ("tool_calls", Kind::Array),
        // Servers with open reasoning accept their own field back.
        ("reasoning_content", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    let calls = match map.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => {
            let calls = array(path, calls)?;
            if calls.is_empty() {
                return fail(join(path, "tool_calls"), "must not be an empty array");
            }
            calls
        }
    };
    match map.get("content") {
        None | Some(Value::Null) if calls.is_empty() && !map.contains_key("refusal") => {
            return fail(
                join(path, "content"),
                "may only be null when there are tool_calls",
            );
        }
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() && !calls.is_empty() => {}
        Some(_) => content(path, map, &["text", "refusal"])?,
    }
    for (index, call) in calls.iter().enumerate() {
        let path = format!("{path}.tool_calls[{index}]");
        let id = tool_call(&path, call)?;
        if !walk.ids.insert(id) {
            return fail(join(&path, "id"), format!("`{id}` is used twice"));
        }
        walk.open.push(id);
    }
    Ok(())
}

fn tool_call<'v>(path: &str, call: &'v Value) -> Result<&'v str, super::Violation> {
    let call = object(path, call)?;
    let known = [
        ("id", Kind::Text),
        ("type", Kind::Text),
        ("function", Kind::Object),
    ];
    keys(path, call, &known, Null::Refused)?;
    let id = call_id(path, call, "id", LONGEST_ID)?;
    if text(path, call, "type")? != "function" {
        return fail(join(path, "type"), "must be \"function\"");
    }
    let path = join(path, "function");
    let Some(function) = call.get("function") else {
        return fail(path, "field required");
    };
    let function = object(&path, function)?;
    let known = [("name", Kind::Text), ("arguments", Kind::Text)];
    keys(&path, function, &known, Null::Refused)?;
    tool_name(&join(&path, "name"), text(&path, function, "name")?)?;
    if !function.contains_key("arguments") {
        return fail(join(&path, "arguments"), "field required");
    }
    Ok(id)
}

fn tool<'v>(path: &str, map: &'v Map<String, Value>, walk: &mut Walk<'v>) -> Check {
    let known = [
        ("role", Kind::Text),
        ("content", Kind::TextOrArray),
        ("tool_call_id", Kind::Text),
    ];
    keys(path, map, &known, Null::Refused)?;
    let id = text(path, map, "tool_call_id")?;
    let Some(position) = walk.open.iter().position(|open| *open == id) else {
        return fail(
            path,
            format!(
                "a tool message must answer a call of the preceding assistant message; `{id}` is not one that is open"
            ),
        );
    };
    walk.open.remove(position);
    match map.get("content") {
        // A tool may print nothing.
        Some(Value::String(_)) => Ok(()),
        _ => content(path, map, &["text"]),
    }
}

fn content(path: &str, map: &Map<String, Value>, allowed: &[&str]) -> Check {
    let path = join(path, "content");
    let parts = match map.get("content") {
        None => return fail(path, "field required"),
        Some(Value::String(text)) => return not_blank(&path, text),
        Some(parts) => parts,
    };
    each_part(&path, parts, allowed, |path, kind, part| match kind {
        "text" => not_blank(&join(path, "text"), text(path, part, "text")?),
        "image_url" => {
            let path = join(path, "image_url");
            let Some(image) = part.get("image_url") else {
                return fail(path, "field required");
            };
            image_url(&join(&path, "url"), text(&path, object(&path, image)?, "url")?)
        }
        _ => Ok(()),
    })
}
