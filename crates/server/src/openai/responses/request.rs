//! A request of Responses.

use serde_json::{Map, Value, json};
use windlass_api::Part;

use crate::openai::MODEL;
use crate::openai::request::{image, told};
use crate::problem::Problem;

/// Fields that ask for something that a session does not do.
const REFUSED: &[(&str, &str)] = &[
    ("tools", "the agent uses its own tools"),
    ("background", "a request waits for its turn, or streams it"),
    ("conversation", "continue with `previous_response_id`"),
    ("prompt", "there are no stored prompts"),
];

/// A request.
pub(super) struct ResponseRequest {
    pub(super) model: String,
    /// Content of the last message.
    pub(super) parts: Vec<Part>,
    /// The messages before it, as one text.
    pub(super) before: Option<String>,
    pub(super) user: Option<String>,
    /// Response to continue after.
    pub(super) previous: Option<String>,
    pub(super) is_stream: bool,
    /// Fields that the answer repeats.
    pub(super) echo: Map<String, Value>,
}

impl ResponseRequest {
    /// Reads a request. Options of sampling are ignored.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Problem> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| Problem::field("body", error.to_string()))?;
        check_refused(&body)?;
        let model = body["model"].as_str().unwrap_or_default();
        if model != MODEL {
            let text = format!("there is no model `{model}`: the only one is `{MODEL}`");
            return Err(Problem::field("model", text));
        }
        let (mut parts, before) = input(&body["input"])?;
        if let Some(instructions) = body["instructions"]
            .as_str()
            .filter(|text| !text.trim().is_empty())
        {
            parts.insert(
                0,
                Part::text(format!("Instructions for this request:\n\n{instructions}\n")),
            );
        }
        let mut echo = Map::new();
        for field in ["instructions", "previous_response_id", "metadata", "user"] {
            echo.insert(field.to_owned(), body[field].clone());
        }
        if !body["metadata"].is_object() {
            echo.insert("metadata".to_owned(), json!({}));
        }
        Ok(Self {
            model: model.to_owned(),
            parts,
            before,
            user: body["user"].as_str().map(str::to_owned),
            previous: body["previous_response_id"].as_str().map(str::to_owned),
            is_stream: body["stream"] == true,
            echo,
        })
    }
}

fn check_refused(body: &Value) -> Result<(), Problem> {
    let refused =
        |field: &str, why: &str| Problem::field(field, format!("`{field}` is not supported: {why}"));
    for (field, why) in REFUSED {
        let value = &body[*field];
        let is_default = value.is_null() || value == false || value.as_array().is_some_and(Vec::is_empty);
        if !is_default {
            return Err(refused(field, why));
        }
    }
    let choice = &body["tool_choice"];
    if !choice.is_null() && choice != "auto" && choice != "none" {
        return Err(refused("tool_choice", "the agent uses its own tools"));
    }
    let format = &body["text"]["format"]["type"];
    if !format.is_null() && format != "text" {
        return Err(refused("text.format", "answers are text"));
    }
    Ok(())
}

/// Reads the input: a text, or messages, of which the last is the user's.
fn input(input: &Value) -> Result<(Vec<Part>, Option<String>), Problem> {
    if let Some(text) = input.as_str().filter(|text| !text.trim().is_empty()) {
        return Ok((vec![Part::text(text)], None));
    }
    let Some((last, before)) = input.as_array().and_then(|items| items.split_last()) else {
        return Err(Problem::field("input", "a text, or a list of messages"));
    };
    let place = format!("input[{}]", before.len());
    let kind = &last["type"];
    if !kind.is_null() && kind != "message" {
        let text = "the last item is a message: the agent runs its own tools";
        return Err(Problem::field(format!("{place}.type"), text));
    }
    if last["role"] != "user" {
        return Err(Problem::field(
            format!("{place}.role"),
            "the last message is the user's",
        ));
    }
    Ok((parts(&last["content"], &place)?, told(before)))
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
            Some("input_text") => Ok(Part::text(part["text"].as_str().unwrap_or_default())),
            Some("input_image") => image(part["image_url"].as_str().unwrap_or_default())
                .ok_or_else(|| Problem::field(field, "an image as `data:image/…;base64,…` in `image_url`")),
            _ => Err(Problem::field(
                format!("{field}.type"),
                "`input_text` or `input_image`",
            )),
        }
    };
    given.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SRV-5: fields of Responses that a session cannot honour are refused by name; others are ignored.
    #[test]
    fn unsupported_fields_are_named() {
        let cases = [
            (
                json!({ "temperature": 1, "tools": [], "tool_choice": "auto", "store": false }),
                "",
            ),
            (json!({ "text": { "format": { "type": "text" } } }), ""),
            (
                json!({ "input": [{ "role": "developer", "content": "x" }, { "role": "user", "content": "y" }] }),
                "",
            ),
            (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (
                json!({ "text": { "format": { "type": "json_schema" } } }),
                "text.format",
            ),
            (json!({ "background": true }), "background"),
            (json!({ "conversation": "conv_1" }), "conversation"),
            (json!({ "model": "gpt-5" }), "model"),
            (json!({ "input": [] }), "input"),
            (json!({ "input": " " }), "input"),
            (
                json!({ "input": [{ "role": "assistant", "content": "x" }] }),
                "input[0].role",
            ),
            (
                json!({ "input": [{ "type": "function_call_output", "call_id": "1", "output": "x" }] }),
                "input[0].type",
            ),
            (
                json!({ "input": [{ "role": "user", "content": [{ "type": "input_file" }] }] }),
                "input[0].content[0].type",
            ),
            (
                json!({ "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": "https://x" }] }] }),
                "input[0].content[0]",
            ),
        ];
        for (more, field) in cases {
            let mut body = json!({ "model": "windlass", "input": "hi" });
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let refused = ResponseRequest::parse(body.to_string().as_bytes()).err();
            let named = refused.and_then(|problem| problem.field.map(String::from));
            assert_eq!(named.unwrap_or_default(), field, "{more}");
        }
    }
}
