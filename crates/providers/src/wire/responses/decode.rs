//! Replies of Responses.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_core::json::repaired;
use windlass_core::model::Usage;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent, StopReason};

use crate::failure;
use crate::wire::Wire;
use crate::wire::draft::{At, Draft};
use crate::wire::ids::CallIds;
use crate::wire::json::{
    Fields, ObjectWriter, argument_text, if_readable, is_sound_object, object_text, text, token_count,
    tool_name,
};
use crate::wire::reply::{Decode, EventError};

/// Assembles one reply from its events.
#[derive(Debug)]
pub(crate) struct Decoder {
    draft: Draft,
    open: Vec<Slot>,
    items: Vec<(u64, Box<RawValue>)>,
    stop: Option<StopReason>,
    refused: bool,
}

/// Position of a part of the reply: item `output`, and within a message its `content`.
#[derive(Debug, Clone, Copy)]
struct Slot {
    output: u64,
    content: u64,
    kind: Kind,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Call,
}

impl Decoder {
    pub(crate) fn new(provider: &str, ids: CallIds) -> Self {
        Self {
            draft: Draft::new(Wire::Responses, provider, ids),
            open: Vec::new(),
            items: Vec::new(),
            stop: None,
            refused: false,
        }
    }
}

impl Decode for Decoder {
    fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    fn event(&mut self, data: &str, events: &mut Vec<ProviderEvent>) -> Result<(), EventError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let unreadable = |_| EventError::Unreadable(data.to_owned());
        let event: Event<'_> = serde_json::from_str(data).map_err(unreadable)?;
        let output = event.output_index.unwrap_or_default();
        let content = event.content_index.unwrap_or_default();
        // Not every delta is text; the others do not concern us.
        let delta: Option<String> = event
            .delta
            .and_then(|delta| serde_json::from_str(&repaired(delta.get())).ok());
        let delta = delta.as_deref().unwrap_or_default();
        match event.r#type.as_str() {
            "response.output_item.added" if self.added(output, event.item, events) => {
                return Err(EventError::Failed(failure::ambiguous(output)));
            }
            "response.output_text.delta" => {
                let at = self.slot(output, content, Kind::Text, events);
                self.draft.extend(at, delta, events);
            }
            "response.refusal.delta" => {
                self.refused = true;
                let at = self.slot(output, content, Kind::Text, events);
                self.draft.extend(at, delta, events);
            }
            "response.output_text.done" | "response.refusal.done" => {
                self.close_output(output, Some(content), events);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let at = self.slot(output, 0, Kind::Reasoning, events);
                self.draft.extend(at, delta, events);
            }
            "response.reasoning_summary_part.added" => {
                let at = self.slot(output, 0, Kind::Reasoning, events);
                if !self.draft.text(at).is_empty() {
                    self.draft.extend(at, "\n\n", events);
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(slot) = self.find(output, 0, Kind::Call) {
                    self.draft.extend(slot.at, delta, events);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    if self.added(output, Some(item), events) {
                        return Err(EventError::Failed(failure::ambiguous(output)));
                    }
                    self.done(output, item, events);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                if let Some(response) = event.response {
                    self.end(response, events);
                }
            }
            "response.failed" | "error" => return Err(EventError::Failed(failure::from_event(data))),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, events: &mut Vec<ProviderEvent>) -> Result<(), ProviderError> {
        let response: Response<'_> = serde_json::from_str(body).map_err(|_| failure::not_a_reply(body))?;
        if response.output.is_none() || response.status.as_deref() == Some("failed") {
            return Err(failure::not_a_reply(body));
        }
        self.end(response, events);
        Ok(())
    }

    fn complete(&mut self, _: &mut Vec<ProviderEvent>) -> Completion {
        self.items.sort_by_key(|(output, _)| *output);
        let items = std::mem::take(&mut self.items)
            .into_iter()
            .map(|(_, item)| item)
            .collect();
        let stop = self.refused.then_some(StopReason::Refusal).or(self.stop);
        self.draft.complete(stop, items)
    }
}

impl Decoder {
    /// Starts an item. Returns true if another call has its place.
    fn added(&mut self, output: u64, item: Option<&RawValue>, events: &mut Vec<ProviderEvent>) -> bool {
        let item: Item = item.map(Item::read).unwrap_or_default();
        if item.r#type != "function_call" {
            return false;
        }
        let name = item.name.unwrap_or_default();
        if let Some(slot) = self.find(output, 0, Kind::Call) {
            let known = self.draft.call_name(slot.at);
            return !known.is_empty() && !name.is_empty() && known != name;
        }
        let id = item.call_id.unwrap_or_default();
        let at = self.draft.open_call(&id, &name, events);
        self.open.push(Slot {
            output,
            content: 0,
            kind: Kind::Call,
            at,
        });
        false
    }

    /// Finishes an item. It is stored as it came; text that no delta has sent yet is sent now.
    fn done(&mut self, output: u64, raw: &RawValue, events: &mut Vec<ProviderEvent>) {
        let item = Item::read(raw);
        let mut kept = raw.to_owned();
        match item.r#type.as_str() {
            "function_call" => {
                self.added(output, Some(raw), events);
                if let Some(slot) = self.find(output, 0, Kind::Call) {
                    if self.draft.text(slot.at).is_empty() {
                        self.draft.extend(slot.at, &item.arguments(), events);
                    }
                    kept = self.call_item(raw, &item, slot.at).unwrap_or(kept);
                }
            }
            "message" => {
                for (part, content) in item.content.list.iter().zip(0..) {
                    self.refused |= text(part, "type") == "refusal";
                    let whole = if self.refused {
                        text(part, "refusal")
                    } else {
                        text(part, "text")
                    };
                    let at = self.slot(output, content, Kind::Text, events);
                    if self.draft.text(at).is_empty() {
                        self.draft.extend(at, whole, events);
                    }
                }
                if item.content.is_odd {
                    kept = message_item(raw, &item.content).unwrap_or(kept);
                }
            }
            "reasoning" => {
                let at = self.slot(output, 0, Kind::Reasoning, events);
                if self.draft.text(at).is_empty() {
                    let parts: Vec<&str> = item.summary.list.iter().map(|part| text(part, "text")).collect();
                    self.draft.extend(at, &parts.join("\n\n"), events);
                }
                self.draft.seal(at, None, item.encrypted_content.clone());
            }
            // An item of an unknown kind is stored and sent back unchanged.
            _ => {}
        }
        self.close_output(output, None, events);
        // An empty message would be refused when it goes back.
        let parts = item.content.list;
        let said = |part: &Map<String, Value>| {
            !text(part, "text").trim().is_empty() || !text(part, "refusal").trim().is_empty()
        };
        if item.r#type != "message" || parts.iter().any(said) {
            self.items.push((output, kept));
        }
    }

    /// Returns the call as it goes back, or `None` if it can go back as it came.
    fn call_item(&self, raw: &RawValue, item: &Item, at: At) -> Option<Box<RawValue>> {
        let id = self.draft.call_id(at);
        let arguments = item.arguments();
        let name = item.name.as_deref().unwrap_or_default();
        let is_text = item
            .arguments
            .as_ref()
            .is_some_and(|raw| raw.get().starts_with('"'));
        let is_sound = is_text && is_sound_object(&arguments) && tool_name(name) == name;
        if item.call_id.as_deref() == Some(id) && is_sound {
            return None;
        }
        ObjectWriter::new()
            .fields(&Fields::read(raw), &["call_id", "name", "arguments"])
            .field("call_id", id)
            .field("name", tool_name(name).as_ref())
            .field("arguments", object_text(&arguments).as_ref())
            .finish()
    }

    fn end(&mut self, response: Response<'_>, events: &mut Vec<ProviderEvent>) {
        // Servers that do not stream items put all of them here.
        for (item, output) in response.output.unwrap_or_default().into_iter().zip(0..) {
            if !self.items.iter().any(|(known, _)| *known == output) {
                self.done(output, item, events);
            }
        }
        self.draft.model = response.model.unwrap_or_default();
        if let Some(counts) = response.usage {
            let input = counts.input_tokens.unwrap_or(0);
            let cached = counts
                .input_tokens_details
                .and_then(|details| details.cached_tokens);
            let cache_read = cached.unwrap_or(0).min(input);
            let output = counts.output_tokens.unwrap_or(0);
            let details = counts.output_tokens_details;
            let reasoning = details.and_then(|details| details.reasoning_tokens);
            self.draft.usage = Usage {
                input: input - cache_read,
                output,
                cache_read,
                reasoning: reasoning.unwrap_or(0).min(output),
                ..Usage::default()
            };
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.stop = Some(match reason.as_deref() {
            Some("content_filter") => StopReason::Refusal,
            Some(_) => StopReason::MaxTokens,
            None if response.status.as_deref() == Some("incomplete") => StopReason::MaxTokens,
            None => StopReason::EndTurn,
        });
        let texts: Vec<At> = self
            .open
            .iter()
            .filter(|slot| slot.kind == Kind::Text)
            .map(|slot| slot.at)
            .collect();
        for at in texts {
            self.draft.close(at, events);
        }
    }

    /// Returns the part at that position, opening it if it is new.
    fn slot(&mut self, output: u64, content: u64, kind: Kind, events: &mut Vec<ProviderEvent>) -> At {
        if let Some(slot) = self.find(output, content, kind) {
            return slot.at;
        }
        let at = match kind {
            Kind::Reasoning => self.draft.open_reasoning(),
            Kind::Text | Kind::Call => self.draft.open_text(events),
        };
        self.open.push(Slot {
            output,
            content,
            kind,
            at,
        });
        at
    }

    fn find(&self, output: u64, content: u64, kind: Kind) -> Option<Slot> {
        let same = |slot: &&Slot| slot.output == output && slot.content == content && slot.kind == kind;
        self.open.iter().rev().find(same).copied()
    }

    /// Closes the parts of an item, or one of them.
    fn close_output(&mut self, output: u64, content: Option<u64>, events: &mut Vec<ProviderEvent>) {
        for slot in self.open.iter().filter(|slot| slot.output == output) {
            if content.is_none_or(|content| content == slot.content) {
                self.draft.close(slot.at, events);
            }
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: String,
    output_index: Option<u64>,
    content_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    model: Option<String>,
    status: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Counts>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

/// Returns a message as it goes back, with nothing but objects as its parts.
fn message_item(raw: &RawValue, content: &Parts) -> Option<Box<RawValue>> {
    let parts: Vec<&Map<String, Value>> = content.list.iter().filter(|part| !part.is_empty()).collect();
    ObjectWriter::new()
        .fields(&Fields::read(raw), &["content"])
        .field("content", &parts)
        .finish()
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "token_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "if_readable")]
    input_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "if_readable")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "token_count")]
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
}

/// Fields of an item, each as far as it can be read: one that cannot must not cost the others.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    r#type: String,
    #[serde(deserialize_with = "if_readable")]
    call_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    #[serde(deserialize_with = "if_readable")]
    encrypted_content: Option<String>,
    #[serde(deserialize_with = "parts")]
    content: Parts,
    #[serde(deserialize_with = "parts")]
    summary: Parts,
}

/// Parts of an item at their places. In the place of what is no object there is an empty one.
#[derive(Default)]
struct Parts {
    list: Vec<Map<String, Value>>,
    /// True if the parts cannot go back as they came.
    is_odd: bool,
}

/// Reads the parts of an item. A text alone is one part.
fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Parts, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(list) => Parts {
            is_odd: !list.iter().all(Value::is_object),
            list: list
                .into_iter()
                .map(|part| match part {
                    Value::Object(part) => part,
                    _ => Map::new(),
                })
                .collect(),
        },
        Value::String(text) => {
            let fields = [
                ("type", Value::from("output_text")),
                ("text", Value::String(text)),
                ("annotations", Value::Array(Vec::new())),
            ];
            Parts {
                list: vec![
                    fields
                        .map(|(name, value)| (name.to_owned(), value))
                        .into_iter()
                        .collect(),
                ],
                is_odd: true,
            }
        }
        _ => Parts::default(),
    })
}

impl Item {
    fn arguments(&self) -> String {
        self.arguments
            .as_deref()
            .map_or_else(String::new, |raw| argument_text(raw.get()))
    }

    fn read(raw: &RawValue) -> Self {
        serde_json::from_str(&repaired(raw.get())).unwrap_or_default()
    }
}
