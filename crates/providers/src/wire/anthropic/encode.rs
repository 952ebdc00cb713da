//! Requests to Anthropic Messages.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::message::{Binary, Role};
use windlass_core::provider::{Prefix, Request, ToolChoice};
use windlass_core::tool::ToolSpec;

use crate::wire::content::{Content, contents, result_images, result_text, sent_role};
use crate::wire::encoder::{Encoder, Outgoing, choose_tool};
use crate::wire::json::{append_item, field, object_text, push, tool_name};

/// Asks the provider to cache everything up to and including this block.
pub(crate) const MARKER: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// End of every message piece: of its last block, of its list, of the message. The marker goes before it.
const PIECE_END: &[u8] = b"}]}";

/// Reply length requested by default. Longer replies are rare, and asking for more blocks the account's
/// output allowance.
const DEFAULT_OUTPUT: u64 = 32_000;

/// Smallest thinking budget the API accepts.
const LEAST_BUDGET: u64 = 1024;

pub(crate) fn head(encoder: &Encoder, request: &Request) -> Vec<u8> {
    let max_tokens = request
        .max_output
        .unwrap_or(encoder.model.max_output.min(DEFAULT_OUTPUT))
        .max(1);
    let mut out = b"{".to_vec();
    field(&mut out, "model", &encoder.model.id);
    field(&mut out, "max_tokens", &max_tokens);
    field(&mut out, "stream", &true);
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    if let Some(effort) = encoder.reasoning.filter(|_| !forced) {
        // The budget counts against `max_tokens` and must leave room for the answer.
        let budget = effort.budget().min(max_tokens.saturating_sub(LEAST_BUDGET));
        if budget >= LEAST_BUDGET {
            field(
                &mut out,
                "thinking",
                &json!({"type": "enabled", "budget_tokens": budget}),
            );
        }
    }
    let (none, any) = (json!({"type": "none"}), json!({"type": "any"}));
    choose_tool(
        &mut out,
        request,
        none,
        any,
        |name| json!({"type": "tool", "name": name}),
    );
    out
}

pub(crate) fn prefix(prefix: &Prefix) -> Vec<u8> {
    let mut out = Vec::new();
    if !prefix.tools.is_empty() {
        let mut tools = tools(&prefix.tools);
        if let Some(last) = tools.last_mut() {
            last.cache_control = Some(CacheControl { r#type: "ephemeral" });
        }
        field(&mut out, "tools", &tools);
    }
    if !prefix.system.trim().is_empty() {
        let mark = Some(CacheControl { r#type: "ephemeral" });
        field(
            &mut out,
            "system",
            &[SystemBlock {
                r#type: "text",
                text: &prefix.system,
                cache_control: mark,
            }],
        );
    }
    out.extend_from_slice(b"\"messages\":[");
    out
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<Tool<'_>> {
    let tools = tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.schema,
        cache_control: None,
    });
    tools.collect()
}

/// Encodes one message; empty if the message has no content on this wire.
pub(crate) fn message(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let mut content = Vec::new();
    match outgoing.items {
        Some(items) => {
            // The API refuses a reply that ends in thinking, and a truncated reply may end that way.
            let last = items.iter().rposition(|item| !ItemHead::read(item).is_thinking());
            for item in items.iter().take(last.map_or(0, |last| last + 1)) {
                append_item(&mut content, item);
            }
        }
        None => {
            let mut names = outgoing.names.namer();
            for part in contents(outgoing.message, outgoing.model.images) {
                append_block(&mut content, part, outgoing.model.images, &mut |id| {
                    names.name(id)
                });
            }
        }
    }
    if content.is_empty() {
        return content;
    }
    let role = match sent_role(outgoing.message) {
        Role::Assistant => "assistant",
        Role::User | Role::Tool | Role::System => "user",
    };
    let mut out = format!("{{\"role\":\"{role}\",\"content\":[").into_bytes();
    out.append(&mut content);
    out.extend_from_slice(b"]}");
    out
}

/// Returns the pieces that carry a marker: the last one, so that this request is cached, and the last one of
/// the previous request, so that its cache entry is found. Only user pieces, which never end in a thinking
/// block.
pub(crate) fn breakpoints(pieces: &[Bytes]) -> Vec<usize> {
    let is_user = |index: &usize| {
        pieces
            .get(*index)
            .is_some_and(|piece| piece.starts_with(b"{\"role\":\"user\"") && piece.ends_with(PIECE_END))
    };
    let last = pieces.len().checked_sub(1);
    let reply = pieces
        .iter()
        .rposition(|piece| piece.starts_with(b"{\"role\":\"assistant\""));
    let previous = reply.and_then(|reply| reply.checked_sub(1));
    let mut marked: Vec<usize> = previous.into_iter().chain(last).filter(is_user).collect();
    marked.dedup();
    marked
}

/// Appends a piece with the marker in its last block.
pub(crate) fn put_marked(body: &mut BytesMut, piece: &Bytes) {
    let splice = piece.len().saturating_sub(PIECE_END.len());
    let (start, end) = piece.split_at(splice);
    body.put_slice(start);
    body.put_slice(MARKER);
    body.put_slice(end);
}

/// Removes trailing blanks from a reply in last place; `None` if it has none. The API refuses them there, and
/// only there, so the stored bytes stay unchanged.
pub(crate) fn without_trailing_blank(piece: &Bytes) -> Option<Bytes> {
    if !piece.starts_with(b"{\"role\":\"assistant\"") {
        return None;
    }
    let mut message: Value = serde_json::from_slice(piece).ok()?;
    let block = message.get_mut("content")?.as_array_mut()?.last_mut()?;
    let text = block.get("text")?.as_str()?;
    let trimmed = text.trim_end();
    if trimmed.len() == text.len() {
        return None;
    }
    let trimmed = Value::String(trimmed.to_owned());
    *block.get_mut("text")? = trimmed;
    serde_json::to_vec(&message).ok().map(Bytes::from)
}

/// Returns the ids of the calls among the provider's own items.
pub(crate) fn item_calls(items: &[Box<RawValue>]) -> Vec<String> {
    let calls = items
        .iter()
        .map(|item| ItemHead::read(item))
        .filter(|item| item.r#type == "tool_use");
    calls.filter_map(|item| item.id.map(Cow::into_owned)).collect()
}

fn append_block<'a>(
    out: &mut Vec<u8>,
    content: Content<'a>,
    images: bool,
    name: &mut impl FnMut(&'a str) -> Cow<'a, str>,
) {
    match content {
        Content::Text(text) => push(out, &Block::Text { text: &text }),
        Content::Image { mime, data } => {
            push(
                out,
                &Block::Image {
                    source: Source::Base64 {
                        media_type: mime,
                        data,
                    },
                },
            );
        }
        Content::ImageUrl { url, .. } => push(
            out,
            &Block::Image {
                source: Source::Url { url },
            },
        ),
        Content::Call(call) => {
            let input = object_text(&call.input);
            // `object_text` always gives JSON; if it ever does not, the call still needs some value.
            let input = serde_json::from_str::<&RawValue>(&input).unwrap_or(RawValue::NULL);
            push(
                out,
                &Block::ToolUse {
                    id: &name(call.id.as_str()),
                    name: &tool_name(&call.name),
                    input,
                },
            );
        }
        Content::Result(result) => {
            let tool_use_id = &name(result.call_id.as_str());
            let text = result_text(result, images);
            let shown: Vec<Block<'_>> = result_images(result, images).map(carried).collect();
            let content = if shown.is_empty() {
                Answer::Text(&text)
            } else {
                let text = [Block::Text { text: &text }];
                Answer::Blocks(text.into_iter().chain(shown).collect())
            };
            push(
                out,
                &Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error: result.is_error,
                },
            );
        }
    }
}

fn carried(image: &Binary) -> Block<'_> {
    let source = Source::Base64 {
        media_type: &image.mime,
        data: &image.data,
    };
    Block::Image { source }
}

/// Fields of an item that decide how it is sent.
#[derive(Deserialize, Default)]
struct ItemHead<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

impl<'a> ItemHead<'a> {
    fn read(item: &'a RawValue) -> Self {
        serde_json::from_str(item.get()).unwrap_or_default()
    }

    fn is_thinking(&self) -> bool {
        matches!(&*self.r#type, "thinking" | "redacted_thinking")
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Answer<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Output of a tool: text alone, or text with images.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// A tool definition on this wire.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}
