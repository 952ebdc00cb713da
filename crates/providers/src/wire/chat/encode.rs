//! Requests to Chat Completions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::message::Role;
use windlass_core::provider::{Prefix, Request};
use windlass_core::tool::ToolSpec;

use crate::wire::content::{Content, contents, result_images, result_text, sent_role};
use crate::wire::encoder::{Encoder, Outgoing, choose_tool};
use crate::wire::json::{append, append_item, field, object_text, push, tool_name};
use crate::wire::quirks::MaxTokensField;

pub(crate) fn head(encoder: &Encoder, request: &Request) -> Vec<u8> {
    let mut out = b"{".to_vec();
    field(&mut out, "model", &encoder.model.id);
    field(&mut out, "stream", &true);
    if !encoder.quirks.no_stream_options {
        field(&mut out, "stream_options", &json!({"include_usage": true}));
    }
    if let Some(most) = request.max_output {
        let name = match encoder.quirks.max_tokens {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        };
        field(&mut out, name, &most.max(1));
    }
    if let Some(effort) = encoder.reasoning {
        field(&mut out, "reasoning_effort", effort.name());
    }
    if encoder.quirks.cache_key {
        field(&mut out, "prompt_cache_key", request.session.as_str());
    }
    choose_tool(&mut out, request, "none", "required", |name| {
        match encoder.quirks.plain_tool_choice {
            // Only that tool is offered.
            true => "required".into(),
            false => json!({"type": "function", "function": {"name": name}}),
        }
    });
    out
}

pub(crate) fn prefix(prefix: &Prefix) -> Vec<u8> {
    let mut out = Vec::new();
    if !prefix.tools.is_empty() {
        field(&mut out, "tools", &tools(&prefix.tools));
    }
    out.extend_from_slice(b"\"messages\":[");
    if !prefix.system.trim().is_empty() {
        append(
            &mut out,
            &Plain {
                role: "system",
                content: &prefix.system,
            },
        );
    }
    out
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<Tool<'_>> {
    let tools = tools.iter().map(|tool| Tool {
        r#type: "function",
        function: Described {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.schema,
        },
    });
    tools.collect()
}

/// A tool definition on this wire.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    r#type: &'static str,
    function: Described<'a>,
}

#[derive(Serialize)]
struct Described<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Encodes one message, which may become several on this wire; empty if it has no content here.
pub(crate) fn message(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(items) = outgoing.items {
        for item in items {
            append_item(&mut out, item);
        }
        return out;
    }
    match sent_role(outgoing.message) {
        Role::Assistant => assistant(&mut out, outgoing),
        Role::User | Role::Tool | Role::System => user(&mut out, outgoing),
    }
    out
}

/// Returns the ids of the calls in the provider's own message.
pub(crate) fn item_calls(items: &[Box<RawValue>]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Item {
        tool_calls: Option<Vec<Call>>,
    }
    #[derive(Deserialize)]
    struct Call {
        id: String,
    }
    let parsed = items
        .iter()
        .filter_map(|item| serde_json::from_str::<Item>(item.get()).ok());
    parsed
        .filter_map(|item| item.tool_calls)
        .flatten()
        .map(|call| call.id)
        .collect()
}

fn assistant(out: &mut Vec<u8>, outgoing: &Outgoing<'_>) {
    let mut names = outgoing.names.namer();
    let mut texts: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    for content in contents(outgoing.message, outgoing.model.images) {
        match content {
            Content::Text(text) => texts.push(text.into_owned()),
            Content::Call(call) => calls.push(Call {
                id: names.name(call.id.as_str()).into_owned(),
                r#type: "function",
                function: Function {
                    name: tool_name(&call.name),
                    arguments: object_text(&call.input).into_owned(),
                },
            }),
            Content::Image { .. } | Content::ImageUrl { .. } | Content::Result(_) => {}
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return;
    }
    let content = (!texts.is_empty()).then(|| texts.join("\n"));
    push(
        out,
        &Assistant {
            role: "assistant",
            content,
            tool_calls: calls,
        },
    );
}

/// Encodes a user message. Each result becomes a message of its own, and results come first. A result can
/// only be text on this wire, so its images follow in a user message, each under its name.
fn user(out: &mut Vec<u8>, outgoing: &Outgoing<'_>) {
    let mut names = outgoing.names.namer();
    let images = outgoing.model.images;
    let mut blocks = Vec::new();
    for content in contents(outgoing.message, images) {
        match content {
            Content::Text(text) => blocks.push(Block::Text {
                text: text.into_owned(),
            }),
            Content::Image { mime, data } => blocks.push(carried(mime, data)),
            Content::ImageUrl { url, detail } => {
                blocks.push(Block::ImageUrl {
                    image_url: ImageUrl {
                        url: url.to_owned(),
                        detail,
                    },
                });
            }
            Content::Result(result) => {
                let tool_call_id = &names.name(result.call_id.as_str());
                push(
                    out,
                    &ToolMessage {
                        role: "tool",
                        tool_call_id,
                        content: &result_text(result, images),
                    },
                );
                for image in result_images(result, images) {
                    let text = format!("[image from {}: {}]", result.name, image.path);
                    blocks.push(Block::Text { text });
                    blocks.push(carried(&image.mime, &image.data));
                }
            }
            Content::Call(_) => {}
        }
    }
    if blocks.is_empty() {
        return;
    }
    let texts = blocks.iter().map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ImageUrl { .. } => None,
    });
    // Many servers accept text content only as a string.
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => push(
            out,
            &Plain {
                role: "user",
                content: &texts.join("\n"),
            },
        ),
        None => push(
            out,
            &User {
                role: "user",
                content: blocks,
            },
        ),
    }
}

fn carried(mime: &str, data: &str) -> Block<'static> {
    let url = format!("data:{mime};base64,{data}");
    Block::ImageUrl {
        image_url: ImageUrl { url, detail: None },
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct User<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct Assistant<'a> {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: String,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: String },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}
