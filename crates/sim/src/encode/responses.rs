//! The OpenAI Responses wire.

use serde_json::{Map, Value, json};

use super::{CREATED, Context, Frame, Part};
use crate::answer::{Answer, Stop, Thinking, fresh_id};
use crate::seal;
use crate::seen::offered;

pub(super) fn whole(context: &Context<'_>, answer: &Answer) -> Value {
    let items = items(context, answer);
    let output = items.into_iter().map(|item| item.done).collect();
    finished(context, answer, &fresh_id("resp_"), output)
}

/// Builds the `response.failed` event of a stream that breaks off.
pub(super) fn failed(context: &Context<'_>, message: &str, sequence: usize) -> Value {
    let mut response = envelope(context, &fresh_id("resp_"), "failed");
    response["error"] = json!({"code": "server_error", "message": message});
    json!({"type": "response.failed", "sequence_number": sequence, "response": response})
}

pub(super) fn frames(context: &Context<'_>, answer: &Answer) -> Vec<Frame> {
    let id = fresh_id("resp_");
    let mut stream = Stream::default();
    let opening = envelope(context, &id, "in_progress");
    stream.push("response.created", json!({"response": opening}));
    stream.push("response.in_progress", json!({"response": opening}));
    let mut output = Vec::new();
    for (index, item) in items(context, answer).into_iter().enumerate() {
        stream.push(
            "response.output_item.added",
            json!({"output_index": index, "item": item.added}),
        );
        stream.item(index, &item, answer);
        stream.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item.done}),
        );
        output.push(item.done);
    }
    let response = finished(context, answer, &id, output);
    let event = match answer.stop() {
        Stop::MaxTokens | Stop::ContextWindow => "response.incomplete",
        _ => "response.completed",
    };
    stream.part = Part::Terminal;
    stream.push(event, json!({"response": response}));
    stream.out
}

/// One output item: as announced, and complete.
struct Item {
    id: String,
    added: Value,
    done: Value,
    content: Content,
}

enum Content {
    Reasoning(Option<String>),
    Text(String),
    Refusal(String),
    Call(String),
    /// A call whose input is free text.
    Custom(String),
}

fn items(context: &Context<'_>, answer: &Answer) -> Vec<Item> {
    let mut items = Vec::new();
    for thought in &answer.thinking {
        items.push(reasoning_item(context, thought));
    }
    let status = match answer.stop() {
        Stop::MaxTokens | Stop::ContextWindow => "incomplete",
        _ => "completed",
    };
    if let Some(text) = &answer.text {
        items.push(message_item(text, answer.stop(), status));
    }
    for call in &answer.calls {
        let tool = offered(context.body, &call.tool);
        let (prefix, kind, key) = match tool.is_custom {
            true => ("ctc_", "custom_tool_call", "input"),
            false => ("fc_", "function_call", "arguments"),
        };
        let id = fresh_id(prefix);
        let call_id = call.id.clone().unwrap_or_else(|| fresh_id("call_"));
        let item = |status: &str, arguments: &str| {
            let mut item = json!({
                "id": id,
                "type": kind,
                "status": status,
                "call_id": call_id,
                "name": call.tool,
            });
            item[key] = json!(arguments);
            if let Some(namespace) = &tool.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        };
        let arguments = call.arguments.clone();
        items.push(Item {
            added: item("in_progress", ""),
            done: item(status, &call.arguments),
            content: match tool.is_custom {
                true => Content::Custom(arguments),
                false => Content::Call(arguments),
            },
            id,
        });
    }
    items
}

fn reasoning_item(context: &Context<'_>, thought: &Thinking) -> Item {
    let id = fresh_id("rs_");
    let wants_encrypted = context.body["include"]
        .as_array()
        .is_some_and(|include| include.iter().any(|v| v == "reasoning.encrypted_content"));
    let encrypted = wants_encrypted.then(|| seal::wrap(&thought.text));
    let summary = (!thought.redacted).then(|| thought.text.clone());
    let item = |summary: Value| {
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if let Some(encrypted) = &encrypted {
            item["encrypted_content"] = json!(encrypted);
        }
        item
    };
    let parts: Vec<Value> = summary.iter().map(|text| summary_part(text)).collect();
    Item {
        added: item(json!([])),
        done: item(Value::Array(parts)),
        content: Content::Reasoning(summary),
        id,
    }
}

fn message_item(text: &str, stop: Stop, status: &str) -> Item {
    let id = fresh_id("msg_");
    let item = |status: &str, content: Value| {
        json!({
            "id": id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        })
    };
    let (part, content) = if stop == Stop::Refusal {
        (refusal_part(text), Content::Refusal(text.to_owned()))
    } else {
        (text_part(text), Content::Text(text.to_owned()))
    };
    Item {
        added: item("in_progress", json!([])),
        done: item(status, json!([part])),
        content,
        id,
    }
}

fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn refusal_part(text: &str) -> Value {
    json!({"type": "refusal", "refusal": text})
}

struct Stream {
    out: Vec<Frame>,
    part: Part,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            out: Vec::new(),
            part: Part::Frame,
        }
    }
}

impl Stream {
    fn item(&mut self, index: usize, item: &Item, answer: &Answer) {
        let place = json!({"item_id": item.id, "output_index": index});
        match &item.content {
            Content::Reasoning(None) => {}
            Content::Reasoning(Some(text)) => self.summary(&place, text, answer),
            Content::Text(text) => {
                let place = with(&place, json!({"content_index": 0}));
                self.push(
                    "response.content_part.added",
                    with(&place, json!({"part": text_part("")})),
                );
                self.deltas("response.output_text.delta", text, answer, |piece| {
                    with(&place, json!({"delta": piece, "logprobs": []}))
                });
                self.push(
                    "response.output_text.done",
                    with(&place, json!({"text": text, "logprobs": []})),
                );
                self.push(
                    "response.content_part.done",
                    with(&place, json!({"part": text_part(text)})),
                );
            }
            Content::Refusal(text) => {
                let place = with(&place, json!({"content_index": 0}));
                self.push(
                    "response.content_part.added",
                    with(&place, json!({"part": refusal_part("")})),
                );
                self.deltas("response.refusal.delta", text, answer, |piece| {
                    with(&place, json!({"delta": piece}))
                });
                self.push("response.refusal.done", with(&place, json!({"refusal": text})));
                self.push(
                    "response.content_part.done",
                    with(&place, json!({"part": refusal_part(text)})),
                );
            }
            Content::Custom(input) => {
                self.deltas("response.custom_tool_call_input.delta", input, answer, |piece| {
                    with(&place, json!({"delta": piece}))
                });
                self.push(
                    "response.custom_tool_call_input.done",
                    with(&place, json!({"input": input})),
                );
            }
            Content::Call(arguments) => {
                let event = "response.function_call_arguments.delta";
                self.deltas(event, arguments, answer, |piece| {
                    with(&place, json!({"delta": piece}))
                });
                self.push(
                    "response.function_call_arguments.done",
                    with(&place, json!({"arguments": arguments, "name": item.done["name"]})),
                );
            }
        }
    }

    fn summary(&mut self, place: &Value, text: &str, answer: &Answer) {
        let place = with(place, json!({"summary_index": 0}));
        self.push(
            "response.reasoning_summary_part.added",
            with(&place, json!({"part": summary_part("")})),
        );
        let event = "response.reasoning_summary_text.delta";
        self.deltas(event, text, answer, |piece| with(&place, json!({"delta": piece})));
        self.push(
            "response.reasoning_summary_text.done",
            with(&place, json!({"text": text})),
        );
        self.push(
            "response.reasoning_summary_part.done",
            with(&place, json!({"part": summary_part(text)})),
        );
    }

    fn deltas(&mut self, event: &'static str, text: &str, answer: &Answer, body: impl Fn(&str) -> Value) {
        self.part = Part::Delta;
        for piece in answer.pieces.split(text) {
            self.push(event, body(&piece));
        }
        self.part = Part::Frame;
    }

    fn push(&mut self, event: &'static str, rest: Value) {
        let head = json!({"type": event, "sequence_number": self.out.len()});
        self.out.push(Frame {
            event: Some(event),
            data: with(&head, rest).to_string(),
            part: self.part,
        });
    }
}

/// Returns `base` with more keys.
fn with(base: &Value, more: Value) -> Value {
    let mut out = base.as_object().cloned().unwrap_or_else(Map::new);
    if let Value::Object(more) = more {
        out.extend(more);
    }
    Value::Object(out)
}

/// Builds a response without output that echoes the settings of the request.
fn envelope(context: &Context<'_>, id: &str, status: &str) -> Value {
    let body = context.body;
    let or = |key: &str, default: Value| match &body[key] {
        Value::Null => default,
        value => value.clone(),
    };
    json!({
        "id": id,
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": body["instructions"],
        "max_output_tokens": body["max_output_tokens"],
        "model": context.model,
        "output": [],
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": null,
        "reasoning": or("reasoning", json!({"effort": null, "summary": null})),
        "store": or("store", json!(true)),
        "temperature": or("temperature", json!(1.0)),
        "text": or("text", json!({"format": {"type": "text"}})),
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": or("tools", json!([])),
        "top_p": or("top_p", json!(1.0)),
        "truncation": "disabled",
        "usage": null,
        "metadata": or("metadata", json!({})),
    })
}

fn finished(context: &Context<'_>, answer: &Answer, id: &str, output: Vec<Value>) -> Value {
    let mut response = match answer.stop() {
        Stop::MaxTokens | Stop::ContextWindow => {
            let mut response = envelope(context, id, "incomplete");
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            response
        }
        _ => envelope(context, id, "completed"),
    };
    let usage = &context.usage;
    response["output"] = Value::Array(output);
    response["usage"] = json!({
        "input_tokens": usage.prompt(),
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt() + usage.output,
    });
    response
}
