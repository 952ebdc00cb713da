//! Content blocks: a prompt becomes parts of a message, and parts become blocks.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_api::{Binary, Part};

use windlass_jsonrpc::RpcError;

/// A block of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
        #[serde(default)]
        uri: Option<String>,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
}

/// Reads a prompt. Linked files are named, so that the model can read them with its tools; embedded ones are
/// included.
pub(crate) fn parts(prompt: &[Value]) -> Result<Vec<Part>, RpcError> {
    let mut parts = Vec::new();
    for (number, block) in prompt.iter().enumerate() {
        let block = Block::deserialize(block)
            .map_err(|error| RpcError::invalid_params(format!("prompt[{number}]: {error}")))?;
        match block {
            Block::Text { text } => push_text(&mut parts, &text),
            Block::Image {
                data,
                mime_type: mime,
                uri,
            } => {
                if !mime.starts_with("image/") {
                    let text = format!("prompt[{number}].mimeType: `{mime}` is not an image type");
                    return Err(RpcError::invalid_params(text));
                }
                let path = uri.as_deref().map(readable).unwrap_or_else(|| "image".to_owned());
                parts.push(Part::Binary(Binary { path, mime, data }));
            }
            Block::ResourceLink { uri, name } => push_text(&mut parts, &mention(&uri, &name)),
            Block::Resource { resource } => embedded(&mut parts, resource),
        }
    }
    Ok(parts)
}

/// Text blocks belong to one sentence: an editor splits a prompt where a file is mentioned.
fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(last)) => last.text.push_str(text),
        _ => parts.push(Part::text(text)),
    }
}

fn mention(uri: &str, name: &str) -> String {
    let path = readable(uri);
    if path == uri && !name.is_empty() && !uri.ends_with(name) {
        return format!("[{name}]({uri})");
    }
    path
}

/// Returns the path of a file URI, and any other URI unchanged.
fn readable(uri: &str) -> String {
    let Some(path) = uri.strip_prefix("file://") else {
        return uri.to_owned();
    };
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        plain.push(code.unwrap_or(*first));
        rest = if code.is_some() {
            tail.get(2..).unwrap_or_default()
        } else {
            tail
        };
    }
    String::from_utf8(plain).unwrap_or_else(|_| path.to_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn embedded(parts: &mut Vec<Part>, resource: Resource) {
    let path = readable(&resource.uri);
    let mime = resource.mime_type.unwrap_or_default();
    match (resource.text, resource.blob) {
        (Some(text), _) => {
            push_text(parts, &path);
            let fence = fence(&text);
            parts.push(Part::text(format!(
                "Content of {path}:\n{fence}\n{text}\n{fence}"
            )));
        }
        (None, Some(data)) if mime.starts_with("image/") => {
            parts.push(Part::Binary(Binary { path, mime, data }));
        }
        (None, _) => push_text(parts, &path),
    }
}

/// Returns a fence that the text does not contain.
pub(crate) fn fence(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for sign in text.chars() {
        run = if sign == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}

/// Returns a text block.
pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns the block of a part of a user's message; `None` if it has none.
pub(crate) fn block(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(text_block(&text.text)),
        Part::Binary(binary) if binary.mime.starts_with("image/") => {
            Some(json!({ "type": "image", "data": binary.data, "mimeType": binary.mime }))
        }
        Part::Binary(binary) => Some(text_block(&binary.path)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(prompt: Value) -> Vec<String> {
        let blocks = prompt.as_array().cloned().unwrap_or_default();
        let parts = parts(&blocks).unwrap();
        let shown = |part: &Part| match part {
            Part::Text(text) => text.text.clone(),
            Part::Binary(binary) => format!("<{} {}>", binary.mime, binary.path),
            other => panic!("{other:?}"),
        };
        parts.iter().map(shown).collect()
    }

    /// ACP-1 (PROMPT-003, PROMPTCAP): links become paths within the sentence, embedded files their content.
    #[test]
    fn blocks_become_parts() {
        let prompt = json!([
            { "type": "text", "text": "look at " },
            { "type": "resource_link", "uri": "file:///a%20b/c.rs", "name": "c.rs" },
            { "type": "text", "text": " and " },
            { "type": "resource_link", "uri": "https://example.org/x", "name": "docs" },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///d.md", "text": "a ``` b", "mimeType": "text/markdown" } },
        ]);
        let expected = [
            "look at /a b/c.rs and [docs](https://example.org/x)",
            "<image/png image>",
            "/d.md",
            "Content of /d.md:\n````\na ``` b\n````",
        ];
        assert_eq!(text(prompt), expected);
    }

    #[test]
    fn bad_blocks_are_named() {
        let message = |block: Value| {
            parts(&[json!({ "type": "text", "text": "" }), block])
                .unwrap_err()
                .message
        };
        assert!(message(json!({ "type": "audio" })).starts_with("prompt[1]: unknown variant `audio`"));
        assert!(message(json!({ "type": "text" })).contains("missing field `text`"));
        let image = json!({ "type": "image", "data": "", "mimeType": "text/plain" });
        assert!(message(image).contains("prompt[1].mimeType"));
    }
}
