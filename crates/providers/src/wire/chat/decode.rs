//! Replies of Chat Completions.

use serde_json::value::RawValue;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent, StopReason};

use super::assemble::Calls;
use super::chunk::{Chunk, Delta};
use super::details::Details;
use crate::failure;
use crate::wire::Wire;
use crate::wire::draft::{At, Draft};
use crate::wire::ids::CallIds;
use crate::wire::json::ObjectWriter;
use crate::wire::quirks::ReasoningEcho;
use crate::wire::reply::{Decode, EventError};

/// Assembles one reply from its chunks.
#[derive(Debug)]
pub(crate) struct Decoder {
    echo: ReasoningEcho,
    draft: Draft,
    calls: Calls,
    /// The text or reasoning block that is currently open.
    open: Option<(Speech, At)>,
    /// All text and reasoning so far, for the message that goes back.
    said: Said,
    stop: Option<StopReason>,
    over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Text,
    Reasoning,
}

#[derive(Debug, Default)]
struct Said {
    text: String,
    reasoning: String,
    details: Details,
}

impl Decoder {
    pub(crate) fn new(provider: &str, echo: ReasoningEcho, ids: CallIds) -> Self {
        Self {
            echo,
            draft: Draft::new(Wire::Chat, provider, ids),
            calls: Calls::default(),
            open: None,
            said: Said::default(),
            stop: None,
            over: false,
        }
    }
}

impl Decode for Decoder {
    fn is_over(&self) -> bool {
        self.over
    }

    fn is_finished(&self) -> bool {
        // Chat servers omit their last event so often that the finish reason has to suffice.
        self.stop.is_some() || (self.over && !self.is_empty())
    }

    fn event(&mut self, data: &str, events: &mut Vec<ProviderEvent>) -> Result<(), EventError> {
        if data.trim() == "[DONE]" {
            self.over = true;
            return Ok(());
        }
        let unreadable = |_| EventError::Unreadable(data.to_owned());
        let chunk: Chunk = serde_json::from_str(data).map_err(unreadable)?;
        if chunk.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(EventError::Failed(failure::from_event(data)));
        }
        self.chunk(chunk, events);
        Ok(())
    }

    fn whole(&mut self, body: &str, events: &mut Vec<ProviderEvent>) -> Result<(), ProviderError> {
        let chunk: Chunk = serde_json::from_str(body).map_err(|_| failure::not_a_reply(body))?;
        let is_reply = chunk.choices.as_ref().is_some_and(|choices| !choices.is_empty());
        if !is_reply || chunk.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(failure::not_a_reply(body));
        }
        self.chunk(chunk, events);
        self.stop.get_or_insert(StopReason::EndTurn);
        self.over = true;
        Ok(())
    }

    fn complete(&mut self, events: &mut Vec<ProviderEvent>) -> Completion {
        self.close_speech(events);
        self.calls.close(&mut self.draft, events);
        let items = self.item().into_iter().collect();
        self.draft.complete(self.stop, items)
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: Chunk, events: &mut Vec<ProviderEvent>) {
        if self.draft.model.is_empty() {
            self.draft.model = chunk.model.unwrap_or_default();
        }
        if let Some(counts) = chunk.usage {
            self.draft.usage = counts.usage();
        }
        // We never ask for more than one choice.
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices
            .into_iter()
            .filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            if let Some(counts) = choice.usage {
                self.draft.usage = counts.usage();
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta, events);
            }
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some(reason) => self.stop = Some(stop_reason(reason)),
            }
        }
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<ProviderEvent>) {
        self.speak(Speech::Reasoning, &delta.reasoning(), events);
        self.speak(Speech::Text, &delta.text(), events);
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.speak(Speech::Text, &refusal, events);
            self.stop = Some(StopReason::Refusal);
        }
        for detail in delta.reasoning_details.unwrap_or_default() {
            self.said.details.add(detail);
        }
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.close_speech(events);
            self.calls.take(fragment, &mut self.draft, events);
        }
    }

    fn speak(&mut self, speech: Speech, piece: &str, events: &mut Vec<ProviderEvent>) {
        if piece.is_empty() {
            return;
        }
        let at = match self.open {
            Some((open, at)) if open == speech => at,
            _ => {
                self.close_speech(events);
                let at = match speech {
                    Speech::Text => self.draft.open_text(events),
                    Speech::Reasoning => self.draft.open_reasoning(),
                };
                self.open = Some((speech, at));
                at
            }
        };
        self.draft.extend(at, piece, events);
        match speech {
            Speech::Text => self.said.text.push_str(piece),
            Speech::Reasoning => self.said.reasoning.push_str(piece),
        }
    }

    fn close_speech(&mut self, events: &mut Vec<ProviderEvent>) {
        if let Some((_, at)) = self.open.take() {
            self.draft.close(at, events);
        }
    }

    fn is_empty(&self) -> bool {
        self.said.text.is_empty() && self.calls.is_empty()
    }

    /// Returns the message as it goes back, or `None` if it has nothing the provider would accept.
    fn item(&self) -> Option<Box<RawValue>> {
        let calls = self.calls.items(&self.draft);
        let blank = self.said.text.trim().is_empty();
        if blank && calls.is_empty() {
            return None;
        }
        let content = (!blank).then_some(&self.said.text);
        let mut object = ObjectWriter::new()
            .field("role", "assistant")
            .field("content", &content);
        match self.echo {
            ReasoningEcho::Content if !self.said.reasoning.is_empty() => {
                object = object.field("reasoning_content", &self.said.reasoning);
            }
            ReasoningEcho::Details if !self.said.details.is_empty() => {
                object = object.field("reasoning_details", &self.said.details.items());
            }
            _ => {}
        }
        if !calls.is_empty() {
            object = object.field("tool_calls", &calls);
        }
        object.finish()
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::Refusal,
        // `stop`, and any reason added later.
        _ => StopReason::EndTurn,
    }
}
