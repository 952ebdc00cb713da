//! The OpenAI Chat Completions wire, with the deviations of servers that imitate it.

use serde_json::{Map, Value, json};

use super::{CREATED, Context, Frame, Part};
use crate::answer::{Answer, AnswerCall, Stop, fresh_id};
use crate::fault::Deviation;

pub(super) fn whole(context: &Context<'_>, answer: &Answer) -> Value {
    let mut message = json!({
        "role": "assistant",
        "content": answer.text,
        "refusal": null,
    });
    if let Some(reasoning) = reasoning(answer) {
        message["reasoning_content"] = json!(reasoning);
    }
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().map(whole_call).collect();
        message["tool_calls"] = Value::Array(calls);
    }
    let mut out = json!({
        "id": fresh_id("chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED,
        "model": context.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(answer),
        }],
    });
    if !answer.fault.deviates(Deviation::UsageMissing) {
        out["usage"] = usage(context);
    }
    out
}

pub(super) fn frames(context: &Context<'_>, answer: &Answer) -> Vec<Frame> {
    let mut stream = Stream {
        context,
        answer,
        id: fresh_id("chatcmpl-"),
        wants_usage: context.body["stream_options"]["include_usage"]
            .as_bool()
            .unwrap_or(false)
            && !answer.fault.deviates(Deviation::UsageMissing),
        out: Vec::new(),
    };
    let opening = match (&answer.text, stream.deviates(Deviation::NullContent)) {
        (Some(_), false) => json!({"role": "assistant", "content": ""}),
        _ => json!({"role": "assistant", "content": null}),
    };
    stream.push(Part::Frame, opening, None);
    for piece in pieces(answer, reasoning(answer).as_deref()) {
        stream.push(Part::Delta, json!({"reasoning_content": piece}), None);
    }
    for piece in pieces(answer, answer.text.as_deref()) {
        stream.push(Part::Delta, json!({"content": piece}), None);
    }
    for (index, call) in answer.calls.iter().enumerate() {
        stream.call(index, call);
    }
    stream.push(Part::Terminal, json!({}), Some(finish_reason(answer)));
    stream.finish()
}

struct Stream<'run> {
    context: &'run Context<'run>,
    answer: &'run Answer,
    id: String,
    wants_usage: bool,
    out: Vec<Frame>,
}

impl Stream<'_> {
    fn deviates(&self, deviation: Deviation) -> bool {
        self.answer.fault.deviates(deviation)
    }

    fn call(&mut self, index: usize, call: &AnswerCall) {
        let id = call_id(call);
        let start = json!({"name": call.tool, "arguments": ""});
        self.fragment(index, Some(&id), start);
        for piece in self.answer.pieces.split(&call.arguments) {
            let id = self.deviates(Deviation::IdPerFragment).then(|| fresh_id("call_"));
            self.fragment(index, id.as_deref(), json!({"arguments": piece}));
        }
    }

    fn fragment(&mut self, index: usize, id: Option<&str>, function: Value) {
        let mut fragment = Map::new();
        if !self.deviates(Deviation::MissingIndex) {
            let shared = self.deviates(Deviation::SharedIndex);
            fragment.insert("index".to_owned(), json!(if shared { 0 } else { index }));
        }
        if let Some(id) = id {
            fragment.insert("id".to_owned(), json!(id));
            fragment.insert("type".to_owned(), json!("function"));
        }
        fragment.insert("function".to_owned(), function);
        let mut delta = json!({"tool_calls": [fragment]});
        if self.deviates(Deviation::NullContent) {
            delta["content"] = Value::Null;
        }
        self.push(Part::Delta, delta, None);
    }

    fn push(&mut self, part: Part, delta: Value, finish: Option<&str>) {
        let choice = json!({
            "index": 0,
            "delta": delta,
            "logprobs": null,
            "finish_reason": finish,
        });
        self.chunk(part, json!([choice]), Value::Null);
    }

    fn chunk(&mut self, part: Part, choices: Value, usage: Value) {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.context.model,
            "choices": choices,
        });
        if self.wants_usage {
            chunk["usage"] = usage;
        }
        self.out.push(Frame {
            event: None,
            data: chunk.to_string(),
            part,
        });
    }

    fn finish(mut self) -> Vec<Frame> {
        if self.wants_usage {
            self.chunk(Part::Terminal, json!([]), usage(self.context));
        }
        if !self.deviates(Deviation::NoDone) {
            self.out.push(Frame {
                event: None,
                data: "[DONE]".to_owned(),
                part: Part::Terminal,
            });
        }
        self.out
    }
}

fn whole_call(call: &AnswerCall) -> Value {
    json!({
        "id": call_id(call),
        "type": "function",
        "function": {"name": call.tool, "arguments": call.arguments},
    })
}

fn call_id(call: &AnswerCall) -> String {
    call.id.clone().unwrap_or_else(|| fresh_id("call_"))
}

fn pieces(answer: &Answer, text: Option<&str>) -> Vec<String> {
    text.map(|text| answer.pieces.split(text)).unwrap_or_default()
}

/// Returns the readable reasoning, in the form of servers with open reasoning.
fn reasoning(answer: &Answer) -> Option<String> {
    let thoughts: Vec<&str> = answer
        .thinking
        .iter()
        .filter(|thought| !thought.redacted)
        .map(|thought| thought.text.as_str())
        .collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n"))
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop() {
        Stop::ToolUse if answer.fault.deviates(Deviation::FinishStopWithCalls) => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens | Stop::ContextWindow => "length",
        Stop::Refusal => "content_filter",
        Stop::EndTurn | Stop::StopSequence | Stop::PauseTurn => "stop",
    }
}

fn usage(context: &Context<'_>) -> Value {
    let usage = &context.usage;
    json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt() + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    })
}
