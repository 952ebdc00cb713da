//! Requests to Responses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::message::{Role, ToolResult};
use windlass_core::provider::{Prefix, Request};
use windlass_core::tool::ToolSpec;

use crate::wire::content::{Content, contents, result_images, result_text, sent_role};
use crate::wire::encoder::{Encoder, Outgoing, choose_tool};
use crate::wire::json::{append_item, field, object_text, push, tool_name};

pub(crate) fn head(encoder: &Encoder, request: &Request) -> Vec<u8> {
    let mut out = b"{".to_vec();
    field(&mut out, "model", &encoder.model.id);
    field(&mut out, "stream", &true);
    // We store the log ourselves and the provider stores nothing, so its reasoning travels encrypted in the
    // items.
    field(&mut out, "store", &false);
    if let Some(most) = request.max_output {
        field(&mut out, "max_output_tokens", &most.max(1));
    }
    if let Some(effort) = encoder.reasoning {
        field(
            &mut out,
            "reasoning",
            &json!({"effort": effort.name(), "summary": "auto"}),
        );
    }
    if encoder.reasoning.is_some() || encoder.model.reasoning {
        field(&mut out, "include", &["reasoning.encrypted_content"]);
    }
    if encoder.quirks.cache_key {
        field(&mut out, "prompt_cache_key", request.session.as_str());
    }
    choose_tool(
        &mut out,
        request,
        "none",
        "required",
        |name| json!({"type": "function", "name": name}),
    );
    out
}

pub(crate) fn prefix(prefix: &Prefix) -> Vec<u8> {
    let mut out = Vec::new();
    if !prefix.system.trim().is_empty() {
        field(&mut out, "instructions", &prefix.system);
    }
    if !prefix.tools.is_empty() {
        field(&mut out, "tools", &tools(&prefix.tools));
    }
    out.extend_from_slice(b"\"input\":[");
    out
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<Tool<'_>> {
    let tools = tools.iter().map(|tool| Tool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.schema,
        // Strict mode refuses schemas with optional fields.
        strict: false,
    });
    tools.collect()
}

/// A tool definition on this wire.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

/// Encodes one message, which may become several items on this wire; empty if it has no content here.
pub(crate) fn message(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match outgoing.items {
        Some(items) => verbatim(&mut out, items, !outgoing.model.known || outgoing.model.reasoning),
        None => from_parts(&mut out, outgoing),
    }
    out
}

/// Returns the ids of the calls among the provider's own items.
pub(crate) fn item_calls(items: &[Box<RawValue>]) -> Vec<String> {
    let calls = items
        .iter()
        .map(|item| ItemHead::read(item))
        .filter(|item| item.r#type == "function_call");
    calls
        .filter_map(|item| item.call_id.map(Cow::into_owned))
        .collect()
}

/// Writes the provider's own items as they came, without reasoning that it would refuse: reasoning it stores
/// itself, reasoning that nothing follows, and all reasoning for a model that does not reason.
fn verbatim(out: &mut Vec<u8>, items: &[Box<RawValue>], reasons: bool) {
    let heads: Vec<ItemHead<'_>> = items.iter().map(|item| ItemHead::read(item)).collect();
    let last = heads.iter().rposition(|head| head.r#type != "reasoning");
    for (index, (item, head)) in items.iter().zip(&heads).enumerate() {
        let reasoning = head.r#type == "reasoning";
        let usable = reasons && head.encrypted_content.is_some() && Some(index) < last;
        if !reasoning || usable {
            append_item(out, item);
        }
    }
}

fn from_parts(out: &mut Vec<u8>, outgoing: &Outgoing<'_>) {
    let assistant = sent_role(outgoing.message) == Role::Assistant;
    let mut names = outgoing.names.namer();
    let images = outgoing.model.images;
    let mut blocks = Vec::new();
    for content in contents(outgoing.message, images) {
        match content {
            Content::Text(text) if assistant => blocks.push(Block::OutputText { text }),
            Content::Text(text) => blocks.push(Block::InputText { text }),
            Content::Image { mime, data } => blocks.push(carried(mime, data)),
            Content::ImageUrl { url, detail } => {
                let detail = detail.unwrap_or("auto");
                blocks.push(Block::InputImage {
                    image_url: Cow::Borrowed(url),
                    detail,
                });
            }
            Content::Call(call) => {
                // Items keep the order they were written in: text before the call goes first.
                push_message(out, assistant, &mut blocks);
                let call_id = names.name(call.id.as_str());
                let arguments = object_text(&call.input);
                push(
                    out,
                    &Item::FunctionCall {
                        call_id,
                        name: tool_name(&call.name),
                        arguments,
                    },
                );
            }
            Content::Result(result) => {
                push_message(out, assistant, &mut blocks);
                let call_id = names.name(result.call_id.as_str());
                let output = output(result, images);
                push(out, &Item::FunctionCallOutput { call_id, output });
            }
        }
    }
    push_message(out, assistant, &mut blocks);
}

fn output(result: &ToolResult, images: bool) -> Output<'_> {
    let text = result_text(result, images);
    let shown: Vec<Block<'_>> = result_images(result, images)
        .map(|image| carried(&image.mime, &image.data))
        .collect();
    if shown.is_empty() {
        return Output::Text(text);
    }
    let text = [Block::InputText { text }];
    Output::Blocks(text.into_iter().chain(shown).collect())
}

fn carried(mime: &str, data: &str) -> Block<'static> {
    Block::InputImage {
        image_url: Cow::Owned(format!("data:{mime};base64,{data}")),
        detail: "auto",
    }
}

fn push_message(out: &mut Vec<u8>, assistant: bool, blocks: &mut Vec<Block<'_>>) {
    let content = std::mem::take(blocks);
    if !content.is_empty() {
        let role = if assistant { "assistant" } else { "user" };
        push(out, &Item::Message { role, content });
    }
}

/// Fields of an item that decide how it is sent.
#[derive(Deserialize, Default)]
struct ItemHead<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    encrypted_content: Option<Cow<'a, str>>,
}

impl<'a> ItemHead<'a> {
    fn read(item: &'a RawValue) -> Self {
        serde_json::from_str(item.get()).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Block<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

/// Output of a tool: text alone, or text with images.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    OutputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: Cow<'a, str>,
        detail: &'a str,
    },
}
