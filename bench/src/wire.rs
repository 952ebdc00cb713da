//! Replies of a model, as server-sent events of each wire.

use clap::ValueEnum;
use serde_json::{Value, json};

/// Wire formats to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
}

impl Wire {
    pub(crate) const ALL: [Self; 3] = [Self::Anthropic, Self::Chat, Self::Responses];

    /// Returns the name on our own command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// Returns the Windlass preset for this wire.
    pub(crate) const fn preset(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai-chat",
            Self::Responses => "openai",
        }
    }

    /// Returns the events of a reply that runs a command.
    pub(crate) fn call(self, number: usize, command: &str) -> Vec<Vec<u8>> {
        self.call_of(number, "bash", &json!({ "command": command }))
    }

    /// Returns the events of a reply that calls a tool.
    pub(crate) fn call_of(self, number: usize, tool: &str, arguments: &Value) -> Vec<Vec<u8>> {
        let arguments = arguments.to_string();
        let id = format!("call_{number:08}");
        match self {
            Self::Anthropic => {
                let start = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
                let (head, tail) = arguments.split_at(arguments.len() / 2);
                let deltas =
                    ["", head, tail].map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
                anthropic(&start, &deltas, "tool_use")
            }
            Self::Chat => {
                let call = json!({"index": 0, "id": id, "type": "function", "function": {"name": tool, "arguments": ""}});
                let rest = json!({"index": 0, "function": {"arguments": arguments}});
                chat(
                    &[json!({"tool_calls": [call]}), json!({"tool_calls": [rest]})],
                    "tool_calls",
                )
            }
            Self::Responses => {
                let item = |arguments: &str| {
                    json!({"id": format!("fc_{number:08}"), "type": "function_call", "status": "completed",
                           "call_id": id, "name": tool, "arguments": arguments})
                };
                let delta = json!({"type": "response.function_call_arguments.delta", "output_index": 0,
                                   "item_id": format!("fc_{number:08}"), "delta": arguments});
                responses(&item(""), &[delta], &item(&arguments))
            }
        }
    }

    /// Returns the events of a reply with these text deltas.
    pub(crate) fn text(self, words: &[String]) -> Vec<Vec<u8>> {
        match self {
            Self::Anthropic => {
                let delta = |word: &String| json!({"type": "text_delta", "text": word});
                let deltas: Vec<Value> = words.iter().map(delta).collect();
                anthropic(&json!({"type": "text", "text": ""}), &deltas, "end_turn")
            }
            Self::Chat => {
                let deltas: Vec<Value> = words.iter().map(|word| json!({"content": word})).collect();
                chat(&deltas, "stop")
            }
            Self::Responses => {
                let item = |content: Value| {
                    json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                           "content": content})
                };
                let delta = |word: &String| {
                    json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                           "content_index": 0, "delta": word})
                };
                let deltas: Vec<Value> = words.iter().map(delta).collect();
                let part = json!({"type": "output_text", "text": words.concat(), "annotations": []});
                responses(&item(json!([])), &deltas, &item(json!([part])))
            }
        }
    }
}

/// Returns this many deltas of one word.
pub(crate) fn words(pieces: usize) -> Vec<String> {
    (0..pieces.max(1))
        .map(|number| format!("word{} ", number % 1_000))
        .collect()
}

/// Last word of a [`talk`].
pub(crate) const LAST_WORD: &str = "THEEND";
/// Number of words in a paragraph.
const PARAGRAPH: usize = 60;

/// Like [`words`], in paragraphs and with its own last word.
pub(crate) fn talk(pieces: usize) -> Vec<String> {
    let mut words = words(pieces);
    for word in words.iter_mut().skip(PARAGRAPH - 1).step_by(PARAGRAPH) {
        word.push_str("\n\n");
    }
    words.push(format!("\n\n{LAST_WORD}"));
    words
}

/// Returns the command of a call. It differs each time, because a model that repeats itself is stopped.
pub(crate) fn command(number: usize) -> String {
    format!("echo {number}")
}

/// Like [`command`], but it writes a file.
pub(crate) fn writing_command(number: usize) -> String {
    format!("echo {number} > written{}.txt", number % 7)
}

/// Returns the arguments of a search without results, different for each call.
pub(crate) fn search(number: usize) -> Value {
    json!({ "pattern": format!("none{number}") })
}

/// Returns the arguments of a call that starts a sub-agent.
pub(crate) fn task(number: usize) -> Value {
    json!({ "task": format!("job {number}") })
}

/// Returns the number of the last call in a request.
pub(crate) fn last_call(body: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"call_";
    let found = body.windows(MARK.len()).rposition(|part| part == MARK)?;
    let digits = body.get(found + MARK.len()..)?.iter();
    let digits: Vec<u8> = digits.copied().take_while(u8::is_ascii_digit).collect();
    String::from_utf8(digits).ok()?.parse().ok()
}

fn named(data: &Value) -> Vec<u8> {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

fn anthropic(block: &Value, deltas: &[Value], stop: &str) -> Vec<Vec<u8>> {
    let usage = json!({"input_tokens": 100, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3_000,
                       "output_tokens": 30});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                         "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut events = vec![
        named(&json!({"type": "message_start", "message": message})),
        named(&json!({"type": "content_block_start", "index": 0, "content_block": block})),
    ];
    let delta = |delta| named(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    events.extend(deltas.iter().map(delta));
    events.push(named(&json!({"type": "content_block_stop", "index": 0})));
    let end = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(named(
        &json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 30}}),
    ));
    events.push(named(&json!({"type": "message_stop"})));
    events
}

fn chat(deltas: &[Value], finish: &str) -> Vec<Vec<u8>> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5",
                           "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n").into_bytes()
    };
    let choice =
        |delta: &Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let opening = json!({"role": "assistant", "content": null});
    let mut events = vec![chunk(choice(&opening, Value::Null), Value::Null)];
    events.extend(
        deltas
            .iter()
            .map(|delta| chunk(choice(delta, Value::Null), Value::Null)),
    );
    events.push(chunk(choice(&json!({}), json!(finish)), Value::Null));
    let usage = json!({"prompt_tokens": 3_300, "completion_tokens": 30, "total_tokens": 3_330,
                       "prompt_tokens_details": {"cached_tokens": 3_000}});
    events.push(chunk(json!([]), usage));
    events.push(b"data: [DONE]\n\n".to_vec());
    events
}

fn responses(added: &Value, deltas: &[Value], done: &Value) -> Vec<Vec<u8>> {
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt-5",
               "output": output, "usage": usage})
    };
    let opening = response("in_progress", json!([]), Value::Null);
    let usage = json!({"input_tokens": 3_300, "input_tokens_details": {"cached_tokens": 3_000}, "output_tokens": 30,
                       "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 3_330});
    let mut events = vec![
        named(&json!({"type": "response.created", "response": opening})),
        named(&json!({"type": "response.output_item.added", "output_index": 0, "item": added})),
    ];
    events.extend(deltas.iter().map(named));
    events.push(named(
        &json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
    ));
    let closing = response("completed", json!([done]), usage);
    events.push(named(&json!({"type": "response.completed", "response": closing})));
    events
}
