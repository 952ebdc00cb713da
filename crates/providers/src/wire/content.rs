//! Selects the content of a message that every wire sends: empty parts are dropped, and placeholders stand in
//! for parts that cannot be sent.

use std::borrow::Cow;

use windlass_core::message::{Binary, Message, Part, Role, ToolCall, ToolResult};

/// Text of an empty tool result, because no wire accepts empty content.
const NO_OUTPUT: &str = "(no output)";

/// One piece of content to send.
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    /// An image sent inline, in base64.
    Image {
        mime: &'a str,
        data: &'a str,
    },
    /// An image that the provider fetches.
    ImageUrl {
        url: &'a str,
        detail: Option<&'a str>,
    },
    Call(&'a ToolCall),
    Result(&'a ToolResult),
}

/// Returns the contents of a message that its role may have. They stay in order, except that results come
/// first: every wire wants results right after their calls.
pub(crate) fn contents(message: &Message, images: bool) -> Vec<Content<'_>> {
    let assistant = sent_role(message) == Role::Assistant;
    let said = message.parts.iter().filter_map(|part| content(part, images));
    let allowed = said.filter(|content| match content {
        Content::Text(_) => true,
        Content::Call(_) => assistant,
        Content::Image { .. } | Content::ImageUrl { .. } | Content::Result(_) => !assistant,
    });
    let (mut ordered, others): (Vec<_>, Vec<_>) =
        allowed.partition(|content| matches!(content, Content::Result(_)));
    ordered.extend(others);
    ordered
}

/// Returns the role a message is sent under. A summary is always a user message: it replaces a conversation,
/// and a conversation that starts with an assistant message is invalid.
pub(crate) fn sent_role(message: &Message) -> Role {
    let summary = message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Compaction(_)));
    match message.role {
        Role::Assistant if summary && message.calls().next().is_none() => Role::User,
        Role::System => Role::User,
        role => role,
    }
}

/// Returns the text of a result for the model. Images that are not sent are named in it.
pub(crate) fn result_text(result: &ToolResult, images: bool) -> Cow<'_, str> {
    let said = if is_blank(&result.content) {
        NO_OUTPUT
    } else {
        &result.content
    };
    let mut text = Cow::Borrowed(said);
    for image in result.images.iter().filter(|image| !goes(result, image, images)) {
        let note = format!("\n[image not shown: {} ({})]", image.path, image.mime);
        text.to_mut().push_str(&note);
    }
    text
}

/// Returns the images sent with a result.
pub(crate) fn result_images(result: &ToolResult, images: bool) -> impl Iterator<Item = &Binary> {
    result
        .images
        .iter()
        .filter(move |image| goes(result, image, images))
}

/// Returns true if an image of a result is sent. A failed result is text only: one of the wires refuses
/// anything else.
fn goes(result: &ToolResult, image: &Binary, images: bool) -> bool {
    images && !result.is_error && is_image(&image.mime) && is_base64(&image.data)
}

fn content(part: &Part, images: bool) -> Option<Content<'_>> {
    match part {
        Part::Text(text) => shown(Cow::Borrowed(&text.text)),
        Part::Context(fragment) if is_blank(&fragment.text) => None,
        Part::Context(fragment) => shown(Cow::Owned(fragment.encoded())),
        Part::Compressed(compressed) => shown(Cow::Borrowed(&compressed.text)),
        Part::Compaction(summary) if !is_blank(&summary.summary) => shown(Cow::Owned(format!(
            "Summary of the conversation so far:\n{}",
            summary.summary
        ))),
        Part::ToolCall(call) => Some(Content::Call(call)),
        Part::ToolResult(result) => Some(Content::Result(result)),
        Part::Binary(file) if images && is_image(&file.mime) && is_base64(&file.data) => {
            Some(Content::Image {
                mime: &file.mime,
                data: &file.data,
            })
        }
        Part::Binary(file) => shown(Cow::Owned(format!(
            "[attached file not shown: {} ({})]",
            file.path, file.mime
        ))),
        Part::ImageUrl(image) => Some(match data_url(&image.url) {
            Some((mime, data)) if images && is_image(mime) && is_base64(data) => {
                Content::Image { mime, data }
            }
            Some((mime, _)) => Content::Text(Cow::Owned(format!("[image not shown ({mime})]"))),
            None if images && is_web(&image.url) => Content::ImageUrl {
                url: &image.url,
                detail: image.detail.as_deref(),
            },
            None => Content::Text(Cow::Owned(format!("[image not shown: {}]", image.url))),
        }),
        // Reasoning belongs to the provider that wrote it and travels only in the message's origin.
        Part::Reasoning(_) | Part::Finish(_) | Part::Compaction(_) | Part::Unknown(_) => None,
    }
}

fn shown(text: Cow<'_, str>) -> Option<Content<'_>> {
    (!is_blank(&text)).then_some(Content::Text(text))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn is_image(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Returns true for complete base64 with padding; providers refuse a request with anything else.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(letters)
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
