//! The rules for single content blocks.

use serde_json::{Map, Value};

use crate::seal;
use crate::validate::fields::{
    Check, Kind, Null, array, base64, fail, join, keys, media_type_known, not_blank, object, text, tool_name,
    word,
};

/// Blocks of tools that the service itself runs. They are accepted without a closer check.
const SERVER_BLOCKS: [&str; 9] = [
    "search_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
];

pub(super) fn check(path: &str, role: &str, block: &Value) -> Check {
    let map = object(path, block)?;
    let kind = text(path, map, "type")?;
    let owner = match kind {
        "tool_use" | "thinking" | "redacted_thinking" => "assistant",
        "tool_result" | "image" | "document" => "user",
        _ => role,
    };
    if owner != role {
        return fail(
            path,
            format!("`{kind}` blocks may only appear in {owner} messages"),
        );
    }
    match kind {
        "text" => text_block(path, map),
        "image" => image(path, map),
        "document" => document(path, map),
        "thinking" => thinking(path, map),
        "redacted_thinking" => redacted(path, map),
        "tool_use" => tool_use(path, map),
        "tool_result" => tool_result(path, map),
        other if SERVER_BLOCKS.contains(&other) => Ok(()),
        other => fail(join(path, "type"), format!("there is no block type `{other}`")),
    }
}

pub(super) fn text_block(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("text", Kind::Text),
        ("cache_control", Kind::Object),
        ("citations", Kind::Array),
    ];
    keys(path, map, &known, Null::Refused)?;
    let Some(text) = map.get("text").and_then(Value::as_str) else {
        return fail(join(path, "text"), "field required");
    };
    if text.is_empty() && map.contains_key("cache_control") {
        return fail(path, "cache_control cannot be set for empty text blocks");
    }
    not_blank(&join(path, "text"), text)?;
    cache_control(path, map)
}

fn image(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("source", Kind::Object),
        ("cache_control", Kind::Object),
    ];
    keys(path, map, &known, Null::Refused)?;
    source(&join(path, "source"), map, |path, media_type| {
        media_type_known(path, media_type)
    })?;
    cache_control(path, map)
}

fn document(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("source", Kind::Object),
        ("title", Kind::Text),
        ("context", Kind::Text),
        ("citations", Kind::Object),
        ("cache_control", Kind::Object),
    ];
    keys(path, map, &known, Null::Refused)?;
    source(&join(path, "source"), map, |path, media_type| {
        if media_type == "application/pdf" {
            Ok(())
        } else {
            fail(path, "must be application/pdf")
        }
    })?;
    cache_control(path, map)
}

fn source(path: &str, map: &Map<String, Value>, media_type: impl Fn(&str, &str) -> Check) -> Check {
    let Some(source) = map.get("source") else {
        return fail(path, "field required");
    };
    let source = object(path, source)?;
    match text(path, source, "type")? {
        "base64" => {
            media_type(&join(path, "media_type"), text(path, source, "media_type")?)?;
            if base64(text(path, source, "data")?) {
                Ok(())
            } else {
                fail(join(path, "data"), "is not valid base64")
            }
        }
        "url" => text(path, source, "url").map(drop),
        "file" => text(path, source, "file_id").map(drop),
        "text" | "content" => Ok(()),
        _ => fail(join(path, "type"), "must be base64, url or file"),
    }
}

fn thinking(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("thinking", Kind::Text),
        ("signature", Kind::Text),
    ];
    no_cache_control(path, map)?;
    keys(path, map, &known, Null::Refused)?;
    let signature = text(path, map, "signature")?;
    let Some(thought) = map.get("thinking").and_then(Value::as_str) else {
        return fail(join(path, "thinking"), "field required");
    };
    if seal::verify(thought, signature) {
        Ok(())
    } else {
        fail(
            join(path, "signature"),
            "invalid signature in thinking block: thinking blocks cannot be modified",
        )
    }
}

fn redacted(path: &str, map: &Map<String, Value>) -> Check {
    no_cache_control(path, map)?;
    let known = [("type", Kind::Text), ("data", Kind::Text)];
    keys(path, map, &known, Null::Refused)?;
    match seal::unwrap(text(path, map, "data")?) {
        Some(_) => Ok(()),
        None => fail(
            join(path, "data"),
            "invalid data in redacted_thinking block: thinking blocks cannot be modified",
        ),
    }
}

fn tool_use(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("id", Kind::Text),
        ("name", Kind::Text),
        ("input", Kind::Object),
        ("cache_control", Kind::Object),
        ("caller", Kind::Object),
    ];
    keys(path, map, &known, Null::Refused)?;
    call_id(&join(path, "id"), text(path, map, "id")?)?;
    tool_name(&join(path, "name"), text(path, map, "name")?)?;
    if !map.contains_key("input") {
        return fail(join(path, "input"), "field required");
    }
    cache_control(path, map)
}

fn tool_result(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("tool_use_id", Kind::Text),
        ("content", Kind::TextOrArray),
        ("is_error", Kind::Bool),
        ("cache_control", Kind::Object),
    ];
    keys(path, map, &known, Null::Refused)?;
    call_id(&join(path, "tool_use_id"), text(path, map, "tool_use_id")?)?;
    cache_control(path, map)?;
    let Some(content @ Value::Array(_)) = map.get("content") else {
        return Ok(());
    };
    let path = join(path, "content");
    let is_error = map.get("is_error") == Some(&Value::Bool(true));
    for (index, block) in array(&path, content)?.iter().enumerate() {
        let path = format!("{path}.{index}");
        let map = object(&path, block)?;
        match text(&path, map, "type")? {
            "text" => text_block(&path, map)?,
            _ if is_error => return fail(path, "an error result may only contain text"),
            "image" => image(&path, map)?,
            "document" => document(&path, map)?,
            "search_result" | "tool_reference" => {}
            _ => return fail(join(&path, "type"), "is not allowed in a tool result"),
        }
    }
    Ok(())
}

fn call_id(path: &str, id: &str) -> Check {
    if word(id) {
        Ok(())
    } else {
        fail(path, "must match ^[a-zA-Z0-9_-]+$")
    }
}

fn cache_control(path: &str, map: &Map<String, Value>) -> Check {
    let Some(marker) = map.get("cache_control") else {
        return Ok(());
    };
    let path = join(path, "cache_control");
    let marker = object(&path, marker)?;
    let known = [("type", Kind::Text), ("ttl", Kind::Text)];
    keys(&path, marker, &known, Null::Refused)?;
    if text(&path, marker, "type")? != "ephemeral" {
        return fail(join(&path, "type"), "must be \"ephemeral\"");
    }
    match marker.get("ttl").and_then(Value::as_str) {
        None | Some("5m" | "1h") => Ok(()),
        Some(_) => fail(join(&path, "ttl"), "must be 5m or 1h"),
    }
}

fn no_cache_control(path: &str, map: &Map<String, Value>) -> Check {
    if map.contains_key("cache_control") {
        return fail(path, "cache_control is not allowed on thinking blocks");
    }
    Ok(())
}
