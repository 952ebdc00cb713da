//! A request of Chat Completions.

use serde_json::Value;
use windlass_api::{Binary, Part};

use crate::problem::Problem;
use crate::routes::files::is_sendable;

/// Fields that ask for something that a session does not do.
const REFUSED: &[(&str, &str)] = &[
    ("tools", "the agent uses its own tools"),
    ("tool_choice", "the agent uses its own tools"),
    ("functions", "the agent uses its own tools"),
    ("function_call", "the agent uses its own tools"),
    ("response_format", "answers are text"),
    ("audio", "answers are text"),
    ("logprobs", "there are none"),
];

/// A request.
pub(super) struct ChatRequest {
    pub(super) model: String,
    /// Content of the last message.
    pub(super) parts: Vec<Part>,
    /// The messages before it, as one text.
    pub(super) before: Option<String>,
    pub(super) user: Option<String>,
    pub(super) is_stream: bool,
    /// True if a stream ends with the number of tokens.
    pub(super) with_usage: bool,
}

impl ChatRequest {
    /// Reads a request. Options of sampling are ignored.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Problem> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| Problem::field("body", error.to_string()))?;
        for (field, why) in REFUSED {
            let value = &body[*field];
            let is_default = value.is_null()
                || value == false
                || value["type"] == "text"
                || value.as_array().is_some_and(Vec::is_empty)
                || (*field == "tool_choice" && value == "none");
            if !is_default {
                return Err(Problem::field(
                    *field,
                    format!("`{field}` is not supported: {why}"),
                ));
            }
        }
        if body["n"].as_u64().is_some_and(|n| n != 1) {
            return Err(Problem::field("n", "`n` is not supported: there is one answer"));
        }
        let model = body["model"].as_str().unwrap_or_default();
        if model != super::MODEL {
            let text = format!("there is no model `{model}`: the only one is `{}`", super::MODEL);
            return Err(Problem::field("model", text));
        }
        let messages = body["messages"].as_array();
        let Some((last, before)) = messages.and_then(|messages| messages.split_last()) else {
            return Err(Problem::field("messages", "a list with at least one message"));
        };
        let place = format!("messages[{}]", before.len());
        if last["role"] != "user" {
            return Err(Problem::field(
                format!("{place}.role"),
                "the last message is the user's",
            ));
        }
        Ok(Self {
            model: model.to_owned(),
            parts: parts(&last["content"], &place)?,
            before: told(before),
            user: body["user"].as_str().map(str::to_owned),
            is_stream: body["stream"] == true,
            with_usage: body["stream_options"]["include_usage"] == true,
        })
    }
}

/// Reads the content of a message: a text, or parts.
fn parts(content: &Value, place: &str) -> Result<Vec<Part>, Problem> {
    if let Some(text) = content.as_str().filter(|text| !text.trim().is_empty()) {
        return Ok(vec![Part::text(text)]);
    }
    let given = content.as_array().filter(|parts| !parts.is_empty());
    let given =
        given.ok_or_else(|| Problem::field(format!("{place}.content"), "a text, or a list of parts"))?;
    let part = |(number, part): (usize, &Value)| {
        let field = format!("{place}.content[{number}]");
        match part["type"].as_str() {
            Some("text") => Ok(Part::text(part["text"].as_str().unwrap_or_default())),
            Some("image_url") => image(part["image_url"]["url"].as_str().unwrap_or_default())
                .ok_or_else(|| Problem::field(field, "an image as `data:image/…;base64,…`")),
            _ => Err(Problem::field(format!("{field}.type"), "`text` or `image_url`")),
        }
    };
    given.iter().enumerate().map(part).collect()
}

/// Reads an image from a data URL. Nothing is fetched.
pub(super) fn image(url: &str) -> Option<Part> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_known = matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    let image = Binary {
        path: "image".to_owned(),
        mime: mime.to_owned(),
        data: data.to_owned(),
    };
    (is_known && is_sendable(&image)).then_some(Part::Binary(image))
}

/// Returns the earlier messages as one text.
pub(super) fn told(messages: &[Value]) -> Option<String> {
    let line = |message: &Value| {
        let role = message["role"].as_str()?;
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => return None,
        };
        Some(format!("{role}: {text}"))
    };
    let lines: Vec<String> = messages.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| format!("Earlier in this conversation:\n\n{}\n", lines.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SRV-5: fields that a session cannot honour are refused by name; options of sampling are ignored.
    #[test]
    fn unsupported_fields_are_named() {
        let request = |more: Value| {
            let mut body = json!({ "model": "windlass", "messages": [{ "role": "user", "content": "hi" }] });
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let field = ChatRequest::parse(body.to_string().as_bytes())
                .err()
                .and_then(|problem| problem.field.map(String::from));
            field.unwrap_or_default()
        };
        let cases = [
            (
                json!({ "temperature": 0.5, "max_tokens": 5, "tools": [], "n": 1 }),
                "",
            ),
            (json!({ "response_format": { "type": "text" } }), ""),
            (json!({ "tools": [{}] }), "tools"),
            (json!({ "tool_choice": "auto" }), "tool_choice"),
            (
                json!({ "response_format": { "type": "json_object" } }),
                "response_format",
            ),
            (json!({ "n": 2 }), "n"),
            (json!({ "model": "gpt-5" }), "model"),
            (json!({ "messages": [] }), "messages"),
            (
                json!({ "messages": [{ "role": "assistant", "content": "x" }] }),
                "messages[0].role",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [{ "type": "audio" }] }] }),
                "messages[0].content[0].type",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://x" } }] }] }),
                "messages[0].content[0]",
            ),
        ];
        for (more, field) in cases {
            assert_eq!(request(more.clone()), field, "{more}");
        }
    }
}
