//! Messages as JSON, in the form of the conventions. Only with the user's consent.

use serde_json::{Value, json};
use windlass_core::message::{Message, Part, Role};

use super::{Redact, turn::finish_name};

/// Returns messages as one JSON text, without keys.
pub(super) fn messages<'a>(messages: impl IntoIterator<Item = &'a Message>, redact: Redact) -> String {
    let list: Vec<Value> = messages.into_iter().map(message).collect();
    redact(&Value::from(list).to_string())
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    };
    let parts: Vec<Value> = message.parts.iter().filter_map(part).collect();
    let finish = message.parts.iter().find_map(|part| match part {
        Part::Finish(finish) => Some(finish_name(finish.reason)),
        _ => None,
    });
    match finish {
        Some(finish) => json!({"role": role, "parts": parts, "finish_reason": finish}),
        None => json!({"role": role, "parts": parts}),
    }
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => json!({"type": "text", "content": text.text}),
        Part::Context(fragment) => json!({"type": "text", "content": fragment.text}),
        Part::Compaction(compaction) => json!({"type": "text", "content": compaction.summary}),
        Part::Compressed(compressed) => json!({"type": "text", "content": compressed.text}),
        Part::Reasoning(reasoning) => json!({"type": "reasoning", "content": reasoning.text}),
        Part::ToolCall(call) => {
            let arguments = serde_json::from_str(&call.input).unwrap_or(Value::from(call.input.as_str()));
            json!({"type": "tool_call", "id": call.id.as_str(), "name": call.name, "arguments": arguments})
        }
        Part::ToolResult(result) => {
            json!({"type": "tool_call_response", "id": result.call_id.as_str(), "response": result.content})
        }
        // The bytes stay here.
        Part::Binary(file) => json!({"type": "blob", "mime_type": file.mime, "content": ""}),
        Part::ImageUrl(image) if image.url.starts_with("data:") => json!({"type": "blob", "content": ""}),
        Part::ImageUrl(image) => json!({"type": "uri", "modality": "image", "uri": image.url}),
        Part::Finish(_) | Part::Unknown(_) => return None,
    })
}
