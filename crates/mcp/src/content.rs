//! Results of calls as text and images for the model.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};
use windlass_core::message::Binary;
use windlass_core::tool::ToolOutput;

/// Maximum number of images of a result.
const MAX_IMAGES: usize = 8;
/// Maximum size of an image, in bytes of base64.
const MAX_IMAGE: usize = 7_000_000;

/// Returns a text of a server without control characters and hidden ones, with at most `limit` characters.
pub fn plain(text: &str, limit: usize) -> String {
    let is_shown = |sign: &char| {
        let code = u32::from(*sign);
        let is_control = sign.is_control() && !matches!(sign, '\n' | '\t');
        // Marks of direction, tags, and other characters that nobody sees.
        let is_hidden =
            matches!(code, 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f);
        !is_control && !is_hidden
    };
    let mut shown: String = text.chars().filter(is_shown).take(limit).collect();
    if text.chars().filter(is_shown).nth(limit).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns a text of a server on one line.
pub(crate) fn line(text: &str, limit: usize) -> String {
    let text = plain(text, limit);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the output of a call. `problem` says what is wrong with its structured content.
pub(crate) fn output(
    server: &str,
    tool: &str,
    result: CallToolResult,
    problem: Option<String>,
) -> ToolOutput {
    let mut parts = Vec::new();
    let mut images = Vec::new();
    for block in result.content {
        parts.push(part(block, &mut images));
    }
    let text = parts.join("\n");
    let structured = result.structured_content;
    // Servers repeat structured content as text, for clients that do not know it.
    let is_repeated = |value: &Value| {
        let same = |part: &String| serde_json::from_str::<Value>(part).is_ok_and(|parsed| parsed == *value);
        parts.iter().any(same)
    };
    let content = match &structured {
        Some(value) if text.trim().is_empty() => value.to_string(),
        Some(value) if !is_repeated(value) => format!("{text}\n{value}"),
        _ => text,
    };
    ToolOutput {
        content: if content.is_empty() {
            "(no output)".to_owned()
        } else {
            content
        },
        images,
        failed: result.is_error == Some(true),
        details: Some(json!({ "server": server, "tool": tool, "structured": structured })),
        warning: problem,
        ..ToolOutput::default()
    }
}

fn part(block: ContentBlock, images: &mut Vec<Binary>) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => picture(image.mime_type, image.data, "image", images),
        ContentBlock::Audio(audio) => {
            format!("[audio, {}, {}]", line(&audio.mime_type, 80), size(&audio.data))
        }
        ContentBlock::Resource(resource) => contents(resource.resource, images),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.as_deref().unwrap_or_default();
            format!(
                "[resource {} {}] {}",
                line(&link.name, 200),
                line(&link.uri, 1_000),
                line(about, 500)
            )
        }
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Returns the text of a resource.
pub(crate) fn contents(contents: ResourceContents, images: &mut Vec<Binary>) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            format!("[resource {}]\n{text}", line(&uri, 1_000))
        }
        ResourceContents::BlobResourceContents {
            uri, mime_type, blob, ..
        } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            picture(mime, blob, &line(&uri, 1_000), images)
        }
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn picture(mime: String, data: String, name: &str, images: &mut Vec<Binary>) -> String {
    let note = format!("[{name}, {}, {}]", line(&mime, 80), size(&data));
    let is_image = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&mime.as_str());
    let is_valid = data.len() <= MAX_IMAGE && STANDARD.decode(&data).is_ok();
    if is_image && is_valid && images.len() < MAX_IMAGES {
        images.push(Binary {
            path: name.to_owned(),
            mime,
            data,
        });
    }
    note
}

fn size(data: &str) -> String {
    windlass_core::text::size(data.len() as u64 / 4 * 3)
}
