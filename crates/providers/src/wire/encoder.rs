//! Encodes requests as a sequence of pieces.
//!
//! A body is `head + prefix + message, message, … + ]}`. The prefix and every message are encoded once and
//! cached as bytes beside the value, and a body extends the previous one, so a request costs only its new
//! messages.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::message::{Message, Role};
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Prefix, Request, Span, SpanOf, ToolChoice};
use windlass_core::tool::ToolSpec;

use super::body::{Body, Kept};
use super::ids::CallNames;
use super::json::field;
use super::{Effort, Quirks, Wire, anthropic, chat, gemini, responses};

/// Encodes requests for one provider and one model.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// Wire format.
    pub(crate) wire: Wire,
    /// Configured name of the provider. Only reasoning of the same provider is sent back.
    pub(crate) provider: String,
    pub(crate) model: Model,
    pub(crate) quirks: Quirks,
    pub(crate) reasoning: Option<Effort>,
    /// Cache key of a message's bytes. It includes the model, because the model decides whether images are
    /// sent.
    key: Arc<str>,
    /// Cache key for messages whose calls had to be renamed.
    renamed_key: Arc<str>,
    /// The last body, which the next one extends.
    last: Arc<Mutex<Body>>,
}

/// A message to be encoded.
pub(crate) struct Outgoing<'a> {
    pub(crate) message: &'a Message,
    pub(crate) names: CallNames,
    /// The provider's own items, if the message may go back as it came.
    pub(crate) items: Option<&'a [Box<RawValue>]>,
    pub(crate) model: &'a Model,
}

impl Encoder {
    /// Creates an encoder for `model` of `provider`.
    pub fn new(wire: Wire, provider: &str, model: Model, quirks: Quirks, reasoning: Option<Effort>) -> Self {
        let key = format!("{wire}/{provider}/{}", model.id);
        let renamed_key = Arc::from(format!("{key}#renamed"));
        Self {
            wire,
            provider: provider.to_owned(),
            model,
            quirks,
            reasoning,
            key: Arc::from(key),
            renamed_key,
            last: Arc::default(),
        }
    }

    /// Returns the body of a request.
    pub fn body(&self, request: &Request) -> Bytes {
        self.continued(request).0
    }

    /// Returns the body of a request, and how much of it the previous and the next body share.
    pub(crate) fn continued(&self, request: &Request) -> (Bytes, Kept) {
        let head = self.head(request);
        let prefix = self.prefix_of(request);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match last.new_in(&head, &prefix, &request.messages) {
            Some(new) => new,
            None => {
                *last = Body::new(head, prefix);
                &request.messages
            }
        };
        self.extend(&mut last, new);
        let markers = self.wire == Wire::Anthropic;
        if last.pieces().is_empty() {
            let mut body = std::mem::take(&mut *last);
            body.insert(Bytes::from_static(self.opening()));
            return body.assemble(markers);
        }
        last.assemble(markers)
    }

    /// Returns the body of a request, and a description of each of its spans.
    pub(crate) fn layout(&self, request: &Request) -> Layout {
        let head = self.head(request);
        let prefix = self.prefix_of(request);
        let (before, behind) = (head.len(), head.len() + prefix.len());
        let mut body = Body::new(head, prefix.clone());
        self.extend(&mut body, &request.messages);
        if body.pieces().is_empty() {
            body.insert(Bytes::from_static(self.opening()));
        }
        let (bytes, _) = body.assemble(self.wire == Wire::Anthropic);
        let mut spans = vec![Span {
            range: 0..before,
            of: SpanOf::Head,
        }];
        spans.extend(in_prefix(&prefix, &request.prefix.system, before));
        let places: Vec<(usize, SpanOf)> = body
            .places()
            .map(|(start, owner)| {
                let of = owner.map_or(SpanOf::Frame, |message| SpanOf::Message(message.id.clone()));
                (start, of)
            })
            .collect();
        let end = bytes.len().saturating_sub(2);
        for (index, (start, of)) in places.iter().enumerate() {
            let next = places.get(index + 1).map_or(end, |(start, _)| *start);
            spans.push(Span {
                range: *start..next,
                of: of.clone(),
            });
        }
        spans.push(Span {
            range: end.max(behind)..bytes.len(),
            of: SpanOf::Frame,
        });
        Layout { body: bytes, spans }
    }

    /// Returns the tool list in the wire's form.
    pub fn tools(&self, tools: &[ToolSpec]) -> Value {
        let told = match self.wire {
            Wire::Anthropic => serde_json::to_value(anthropic::tools(tools)),
            Wire::Chat => serde_json::to_value(chat::tools(tools)),
            Wire::Responses => serde_json::to_value(responses::tools(tools)),
            Wire::Gemini => serde_json::to_value(gemini::tools(tools)),
        };
        // Names are strings, so this cannot fail.
        told.unwrap_or_default()
    }

    /// Encodes everything before the prefix: model, limits and options.
    fn head(&self, request: &Request) -> Vec<u8> {
        match self.wire {
            Wire::Anthropic => anthropic::head(self, request),
            Wire::Chat => chat::head(self, request),
            Wire::Responses => responses::head(self, request),
            Wire::Gemini => gemini::head(self, request),
        }
    }

    /// Encodes the prefix of a request, with only the tool that the model has to call if the choice cannot name it.
    fn prefix_of(&self, request: &Request) -> Bytes {
        match &request.tool_choice {
            ToolChoice::Tool(name) if self.quirks.plain_tool_choice => {
                let Prefix { system, tools, .. } = &*request.prefix;
                let tools = tools.iter().filter(|tool| tool.name == *name);
                self.prefix(&Prefix {
                    system: system.clone(),
                    tools: tools.cloned().collect(),
                    ..Prefix::default()
                })
            }
            _ => self.prefix(&request.prefix),
        }
    }

    /// Encodes the system prompt and tools, up to and including the bracket that opens the message list.
    pub(crate) fn prefix(&self, prefix: &Prefix) -> Bytes {
        prefix.memo.get_or_encode(&self.key, || {
            let bytes = match self.wire {
                Wire::Anthropic => anthropic::prefix(prefix),
                Wire::Chat => chat::prefix(prefix),
                Wire::Responses => responses::prefix(prefix),
                Wire::Gemini => gemini::prefix(prefix),
            };
            Bytes::from(bytes)
        })
    }

    /// Adds messages to a body; those without content on this wire leave no piece.
    fn extend(&self, body: &mut Body, messages: &[Arc<Message>]) {
        for message in messages {
            let own = self.own_items(message).is_some();
            let names = body
                .naming
                .next(message, self.wire, self.quirks.short_call_ids, own);
            let key = if names.renamed() {
                &self.renamed_key
            } else {
                &self.key
            };
            let piece = message.memo.get_or_encode(key, || self.encode(message, names));
            if piece.is_empty() {
                body.skip(message);
                continue;
            }
            if body.pieces().is_empty() && message.role == Role::Assistant {
                body.insert(Bytes::from_static(self.opening()));
            }
            body.add(message, piece);
        }
    }

    /// Encodes the messages as pieces, from scratch.
    #[cfg(test)]
    pub(crate) fn pieces(&self, messages: &[Arc<Message>]) -> Vec<Bytes> {
        let mut body = Body::default();
        self.extend(&mut body, messages);
        body.pieces().to_vec()
    }

    /// Returns the stand-in for a first user message that has no content on this wire: a conversation must
    /// not be empty and must start with the user.
    const fn opening(&self) -> &'static [u8] {
        match self.wire {
            Wire::Anthropic => br#"{"role":"user","content":[{"type":"text","text":"(no text)"}]}"#,
            Wire::Chat => br#"{"role":"user","content":"(no text)"}"#,
            Wire::Gemini => br#"{"role":"user","parts":[{"text":"(no text)"}]}"#,
            Wire::Responses => {
                br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"(no text)"}]}"#
            }
        }
    }

    fn encode(&self, message: &Message, names: CallNames) -> Bytes {
        let items = self.own_items(message).filter(|items| {
            // A message changed after it arrived (a call dropped, an id renamed) is encoded from its parts.
            !names.renamed()
                && self
                    .item_calls(items)
                    .eq(message.calls().map(|call| call.id.as_str()))
        });
        let outgoing = Outgoing {
            message,
            names,
            items,
            model: &self.model,
        };
        let bytes = match self.wire {
            Wire::Anthropic => anthropic::message(&outgoing),
            Wire::Chat => chat::message(&outgoing),
            Wire::Responses => responses::message(&outgoing),
            Wire::Gemini => gemini::message(&outgoing),
        };
        Bytes::from(bytes)
    }

    /// Returns the items of a message that this same provider wrote on this same wire.
    fn own_items<'a>(&self, message: &'a Message) -> Option<&'a [Box<RawValue>]> {
        let origin = message.origin.as_ref()?;
        (origin.provider == self.provider && origin.wire == self.wire.name()).then_some(&*origin.items)
    }

    fn item_calls(&self, items: &[Box<RawValue>]) -> impl Iterator<Item = String> {
        let calls = match self.wire {
            Wire::Anthropic => anthropic::item_calls(items),
            Wire::Chat => chat::item_calls(items),
            Wire::Responses => responses::item_calls(items),
            Wire::Gemini => gemini::item_calls(items),
        };
        calls.into_iter()
    }
}

/// Appends the tool choice in the words of a wire, unless the model chooses freely or there are no tools.
pub(crate) fn choose_tool<V: Into<Value>>(
    out: &mut Vec<u8>,
    request: &Request,
    none: V,
    required: V,
    tool: impl FnOnce(&str) -> Value,
) {
    let choice = match &request.tool_choice {
        ToolChoice::Auto => return,
        ToolChoice::None => none.into(),
        ToolChoice::Required => required.into(),
        ToolChoice::Tool(name) => tool(name),
    };
    if !request.prefix.tools.is_empty() {
        field(out, "tool_choice", &choice);
    }
}

/// Returns the spans of the prefix: the system prompt, and the tools around it.
fn in_prefix(prefix: &[u8], system: &str, offset: usize) -> Vec<Span> {
    let written = serde_json::to_string(system).unwrap_or_default();
    let found = (!system.is_empty())
        .then(|| memchr::memmem::find(prefix, written.as_bytes()))
        .flatten();
    let span = |range: std::ops::Range<usize>, of| Span {
        range: range.start + offset..range.end + offset,
        of,
    };
    let mut spans = Vec::new();
    let whole = prefix.len();
    match found {
        Some(start) => {
            spans.push(span(0..start, SpanOf::Tools));
            spans.push(span(start..start + written.len(), SpanOf::System));
            spans.push(span(start + written.len()..whole, SpanOf::Tools));
        }
        None => spans.push(span(0..whole, SpanOf::Tools)),
    }
    spans.retain(|span| !span.range.is_empty());
    spans
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
