//! Replies of Anthropic Messages.

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent, StopReason};

use crate::failure;
use crate::wire::Wire;
use crate::wire::draft::{At, Draft};
use crate::wire::ids::CallIds;
use crate::wire::json::{Fields, ObjectWriter, if_readable, object_text, token_count, tool_name};
use crate::wire::reply::{Decode, EventError};

/// Assembles one reply from its events.
#[derive(Debug)]
pub(crate) struct Decoder {
    draft: Draft,
    blocks: Vec<Block>,
    stop: Option<StopReason>,
    over: bool,
}

/// A content block: its start, and everything added since.
#[derive(Debug)]
struct Block {
    index: u64,
    start: Box<RawValue>,
    kind: Kind,
    citations: Vec<Box<RawValue>>,
    /// True until the event that ends the block.
    is_open: bool,
}

#[derive(Debug)]
enum Kind {
    Text(At),
    Thinking {
        at: At,
        signature: String,
    },
    ToolUse {
        at: At,
    },
    /// A block that this version does not know or does not read, stored as it came.
    Opaque {
        input: String,
    },
}

impl Decoder {
    pub(crate) fn new(provider: &str, ids: CallIds) -> Self {
        Self {
            draft: Draft::new(Wire::Anthropic, provider, ids),
            blocks: Vec::new(),
            stop: None,
            over: false,
        }
    }
}

impl Decode for Decoder {
    fn is_over(&self) -> bool {
        self.over
    }

    fn event(&mut self, data: &str, events: &mut Vec<ProviderEvent>) -> Result<(), EventError> {
        let unreadable = |_| EventError::Unreadable(data.to_owned());
        let event: Event<'_> = serde_json::from_str(data).map_err(unreadable)?;
        match &*event.r#type {
            "message_start" => {
                if let Some(message) = event.message {
                    self.draft.model = message.model.unwrap_or_default();
                    self.count(message.usage);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    let index = event.index.unwrap_or_default();
                    if self
                        .blocks
                        .iter()
                        .any(|block| block.is_open && block.index == index)
                    {
                        return Err(EventError::Failed(failure::ambiguous(index)));
                    }
                    self.start(index, block, events);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.index.unwrap_or_default(), delta, events);
                }
            }
            "content_block_stop" => self.close(event.index.unwrap_or_default(), events),
            "message_delta" => {
                self.stop = event
                    .delta
                    .and_then(|delta| delta.stop_reason)
                    .map(stop_reason)
                    .or(self.stop);
                self.count(event.usage);
            }
            "message_stop" => self.over = true,
            "error" => return Err(EventError::Failed(failure::from_event(data))),
            // `ping`, and any event added later.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, events: &mut Vec<ProviderEvent>) -> Result<(), ProviderError> {
        let message: Start<'_> = serde_json::from_str(body).map_err(|_| failure::not_a_reply(body))?;
        let (Some(content), Some(reason)) = (message.content, message.stop_reason) else {
            return Err(failure::not_a_reply(body));
        };
        self.draft.model = message.model.unwrap_or_default();
        self.count(message.usage);
        for (block, index) in content.into_iter().zip(0..) {
            self.start(index, block, events);
            self.close(index, events);
        }
        self.stop = Some(stop_reason(reason));
        self.over = true;
        Ok(())
    }

    fn complete(&mut self, _: &mut Vec<ProviderEvent>) -> Completion {
        let items = self.blocks.iter().filter_map(|block| self.item(block)).collect();
        self.draft.complete(self.stop, items)
    }
}

impl Decoder {
    fn start(&mut self, index: u64, raw: &RawValue, events: &mut Vec<ProviderEvent>) {
        let start = Fields::read(raw);
        let mut citations: Vec<Box<RawValue>> = Vec::new();
        let kind = match start.text("type").as_str() {
            "text" => {
                let at = self.draft.open_text(events);
                self.draft.extend(at, &start.text("text"), events);
                let list = start.get("citations");
                citations = list
                    .and_then(|list| serde_json::from_str(list.get()).ok())
                    .unwrap_or_default();
                Kind::Text(at)
            }
            "thinking" => {
                let at = self.draft.open_reasoning();
                self.draft.extend(at, &start.text("thinking"), events);
                Kind::Thinking {
                    at,
                    signature: start.text("signature"),
                }
            }
            "redacted_thinking" => {
                let at = self.draft.open_reasoning();
                self.draft.seal(at, None, Some(start.text("data")));
                Kind::Opaque { input: String::new() }
            }
            "tool_use" => {
                let at = self
                    .draft
                    .open_call(&start.text("id"), &start.text("name"), events);
                Kind::ToolUse { at }
            }
            _ => Kind::Opaque { input: String::new() },
        };
        self.blocks.push(Block {
            index,
            start: raw.to_owned(),
            kind,
            citations,
            is_open: true,
        });
    }

    fn delta(&mut self, index: u64, delta: Delta<'_>, events: &mut Vec<ProviderEvent>) {
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else {
            return;
        };
        let piece = delta
            .text
            .or(delta.thinking)
            .or(delta.partial_json)
            .unwrap_or_default();
        match &mut block.kind {
            Kind::Text(at) => {
                self.draft.extend(*at, &piece, events);
                block.citations.extend(delta.citation.map(ToOwned::to_owned));
            }
            Kind::Thinking { at, signature } => {
                self.draft.extend(*at, &piece, events);
                signature.push_str(&delta.signature.unwrap_or_default());
            }
            Kind::ToolUse { at } => self.draft.extend(*at, &piece, events),
            Kind::Opaque { input } => input.push_str(&piece),
        }
    }

    fn close(&mut self, index: u64, events: &mut Vec<ProviderEvent>) {
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else {
            return;
        };
        block.is_open = false;
        match &block.kind {
            Kind::Text(at) => self.draft.close(*at, events),
            Kind::Thinking { at, signature } => {
                let signature = (!signature.is_empty()).then(|| signature.clone());
                self.draft.seal(*at, signature, None);
            }
            Kind::ToolUse { at } => {
                if self.draft.text(*at).is_empty()
                    && let Some(input) = whole_input(&block.start)
                {
                    self.draft.extend(*at, &input, events);
                }
                self.draft.close(*at, events);
            }
            Kind::Opaque { .. } => {}
        }
    }

    /// Returns the block as it goes back to the provider, or `None` if the provider would refuse it.
    fn item(&self, block: &Block) -> Option<Box<RawValue>> {
        let start = Fields::read(&block.start);
        match &block.kind {
            Kind::Text(at) => {
                let text = self.draft.text(*at);
                if text.trim().is_empty() {
                    return None;
                }
                let object = ObjectWriter::new()
                    .fields(&start, &["text", "citations"])
                    .field("text", text);
                let cited = !block.citations.is_empty();
                if cited {
                    object.field("citations", &block.citations)
                } else {
                    object
                }
                .finish()
            }
            // A thinking block without its signature makes every later request fail.
            Kind::Thinking { signature, .. } if signature.is_empty() => None,
            Kind::Thinking { at, signature } => ObjectWriter::new()
                .fields(&start, &["thinking", "signature"])
                .field("thinking", self.draft.text(*at))
                .field("signature", signature)
                .finish(),
            Kind::ToolUse { at } => ObjectWriter::new()
                .fields(&start, &["id", "name", "input"])
                .field("id", self.draft.call_id(*at))
                .field("name", tool_name(&start.text("name")).as_ref())
                .raw("input", &object_text(self.draft.text(*at)))
                .finish(),
            Kind::Opaque { input } if input.is_empty() => Some(block.start.clone()),
            Kind::Opaque { input } => ObjectWriter::new()
                .fields(&start, &["input"])
                .raw("input", &object_text(input))
                .finish(),
        }
    }

    /// Takes over token counts. Later counts are totals, so they replace earlier ones.
    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let usage = &mut self.draft.usage;
        usage.input = counts.input_tokens.unwrap_or(usage.input);
        usage.output = counts.output_tokens.unwrap_or(usage.output);
        usage.cache_read = counts.cache_read_input_tokens.unwrap_or(usage.cache_read);
        usage.cache_write = counts.cache_creation_input_tokens.unwrap_or(usage.cache_write);
    }
}

/// Returns the arguments of a call from its start event, where compatible servers send them complete.
fn whole_input(start: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    let input = serde_json::from_str::<Call<'_>>(start.get()).ok()?.input?.get();
    (!matches!(input, "{}" | "null" | "\"\"")).then(|| input.to_owned())
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        // `end_turn`, `stop_sequence`, and any reason added later.
        _ => StopReason::EndTurn,
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Start<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Start<'a> {
    model: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Counts>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    stop_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    signature: Option<String>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    stop_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "token_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    cache_creation_input_tokens: Option<u64>,
}
