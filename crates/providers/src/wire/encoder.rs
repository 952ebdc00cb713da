//! Requests as pieces in a row.
//!
//! A body is `head + prefix + message, message, … + ]}`. The prefix and every message are encoded once and
//! kept as bytes beside the value, and a body goes on from the one before it, so a request costs what is new in it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::message::{Message, Role};
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Prefix, Request, Span, SpanOf};
use windlass_core::tool::ToolSpec;

use super::body::{Body, Kept};
use super::ids::CallNames;
use super::{Effort, Quirks, Wire, anthropic, chat, responses};

/// Encodes requests for one provider and one model.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// The wire.
    pub(crate) wire: Wire,
    /// The configured name of the provider, which says whose reasoning may be sent.
    pub(crate) provider: String,
    pub(crate) model: Model,
    pub(crate) quirks: Quirks,
    pub(crate) reasoning: Option<Effort>,
    /// Under which a message's bytes are kept. The model is in it because it decides about images.
    key: Arc<str>,
    /// The same for messages whose calls had to be renamed.
    renamed_key: Arc<str>,
    /// The last body, from which the next one goes on.
    last: Arc<Mutex<Body>>,
}

/// One message on its way to the wire.
pub(crate) struct Outgoing<'a> {
    pub(crate) message: &'a Message,
    pub(crate) names: CallNames<'a>,
    /// The provider's own items, when the message may go back as it came.
    pub(crate) items: Option<&'a [Box<RawValue>]>,
    pub(crate) model: &'a Model,
}

impl Encoder {
    /// An encoder for `provider`, which asks `model`.
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

    /// The body of a request.
    pub fn body(&self, request: &Request) -> Bytes {
        self.continued(request).0
    }

    /// The body of a request, and what of it stays from one body to the next.
    pub(crate) fn continued(&self, request: &Request) -> (Bytes, Kept) {
        let head = match self.wire {
            Wire::Anthropic => anthropic::head(self, request),
            Wire::Chat => chat::head(self, request),
            Wire::Responses => responses::head(self, request),
        };
        let prefix = self.prefix(&request.prefix);
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

    /// The body of a request, and what each of its bytes is.
    pub(crate) fn layout(&self, request: &Request) -> Layout {
        let head = match self.wire {
            Wire::Anthropic => anthropic::head(self, request),
            Wire::Chat => chat::head(self, request),
            Wire::Responses => responses::head(self, request),
        };
        let prefix = self.prefix(&request.prefix);
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

    /// The tool list in the wire's form.
    pub fn tools(&self, tools: &[ToolSpec]) -> Value {
        let told = match self.wire {
            Wire::Anthropic => serde_json::to_value(anthropic::tools(tools)),
            Wire::Chat => serde_json::to_value(chat::tools(tools)),
            Wire::Responses => serde_json::to_value(responses::tools(tools)),
        };
        // Names are strings and nothing here can fail by itself.
        told.unwrap_or_default()
    }

    /// System prompt and tools, up to and including the bracket that opens the message list.
    pub(crate) fn prefix(&self, prefix: &Prefix) -> Bytes {
        prefix.memo.get_or_encode(&self.key, || {
            let bytes = match self.wire {
                Wire::Anthropic => anthropic::prefix(prefix),
                Wire::Chat => chat::prefix(prefix),
                Wire::Responses => responses::prefix(prefix),
            };
            Bytes::from(bytes)
        })
    }

    /// Adds messages to a body; those that have nothing to say on this wire leave no piece.
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

    /// The messages as pieces, from scratch.
    #[cfg(test)]
    pub(crate) fn pieces(&self, messages: &[Arc<Message>]) -> Vec<Bytes> {
        let mut body = Body::default();
        self.extend(&mut body, messages);
        body.pieces().to_vec()
    }

    /// What stands in for a first user message that has nothing to say on this wire: a conversation
    /// must begin with the user, and must begin.
    const fn opening(&self) -> &'static [u8] {
        match self.wire {
            Wire::Anthropic => br#"{"role":"user","content":[{"type":"text","text":"(no text)"}]}"#,
            Wire::Chat => br#"{"role":"user","content":"(no text)"}"#,
            Wire::Responses => {
                br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"(no text)"}]}"#
            }
        }
    }

    fn encode(&self, message: &Message, names: CallNames<'_>) -> Bytes {
        let items = self.own_items(message).filter(|items| {
            // A message that was changed since (a call dropped, an id renamed) is what its parts say.
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
        };
        Bytes::from(bytes)
    }

    /// The items of a message this very provider wrote on this very wire.
    fn own_items<'a>(&self, message: &'a Message) -> Option<&'a [Box<RawValue>]> {
        let origin = message.origin.as_ref()?;
        (origin.provider == self.provider && origin.wire == self.wire.name()).then_some(&*origin.items)
    }

    fn item_calls(&self, items: &[Box<RawValue>]) -> impl Iterator<Item = String> {
        let calls = match self.wire {
            Wire::Anthropic => anthropic::item_calls(items),
            Wire::Chat => chat::item_calls(items),
            Wire::Responses => responses::item_calls(items),
        };
        calls.into_iter()
    }
}

/// The system prompt in the prefix, and the tools around it.
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
