//! Gemini's own wire: `generateContent` and `streamGenerateContent`.

use serde_json::{Map, Value, json};

use super::{Context, Frame, Part};
use crate::answer::{Answer, AnswerCall, Stop, fresh_id};
use crate::seal;

pub(super) fn whole(context: &Context<'_>, answer: &Answer) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for thought in readable(answer) {
        parts.push(json!({"text": thought, "thought": true}));
    }
    if let Some(text) = &answer.text {
        parts.push(json!({"text": text}));
    }
    parts.extend(closing(answer));
    response(context, &fresh_id(""), parts, Some(finish_reason(answer)))
}

pub(super) fn frames(context: &Context<'_>, answer: &Answer) -> Vec<Frame> {
    let id = fresh_id("");
    let mut parts: Vec<Value> = Vec::new();
    for thought in readable(answer) {
        let pieces = answer.pieces.split(thought);
        parts.extend(pieces.iter().map(|piece| json!({"text": piece, "thought": true})));
    }
    if let Some(text) = &answer.text {
        let pieces = answer.pieces.split(text);
        parts.extend(pieces.iter().map(|piece| json!({"text": piece})));
    }
    parts.extend(closing(answer));
    let mut out: Vec<Frame> = parts
        .into_iter()
        .map(|part| frame(Part::Delta, &response(context, &id, vec![part], None)))
        .collect();
    let last = response(context, &id, Vec::new(), Some(finish_reason(answer)));
    out.push(frame(Part::Terminal, &last));
    out
}

fn frame(part: Part, data: &Value) -> Frame {
    Frame {
        event: None,
        data: data.to_string(),
        part,
    }
}

/// Returns the thoughts that a client may read.
fn readable(answer: &Answer) -> impl Iterator<Item = &str> {
    let thoughts = answer.thinking.iter().filter(|thought| !thought.redacted);
    thoughts.map(|thought| thought.text.as_str())
}

/// Returns the calls, the first with the signature of the thinking before it. Without calls, an empty text carries it.
fn closing(answer: &Answer) -> Vec<Value> {
    let thinking: Vec<&str> = answer
        .thinking
        .iter()
        .map(|thought| thought.text.as_str())
        .collect();
    let mut signature = (!thinking.is_empty()).then(|| sign(&thinking.join("\n")));
    let mut parts: Vec<Value> = answer.calls.iter().map(call).collect();
    if parts.is_empty() && signature.is_some() {
        parts.push(json!({"text": ""}));
    }
    if let (Some(Value::Object(first)), Some(signature)) = (parts.first_mut(), signature.take()) {
        first.insert("thoughtSignature".to_owned(), json!(signature));
    }
    parts
}

fn call(call: &AnswerCall) -> Value {
    let args = serde_json::from_str(&call.arguments)
        .ok()
        .filter(Value::is_object);
    // This wire has objects only, so broken arguments cannot be sent as they are.
    let args = args.unwrap_or_else(|| json!({"_raw": call.arguments}));
    let id = call.id.clone().unwrap_or_else(|| fresh_id("call_"));
    json!({"functionCall": {"id": id, "name": call.tool, "args": args}})
}

fn response(context: &Context<'_>, id: &str, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = Map::new();
    let mut content = json!({"role": "model"});
    if !parts.is_empty() {
        content["parts"] = Value::Array(parts);
    }
    candidate.insert("content".to_owned(), content);
    if let Some(reason) = finish {
        candidate.insert("finishReason".to_owned(), json!(reason));
    }
    candidate.insert("index".to_owned(), json!(0));
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(context, finish.is_some()),
        "modelVersion": context.model,
        "responseId": id,
    })
}

fn usage(context: &Context<'_>, is_last: bool) -> Value {
    let usage = &context.usage;
    let mut counts = json!({"promptTokenCount": usage.prompt()});
    if usage.cache_read > 0 {
        counts["cachedContentTokenCount"] = json!(usage.cache_read);
    }
    if is_last {
        counts["candidatesTokenCount"] = json!(usage.output - usage.reasoning);
        if usage.reasoning > 0 {
            counts["thoughtsTokenCount"] = json!(usage.reasoning);
        }
    }
    let written = if is_last { usage.output } else { 0 };
    counts["totalTokenCount"] = json!(usage.prompt() + written);
    counts
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop() {
        Stop::MaxTokens | Stop::ContextWindow => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence | Stop::PauseTurn => "STOP",
    }
}

/// Signs thinking. Signatures on this wire are base64, which clients decode and encode again: letters and digits in
/// groups of four survive that unchanged.
fn sign(text: &str) -> String {
    let padded = if text.len() % 2 == 1 {
        format!("{text} ")
    } else {
        text.to_owned()
    };
    seal::wrap(&padded).replace('.', "")
}

/// Returns true for a signature that [`sign`] made.
pub(crate) fn is_signed(signature: &str) -> bool {
    let parts = signature
        .strip_prefix("sim1")
        .and_then(|rest| rest.split_at_checked(32));
    parts.is_some_and(|(hash, hidden)| seal::unwrap(&format!("sim1.{hash}.{hidden}")).is_some())
}
