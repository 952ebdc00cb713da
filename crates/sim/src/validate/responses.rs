//! The rules of the OpenAI Responses API.

mod items;

use serde_json::{Map, Value};

use super::fields::{Check, Kind, Null, array, fail, keys, not_blank, object, range, text};
use super::tools::{self, Shape};

const TOP: [(&str, Kind); 28] = [
    ("model", Kind::Text),
    ("input", Kind::TextOrArray),
    ("background", Kind::Bool),
    ("client_metadata", Kind::Object),
    ("context_management", Kind::Array),
    ("include", Kind::Array),
    ("instructions", Kind::Text),
    ("max_output_tokens", Kind::Integer),
    ("max_tool_calls", Kind::Integer),
    ("metadata", Kind::Object),
    ("moderation", Kind::Object),
    ("parallel_tool_calls", Kind::Bool),
    ("prompt_cache_key", Kind::Text),
    ("prompt_cache_options", Kind::Object),
    ("prompt_cache_retention", Kind::Text),
    ("reasoning", Kind::Object),
    ("safety_identifier", Kind::Text),
    ("service_tier", Kind::Text),
    ("store", Kind::Bool),
    ("stream", Kind::Bool),
    ("stream_options", Kind::Object),
    ("temperature", Kind::Number),
    ("text", Kind::Object),
    ("tool_choice", Kind::TextOrObject),
    ("tools", Kind::Array),
    ("top_p", Kind::Number),
    ("truncation", Kind::Text),
    ("user", Kind::Text),
];

/// Keys of the real service that need a store of past responses, which the simulation does not have.
const UNSUPPORTED: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

const INCLUDE: [&str; 8] = [
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];

/// Smallest output limit the service accepts.
const LEAST_OUTPUT: u64 = 16;

pub(super) fn check(body: &Value) -> Check {
    let map = object("body", body)?;
    for key in UNSUPPORTED {
        if map.get(key).is_some_and(|value| !value.is_null()) {
            return fail(key, "is not supported by the simulated model");
        }
    }
    text("", map, "model")?;
    let known: Vec<(&str, Kind)> = TOP
        .into_iter()
        .chain(UNSUPPORTED.map(|key| (key, Kind::Text)))
        .collect();
    keys("", map, &known, Null::Absent)?;
    range(map, "temperature", 0.0, 2.0)?;
    range(map, "top_p", 0.0, 1.0)?;
    options(map)?;
    tools::openai(map, Shape::Flat)?;
    match map.get("input") {
        None | Some(Value::Null) => fail("input", "field required"),
        Some(Value::String(text)) => not_blank("input", text),
        Some(input) => {
            let stored = map.get("store") != Some(&Value::Bool(false));
            items::check(array("input", input)?, stored)
        }
    }
}

fn options(map: &Map<String, Value>) -> Check {
    if let Some(include @ Value::Array(_)) = map.get("include") {
        for (index, value) in array("include", include)?.iter().enumerate() {
            if !value.as_str().is_some_and(|value| INCLUDE.contains(&value)) {
                return fail(
                    format!("include[{index}]"),
                    format!("must be one of {}", INCLUDE.join(", ")),
                );
            }
        }
    }
    if map.get("background") == Some(&Value::Bool(true)) {
        return fail("background", "is not supported by the simulated model");
    }
    if let Some(limit) = map.get("max_output_tokens").filter(|limit| !limit.is_null())
        && limit.as_u64().is_none_or(|limit| limit < LEAST_OUTPUT)
    {
        return fail("max_output_tokens", format!("must be at least {LEAST_OUTPUT}"));
    }
    if map.get("stream_options").is_some_and(Value::is_object)
        && map.get("stream") != Some(&Value::Bool(true))
    {
        return fail("stream_options", "is only allowed when stream is true");
    }
    Ok(())
}
