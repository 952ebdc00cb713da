//! Decodes responses as they arrive: bytes in, provider events out.

use std::fmt::Debug;
use std::sync::Arc;

use windlass_core::message::Message;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent};

use super::ids::CallIds;
use super::{Quirks, Wire, anthropic, chat, gemini, responses};
use crate::failure;
use crate::sse;

/// Decodes one response. It does no IO, so any chunking of the same bytes gives the same events and the same
/// completion.
#[derive(Debug)]
pub struct ReplyDecoder {
    stream: sse::Decoder,
    pending: Vec<sse::SseEvent>,
    assembly: Box<dyn Decode>,
}

/// Error while decoding an event.
#[derive(Debug)]
pub(crate) enum EventError {
    /// The event does not belong to the wire.
    Unreadable(String),
    /// The event reports a failure.
    Failed(ProviderError),
}

/// Assembles one reply on one wire.
pub(crate) trait Decode: Debug + Send + Sync {
    /// Takes the data of the next event of a stream.
    fn event(&mut self, data: &str, events: &mut Vec<ProviderEvent>) -> Result<(), EventError>;

    /// Takes a reply that came in one piece.
    fn whole(&mut self, body: &str, events: &mut Vec<ProviderEvent>) -> Result<(), ProviderError>;

    /// Returns true if no further event matters.
    fn is_over(&self) -> bool;

    /// Returns true if the reply is complete, even if the stream never sent its last event.
    fn is_finished(&self) -> bool {
        self.is_over()
    }

    /// Takes the reply.
    fn complete(&mut self, events: &mut Vec<ProviderEvent>) -> Completion;
}

impl ReplyDecoder {
    /// Creates a decoder for one response of `provider`. `history` is the conversation the response belongs
    /// to: a call that repeats an id of it gets a new one.
    pub fn new(
        wire: Wire,
        provider: &str,
        quirks: &Quirks,
        limits: sse::StreamLimits,
        history: impl Into<Arc<Vec<Arc<Message>>>>,
    ) -> Self {
        let ids = CallIds::new(history.into(), wire, quirks.short_call_ids);
        Self::with_ids(wire, provider, quirks, limits, ids)
    }

    /// Creates a decoder whose ids are the same for the same response.
    pub(crate) fn seeded(
        wire: Wire,
        provider: &str,
        quirks: &Quirks,
        limits: sse::StreamLimits,
        seed: &str,
    ) -> Self {
        let ids = CallIds::seeded(Arc::default(), wire, quirks.short_call_ids, seed.to_owned());
        Self::with_ids(wire, provider, quirks, limits, ids)
    }

    fn with_ids(
        wire: Wire,
        provider: &str,
        quirks: &Quirks,
        limits: sse::StreamLimits,
        ids: CallIds,
    ) -> Self {
        let assembly: Box<dyn Decode> = match wire {
            Wire::Anthropic => Box::new(anthropic::Decoder::new(provider, ids)),
            Wire::Chat => Box::new(chat::Decoder::new(provider, quirks.echo, ids)),
            Wire::Responses => Box::new(responses::Decoder::new(provider, ids)),
            Wire::Gemini => Box::new(gemini::Decoder::new(provider, ids)),
        };
        Self {
            stream: sse::Decoder::new(limits),
            pending: Vec::new(),
            assembly,
        }
    }

    /// Takes the next bytes of an event stream and appends the events in them. Returns true once the reply is
    /// complete and no further byte matters.
    ///
    /// # Errors
    /// When the provider reports a failure inside the stream, or the stream cannot be read.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<ProviderEvent>) -> Result<bool, ProviderError> {
        let read = self.stream.push(bytes, &mut self.pending);
        self.deliver(events).map_err(|error| match error {
            EventError::Unreadable(data) => failure::not_json(&data),
            EventError::Failed(error) => error,
        })?;
        if self.assembly.is_over() {
            return Ok(true);
        }
        read.map_err(failure::from_sse)?;
        Ok(false)
    }

    /// Ends the stream and returns the reply.
    ///
    /// # Errors
    /// When the stream ended before the reply did.
    pub fn finish(&mut self, events: &mut Vec<ProviderEvent>) -> Result<Completion, ProviderError> {
        if !self.assembly.is_over() {
            // The bytes after the last blank line may be half an event. They count if they can be parsed.
            let read = self.stream.finish(&mut self.pending);
            match self.deliver(events) {
                Err(EventError::Failed(error)) => return Err(error),
                Err(EventError::Unreadable(_)) => return Err(failure::ended_early()),
                Ok(()) if read.is_err() => return Err(failure::ended_early()),
                Ok(()) => {}
            }
        }
        self.complete(events)
    }

    /// Takes a response that came in one piece, from servers that do not stream.
    ///
    /// # Errors
    /// When the response is not a reply.
    pub fn whole(
        &mut self,
        body: &[u8],
        events: &mut Vec<ProviderEvent>,
    ) -> Result<Completion, ProviderError> {
        let body = std::str::from_utf8(body).map_err(|_| failure::from_sse(sse::SseError::NotText))?;
        self.assembly.whole(body, events)?;
        self.complete(events)
    }

    fn deliver(&mut self, events: &mut Vec<ProviderEvent>) -> Result<(), EventError> {
        for event in std::mem::take(&mut self.pending) {
            if self.assembly.is_over() {
                break;
            }
            self.assembly.event(&event.data, events)?;
        }
        Ok(())
    }

    fn complete(&mut self, events: &mut Vec<ProviderEvent>) -> Result<Completion, ProviderError> {
        if !self.assembly.is_finished() {
            return Err(failure::ended_early());
        }
        Ok(self.assembly.complete(events))
    }
}
