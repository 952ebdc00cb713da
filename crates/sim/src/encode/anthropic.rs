//! The Anthropic Messages wire.

use serde_json::{Map, Value, json};

use super::{Context, Frame, Part};
use crate::answer::{Answer, Stop, fresh_id};
use crate::seal;

pub(super) fn whole(context: &Context<'_>, answer: &Answer) -> Value {
    let mut message = envelope(context);
    message["content"] = Value::Array(blocks(answer).into_iter().map(|block| block.whole).collect());
    message["stop_reason"] = json!(stop_reason(answer));
    message["stop_sequence"] = stop_sequence(context, answer);
    message["usage"] = usage(context, context.usage.output);
    message
}

pub(super) fn frames(context: &Context<'_>, answer: &Answer) -> Vec<Frame> {
    let mut out = Vec::new();
    push(
        &mut out,
        Part::Frame,
        "message_start",
        json!({"message": envelope(context)}),
    );
    for (index, block) in blocks(answer).into_iter().enumerate() {
        push(
            &mut out,
            Part::Frame,
            "content_block_start",
            json!({"index": index, "content_block": block.start}),
        );
        let pings = if index == 0 { 1 + answer.fault.pings } else { 0 };
        for _ in 0..pings {
            push(&mut out, Part::Frame, "ping", json!({}));
        }
        for delta in block.deltas(answer) {
            push(
                &mut out,
                Part::Delta,
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            );
        }
        push(
            &mut out,
            Part::Frame,
            "content_block_stop",
            json!({"index": index}),
        );
    }
    let delta = json!({
        "stop_reason": stop_reason(answer),
        "stop_sequence": stop_sequence(context, answer),
    });
    push(
        &mut out,
        Part::Terminal,
        "message_delta",
        json!({"delta": delta, "usage": usage(context, context.usage.output)}),
    );
    push(&mut out, Part::Terminal, "message_stop", json!({}));
    out
}

/// One content block: complete, as it starts in a stream, and its deltas.
struct Block {
    whole: Value,
    start: Value,
    delta: Delta,
}

enum Delta {
    Text(String),
    Thinking { text: String, signature: String },
    Input(String),
    None,
}

impl Block {
    fn deltas(&self, answer: &Answer) -> Vec<Value> {
        let pieces = |text: &str| answer.pieces.split(text).into_iter();
        match &self.delta {
            Delta::Text(text) => pieces(text)
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
            Delta::Thinking { text, signature } => pieces(text)
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .chain([json!({"type": "signature_delta", "signature": signature})])
                .collect(),
            // The real service starts with an empty fragment; clients must not take it for the complete
            // input.
            Delta::Input(text) => std::iter::once(String::new())
                .chain(pieces(text))
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
            Delta::None => Vec::new(),
        }
    }
}

fn blocks(answer: &Answer) -> Vec<Block> {
    let mut blocks = Vec::new();
    for thought in &answer.thinking {
        blocks.push(if thought.redacted {
            let block = json!({"type": "redacted_thinking", "data": seal::wrap(&thought.text)});
            Block {
                whole: block.clone(),
                start: block,
                delta: Delta::None,
            }
        } else {
            let text = thought.text.clone();
            let signature = seal::sign(&text);
            Block {
                whole: json!({"type": "thinking", "thinking": text, "signature": signature}),
                start: json!({"type": "thinking", "thinking": "", "signature": ""}),
                delta: Delta::Thinking { text, signature },
            }
        });
    }
    if let Some(text) = &answer.text {
        blocks.push(Block {
            whole: json!({"type": "text", "text": text}),
            start: json!({"type": "text", "text": ""}),
            delta: Delta::Text(text.clone()),
        });
    }
    for call in &answer.calls {
        let id = call.id.clone().unwrap_or_else(|| fresh_id("toolu_"));
        // A complete message cannot carry broken JSON; a stream can, and that is where it occurs.
        let input: Value = serde_json::from_str(&call.arguments)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| Value::Object(Map::new()));
        blocks.push(Block {
            whole: json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}),
            start: json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}}),
            delta: Delta::Input(call.arguments.clone()),
        });
    }
    blocks
}

fn push(out: &mut Vec<Frame>, part: Part, event: &'static str, rest: Value) {
    let mut data = json!({"type": event});
    if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
        data.extend(rest);
    }
    out.push(Frame {
        event: Some(event),
        data: data.to_string(),
        part,
    });
}

fn envelope(context: &Context<'_>) -> Value {
    json!({
        "id": fresh_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": context.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(context, 1),
    })
}

fn usage(context: &Context<'_>, output: u64) -> Value {
    let usage = &context.usage;
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": output,
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    let stop = answer.stop();
    Stop::NAMES
        .iter()
        .find(|(_, known)| *known == stop)
        .map_or("end_turn", |(name, _)| name)
}

fn stop_sequence(context: &Context<'_>, answer: &Answer) -> Value {
    match answer.stop() {
        Stop::StopSequence => context.body["stop_sequences"][0].clone(),
        _ => Value::Null,
    }
}
