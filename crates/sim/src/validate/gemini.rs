//! The rules of Gemini's own wire.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::fields::{
    Check, Kind, Null, array, base64, fail, join, keys, media_type_known, object, range, text, word,
};
use crate::encode::is_gemini_signature;

const TOP: [(&str, Kind); 8] = [
    ("contents", Kind::Array),
    ("systemInstruction", Kind::Object),
    ("tools", Kind::Array),
    ("toolConfig", Kind::Object),
    ("generationConfig", Kind::Object),
    ("safetySettings", Kind::Array),
    ("cachedContent", Kind::Text),
    ("labels", Kind::Object),
];
const CONFIG: [(&str, Kind); 18] = [
    ("stopSequences", Kind::Array),
    ("responseMimeType", Kind::Text),
    ("responseSchema", Kind::Object),
    ("responseJsonSchema", Kind::Object),
    ("responseModalities", Kind::Array),
    ("candidateCount", Kind::Integer),
    ("maxOutputTokens", Kind::Integer),
    ("temperature", Kind::Number),
    ("topP", Kind::Number),
    ("topK", Kind::Number),
    ("seed", Kind::Integer),
    ("presencePenalty", Kind::Number),
    ("frequencyPenalty", Kind::Number),
    ("responseLogprobs", Kind::Bool),
    ("logprobs", Kind::Integer),
    ("thinkingConfig", Kind::Object),
    ("mediaResolution", Kind::Text),
    ("speechConfig", Kind::Object),
];
const THINKING: [(&str, Kind); 3] = [
    ("includeThoughts", Kind::Bool),
    ("thinkingBudget", Kind::Integer),
    ("thinkingLevel", Kind::Text),
];
const PART: [(&str, Kind); 8] = [
    ("text", Kind::Text),
    ("inlineData", Kind::Object),
    ("fileData", Kind::Object),
    ("functionCall", Kind::Object),
    ("functionResponse", Kind::Object),
    ("thought", Kind::Bool),
    ("thoughtSignature", Kind::Text),
    ("videoMetadata", Kind::Object),
];
/// Keys of a part of which exactly one must be there.
const DATA: [&str; 5] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
];
/// The signature that the service accepts on calls of other models.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

pub(super) fn check(body: &Value) -> Check {
    let map = object("body", body)?;
    keys("", map, &TOP, Null::Absent)?;
    config(map)?;
    if let Some(system) = map.get("systemInstruction") {
        let system = object("systemInstruction", system)?;
        keys(
            "systemInstruction",
            system,
            &[("role", Kind::Text), ("parts", Kind::Array)],
            Null::Absent,
        )?;
        parts("systemInstruction", system)?;
    }
    let names = tools(map)?;
    choice(map, &names)?;
    let Some(contents) = map.get("contents") else {
        return fail("contents", "field required");
    };
    conversation(array("contents", contents)?)
}

fn config(map: &Map<String, Value>) -> Check {
    let Some(Value::Object(config)) = map.get("generationConfig") else {
        return Ok(());
    };
    keys("generationConfig", config, &CONFIG, Null::Absent)?;
    range(config, "temperature", 0.0, 2.0)?;
    range(config, "topP", 0.0, 1.0)?;
    if config
        .get("maxOutputTokens")
        .is_some_and(|limit| limit.as_u64().is_none_or(|limit| limit == 0))
    {
        return fail("generationConfig.maxOutputTokens", "must be at least 1");
    }
    let Some(Value::Object(thinking)) = config.get("thinkingConfig") else {
        return Ok(());
    };
    let path = "generationConfig.thinkingConfig";
    keys(path, thinking, &THINKING, Null::Absent)?;
    if thinking.contains_key("thinkingBudget") && thinking.contains_key("thinkingLevel") {
        return fail(path, "has both a budget and a level");
    }
    Ok(())
}

/// Checks the tools and returns the names of the functions.
fn tools(map: &Map<String, Value>) -> Result<HashSet<&str>, super::Violation> {
    const TOOL: [(&str, Kind); 5] = [
        ("functionDeclarations", Kind::Array),
        ("googleSearch", Kind::Object),
        ("urlContext", Kind::Object),
        ("codeExecution", Kind::Object),
        ("googleSearchRetrieval", Kind::Object),
    ];
    const FUNCTION: [(&str, Kind); 7] = [
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("behavior", Kind::Text),
        ("parameters", Kind::Object),
        ("parametersJsonSchema", Kind::Object),
        ("response", Kind::Object),
        ("responseJsonSchema", Kind::Object),
    ];
    let mut names = HashSet::new();
    let Some(tools) = map.get("tools").filter(|tools| !tools.is_null()) else {
        return Ok(names);
    };
    for (index, tool) in array("tools", tools)?.iter().enumerate() {
        let path = format!("tools[{index}]");
        let tool = object(&path, tool)?;
        keys(&path, tool, &TOOL, Null::Absent)?;
        let functions = tool.get("functionDeclarations").and_then(Value::as_array);
        for (index, function) in functions.into_iter().flatten().enumerate() {
            let path = format!("{path}.functionDeclarations[{index}]");
            let function = object(&path, function)?;
            keys(&path, function, &FUNCTION, Null::Absent)?;
            let name = text(&path, function, "name")?;
            function_name(&join(&path, "name"), name)?;
            if function.contains_key("parameters") && function.contains_key("parametersJsonSchema") {
                return fail(path, "has both parameters and parametersJsonSchema");
            }
            if !names.insert(name) {
                return fail(
                    join(&path, "name"),
                    format!("duplicate function declaration `{name}`"),
                );
            }
        }
    }
    Ok(names)
}

fn choice(map: &Map<String, Value>, names: &HashSet<&str>) -> Check {
    let Some(Value::Object(config)) = map.get("toolConfig") else {
        return Ok(());
    };
    let known = [
        ("functionCallingConfig", Kind::Object),
        ("retrievalConfig", Kind::Object),
    ];
    keys("toolConfig", config, &known, Null::Absent)?;
    let Some(Value::Object(calling)) = config.get("functionCallingConfig") else {
        return Ok(());
    };
    let path = "toolConfig.functionCallingConfig";
    let known = [("mode", Kind::Text), ("allowedFunctionNames", Kind::Array)];
    keys(path, calling, &known, Null::Absent)?;
    let mode = calling.get("mode").and_then(Value::as_str).unwrap_or("AUTO");
    if !["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"].contains(&mode) {
        return fail(join(path, "mode"), "must be AUTO, ANY, NONE or VALIDATED");
    }
    let allowed = calling.get("allowedFunctionNames").and_then(Value::as_array);
    for name in allowed.into_iter().flatten() {
        if !matches!(mode, "ANY" | "VALIDATED") {
            return fail(
                join(path, "allowedFunctionNames"),
                "is only allowed with the mode ANY",
            );
        }
        if !name.as_str().is_some_and(|name| names.contains(name)) {
            return fail(
                join(path, "allowedFunctionNames"),
                format!("there is no function {name}"),
            );
        }
    }
    Ok(())
}

fn conversation(contents: &[Value]) -> Check {
    if contents.is_empty() {
        return fail("contents", "must not be an empty array");
    }
    // Names and ids of the calls that the next content must answer.
    let mut open: Vec<(String, Option<String>)> = Vec::new();
    let mut last = "";
    for (index, content) in contents.iter().enumerate() {
        let path = format!("contents[{index}]");
        let content = object(&path, content)?;
        keys(
            &path,
            content,
            &[("role", Kind::Text), ("parts", Kind::Array)],
            Null::Absent,
        )?;
        let role = content.get("role").and_then(Value::as_str).unwrap_or("user");
        if !matches!(role, "user" | "model" | "function") {
            return fail(join(&path, "role"), "must be user or model");
        }
        let (calls, responses) = parts(&path, content)?;
        let is_model = role == "model";
        if is_model && index == 0 {
            return fail(path, "a conversation starts with the user");
        }
        if is_model && !responses.is_empty() || !is_model && !calls.is_empty() {
            return fail(path, "calls belong to the model, and responses to the user");
        }
        answered(&path, &open, &responses)?;
        open = calls;
        last = if is_model { "model" } else { "user" };
    }
    if last == "model" {
        return fail("contents", "must end with a user turn or a function response");
    }
    Ok(())
}

/// Checks that the responses answer exactly the calls of the content before.
fn answered(path: &str, calls: &[(String, Option<String>)], responses: &[(String, Option<String>)]) -> Check {
    if calls.len() != responses.len() {
        return fail(
            path,
            format!(
                "the number of function responses ({}) must equal the number of function calls before ({})",
                responses.len(),
                calls.len()
            ),
        );
    }
    for (call, response) in calls.iter().zip(responses) {
        let same_id = call.1.is_none() || response.1.is_none() || call.1 == response.1;
        if call.0 != response.0 || !same_id {
            return fail(
                path,
                format!(
                    "the response of `{}` does not fit the call of `{}`",
                    response.0, call.0
                ),
            );
        }
    }
    Ok(())
}

/// Names and ids of calls and of responses.
type Named = Vec<(String, Option<String>)>;

fn parts(path: &str, content: &Map<String, Value>) -> Result<(Named, Named), super::Violation> {
    let (mut calls, mut responses) = (Vec::new(), Vec::new());
    let path = join(path, "parts");
    let Some(parts) = content.get("parts") else {
        return fail(path, "field required");
    };
    let parts = array(&path, parts)?;
    if parts.is_empty() {
        return fail(path, "must not be an empty array");
    }
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let part = object(&path, part)?;
        keys(&path, part, &PART, Null::Absent)?;
        if DATA.iter().filter(|key| part.contains_key(**key)).count() != 1 {
            return fail(path, format!("must have exactly one of {}", DATA.join(", ")));
        }
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        if let Some(signature) = signature
            && signature != FOREIGN_CALL
            && !is_gemini_signature(signature)
        {
            return fail(
                join(&path, "thoughtSignature"),
                "is not a signature of this model",
            );
        }
        let is_empty = part
            .get("text")
            .and_then(Value::as_str)
            .is_some_and(str::is_empty);
        if is_empty && signature.is_none() {
            return fail(join(&path, "text"), "must not be empty");
        }
        if let Some(Value::Object(data)) = part.get("inlineData") {
            inline(&join(&path, "inlineData"), data)?;
        }
        if let Some(Value::Object(call)) = part.get("functionCall") {
            calls.push(function(&join(&path, "functionCall"), call, "args")?);
        }
        if let Some(Value::Object(response)) = part.get("functionResponse") {
            let path = join(&path, "functionResponse");
            if !response.get("response").is_some_and(Value::is_object) {
                return fail(join(&path, "response"), "must be an object");
            }
            responses.push(function(&path, response, "response")?);
        }
    }
    Ok((calls, responses))
}

fn inline(path: &str, data: &Map<String, Value>) -> Check {
    let known = [
        ("mimeType", Kind::Text),
        ("data", Kind::Text),
        ("displayName", Kind::Text),
    ];
    keys(path, data, &known, Null::Absent)?;
    media_type_known(&join(path, "mimeType"), text(path, data, "mimeType")?)?;
    match base64(text(path, data, "data")?) {
        true => Ok(()),
        false => fail(join(path, "data"), "is not valid base64"),
    }
}

fn function(
    path: &str,
    function: &Map<String, Value>,
    content: &str,
) -> Result<(String, Option<String>), super::Violation> {
    let known = [("id", Kind::Text), ("name", Kind::Text), (content, Kind::Object)];
    keys(path, function, &known, Null::Absent)?;
    let name = text(path, function, "name")?;
    function_name(&join(path, "name"), name)?;
    let id = function.get("id").and_then(Value::as_str).map(str::to_owned);
    Ok((name.to_owned(), id))
}

fn function_name(path: &str, name: &str) -> Check {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts || name.len() > 64 || !word(&name.replace(['.', ':'], "_")) {
        return fail(
            path,
            "must start with a letter or an underscore and have at most 64 letters, digits, `_`, `.`, `:` and `-`",
        );
    }
    Ok(())
}

/// Keys whose values are the caller's own data.
const FREE: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
    "data",
];

/// Returns a request with every name in the form of the documents. The service accepts `inline_data` as well as
/// `inlineData`, and Google's own clients use both.
pub(crate) fn with_documented_names(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(with_documented_names).collect(),
        Value::Object(map) => {
            let renamed = map.into_iter().map(|(name, value)| {
                let name = camel(&name);
                let is_free = FREE.contains(&name.as_str());
                let value = if is_free {
                    value
                } else {
                    with_documented_names(value)
                };
                (name, value)
            });
            Value::Object(renamed.collect())
        }
        other => other,
    }
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}
