//! Replies of Gemini: a stream of responses, each with the next parts of the answer.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent, StopReason};

use crate::failure;
use crate::wire::Wire;
use crate::wire::draft::{At, Draft};
use crate::wire::ids::CallIds;
use crate::wire::json::{Fields, ObjectWriter, if_readable, object_text, token_count, tool_name};
use crate::wire::reply::{Decode, EventError};

/// Assembles one reply from its responses.
#[derive(Debug)]
pub(crate) struct Decoder {
    draft: Draft,
    items: Vec<Item>,
    /// The text or thought that is being written.
    open: Option<Open>,
    stop: Option<StopReason>,
    over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    at: At,
    is_thought: bool,
}

/// A part, as it goes back to the provider.
#[derive(Debug)]
enum Item {
    /// Pieces of text without a signature, which may be joined.
    Text {
        text: String,
        is_thought: bool,
    },
    Call {
        part: Fields,
        call: Fields,
        at: At,
    },
    /// Any other part, as it came.
    Whole(Box<RawValue>),
}

impl Decoder {
    pub(crate) fn new(provider: &str, ids: CallIds) -> Self {
        Self {
            draft: Draft::new(Wire::Gemini, provider, ids),
            items: Vec::new(),
            open: None,
            stop: None,
            over: false,
        }
    }
}

impl Decode for Decoder {
    fn is_over(&self) -> bool {
        self.over
    }

    /// The stream has no last event: it ends after the response with the reason.
    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    fn event(&mut self, data: &str, events: &mut Vec<ProviderEvent>) -> Result<(), EventError> {
        let unreadable = |_| EventError::Unreadable(data.to_owned());
        let response: Response<'_> = serde_json::from_str(data).map_err(unreadable)?;
        if response.error.is_some() {
            return Err(EventError::Failed(failure::from_event(data)));
        }
        self.take(response, events);
        Ok(())
    }

    fn whole(&mut self, body: &str, events: &mut Vec<ProviderEvent>) -> Result<(), ProviderError> {
        let response: Response<'_> = serde_json::from_str(body).map_err(|_| failure::not_a_reply(body))?;
        if response.candidates.is_none() && response.prompt_feedback.is_none() {
            return Err(failure::not_a_reply(body));
        }
        self.take(response, events);
        self.stop = self.stop.or(Some(StopReason::EndTurn));
        self.over = true;
        Ok(())
    }

    fn complete(&mut self, events: &mut Vec<ProviderEvent>) -> Completion {
        self.close(events);
        let items = std::mem::take(&mut self.items);
        let items = items.into_iter().filter_map(|item| self.item(item)).collect();
        self.draft.complete(self.stop, items)
    }
}

impl Decoder {
    fn take(&mut self, response: Response<'_>, events: &mut Vec<ProviderEvent>) {
        if let Some(model) = response.model_version {
            self.draft.model = model.into_owned();
        }
        self.count(response.usage_metadata);
        let blocked = response
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason);
        if blocked.is_some() {
            self.stop = Some(StopReason::Refusal);
        }
        let Some(candidate) = response.candidates.and_then(|all| all.into_iter().next()) else {
            return;
        };
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.unwrap_or_default() {
            self.part(part, events);
        }
        if let Some(reason) = candidate.finish_reason {
            self.stop = Some(stop_reason(&reason));
        }
    }

    fn part(&mut self, raw: &RawValue, events: &mut Vec<ProviderEvent>) {
        let part = Fields::read(raw);
        if let Some(call) = part.get("functionCall") {
            let call = Fields::read(call);
            self.close(events);
            let at = self.draft.open_call(&call.text("id"), &call.text("name"), events);
            let args = call.get("args").map_or("{}", |args| args.get());
            self.draft.extend(at, args, events);
            self.draft.close(at, events);
            self.items.push(Item::Call { part, call, at });
            return;
        }
        if part.get("text").is_none() {
            self.items.push(Item::Whole(raw.to_owned()));
            return;
        }
        let text = part.text("text");
        let is_thought = part.get("thought").is_some_and(|thought| thought.get() == "true");
        let signature = part.text("thoughtSignature");
        if !text.is_empty() {
            let at = self.opened(is_thought, events);
            self.draft.extend(at, &text, events);
        }
        if let Some(Open { at, is_thought: true }) = self.open
            && !signature.is_empty()
        {
            self.draft.seal(at, Some(signature.clone()), None);
        }
        // A part with a signature must go back as it came, and must not be joined with another one.
        if !signature.is_empty() {
            self.items.push(Item::Whole(raw.to_owned()));
            return;
        }
        match self.items.last_mut() {
            Some(Item::Text {
                text: before,
                is_thought: kind,
            }) if *kind == is_thought => before.push_str(&text),
            _ => self.items.push(Item::Text { text, is_thought }),
        }
    }

    /// Returns the block that a piece of text belongs to.
    fn opened(&mut self, is_thought: bool, events: &mut Vec<ProviderEvent>) -> At {
        if let Some(open) = self.open.filter(|open| open.is_thought == is_thought) {
            return open.at;
        }
        self.close(events);
        let at = match is_thought {
            true => self.draft.open_reasoning(),
            false => self.draft.open_text(events),
        };
        self.open = Some(Open { at, is_thought });
        at
    }

    fn close(&mut self, events: &mut Vec<ProviderEvent>) {
        if let Some(open) = self.open.take() {
            self.draft.close(open.at, events);
        }
    }

    /// Returns a part as it goes back to the provider, or `None` if it is empty.
    fn item(&self, item: Item) -> Option<Box<RawValue>> {
        match item {
            Item::Whole(raw) => Some(raw),
            Item::Text { text, .. } if text.is_empty() => None,
            Item::Text { text, is_thought } => {
                let object = ObjectWriter::new().field("text", &text);
                match is_thought {
                    true => object.field("thought", &true),
                    false => object,
                }
                .finish()
            }
            Item::Call { part, call, at } => {
                let call = ObjectWriter::new()
                    .fields(&call, &["id", "name", "args"])
                    .field("id", self.draft.call_id(at))
                    .field("name", tool_name(self.draft.call_name(at)).as_ref())
                    .raw("args", &object_text(self.draft.text(at)))
                    .finish()?;
                ObjectWriter::new()
                    .fields(&part, &["functionCall"])
                    .raw("functionCall", call.get())
                    .finish()
            }
        }
    }

    /// Takes over token counts. Each response has the totals so far.
    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let usage = &mut self.draft.usage;
        let cached = counts.cached_content_token_count.unwrap_or_default();
        let prompt = counts.prompt_token_count.unwrap_or_default();
        usage.input = prompt.saturating_sub(cached) + counts.tool_use_prompt_token_count.unwrap_or_default();
        usage.cache_read = cached;
        let written = counts.candidates_token_count.unwrap_or_default();
        usage.reasoning = counts.thoughts_token_count.unwrap_or_default();
        usage.output = written + usage.reasoning;
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => StopReason::Refusal,
        // `STOP`, and any reason added later.
        _ => StopReason::EndTurn,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default, deserialize_with = "if_readable")]
    usage_metadata: Option<Counts>,
    #[serde(borrow)]
    model_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default, deserialize_with = "token_count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    tool_use_prompt_token_count: Option<u64>,
}
