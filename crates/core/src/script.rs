//! A provider that answers from a list, for tests and examples without a network.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};

use crate::id::CallId;
use crate::message::{Message, Part, Reasoning, Role, ToolCall};
use crate::model::{Model, Price, Usage};
use crate::provider::{
    Completion, Provider, ProviderError, ProviderErrorKind, ProviderEvent, Request, StopReason, ToolChoice,
};
use crate::tool::ToolSpec;

/// Answers each request with the next scene, and records the requests.
pub struct ScriptedProvider {
    model: Model,
    scenes: Mutex<VecDeque<Scene>>,
    seen: Mutex<Vec<String>>,
}

/// One answer of a script.
#[derive(Debug, Clone)]
pub enum Scene {
    /// A whole reply.
    Reply(Completion),
    /// A failure.
    Fail(ProviderError),
    /// These events, then silence until the request is canceled.
    Hang(Vec<ProviderEvent>),
}

impl Scene {
    /// A reply with text only.
    pub fn text(text: &str) -> Self {
        Self::reply(vec![Part::text(text)], StopReason::EndTurn)
    }

    /// A reply with one call.
    pub fn call(id: &str, name: &str, input: Value) -> Self {
        Self::calls(vec![(id, name, input)])
    }

    /// A reply with several calls.
    pub fn calls(calls: Vec<(&str, &str, Value)>) -> Self {
        let parts = calls
            .into_iter()
            .map(|(id, name, input)| call_part(id, name, &input.to_string()));
        Self::reply(parts.collect(), StopReason::ToolUse)
    }

    /// A reply of any parts.
    pub fn reply(parts: Vec<Part>, stop: StopReason) -> Self {
        let usage = Usage {
            input: 100,
            output: 10,
            ..Usage::default()
        };
        Self::Reply(Completion {
            parts,
            origin: None,
            stop,
            usage,
            model: "scripted".to_owned(),
        })
    }

    /// A failure of `kind`.
    pub fn fail(kind: ProviderErrorKind, message: &str) -> Self {
        Self::Fail(ProviderError::new(kind, message))
    }
}

/// A finished tool call part with raw input.
pub fn call_part(id: &str, name: &str, input: &str) -> Part {
    let (id, name, input) = (CallId::from(id), name.to_owned(), input.to_owned());
    Part::ToolCall(ToolCall {
        id,
        name,
        input,
        finished: true,
    })
}

impl ScriptedProvider {
    /// Creates a provider that answers with `scenes`, in order.
    pub fn new(scenes: impl IntoIterator<Item = Scene>) -> Self {
        let model = Model {
            id: "scripted".to_owned(),
            context_window: 100_000,
            max_output: 4_096,
            price: Some(Price {
                input: 1.0,
                output: 1.0,
                cache_read: 0.1,
                cache_write: 1.25,
            }),
            images: true,
            reasoning: true,
            known: true,
        };
        let scenes = Mutex::new(scenes.into_iter().collect());
        Self {
            model,
            scenes,
            seen: Mutex::new(Vec::new()),
        }
    }

    /// Sets the context window of the model.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.model.context_window = tokens;
        self
    }

    /// Makes the model unable to read images.
    #[must_use]
    pub fn without_images(mut self) -> Self {
        self.model.images = false;
        self
    }

    /// Returns an outline of every request so far, one line per item.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn model(&self) -> &Model {
        &self.model
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(outline(&request));
        let scene = self
            .scenes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        match scene {
            Some(Scene::Reply(completion)) => stream::iter(events_of(completion)).boxed(),
            Some(Scene::Fail(error)) => stream::iter([ProviderEvent::Error(error)]).boxed(),
            Some(Scene::Hang(events)) => {
                let silence = async move {
                    request.cancel.cancelled().await;
                    ProviderEvent::Error(ProviderError::new(ProviderErrorKind::Network, "canceled"))
                };
                stream::iter(events).chain(stream::once(silence)).boxed()
            }
            None => {
                let error =
                    ProviderError::new(ProviderErrorKind::InvalidRequest, "the script has no more scenes");
                stream::iter([ProviderEvent::Error(error)]).boxed()
            }
        }
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        json!(tools)
    }
}

fn events_of(completion: Completion) -> Vec<ProviderEvent> {
    let mut events = Vec::new();
    for part in &completion.parts {
        match part {
            Part::Text(text) => {
                events.push(ProviderEvent::ContentStart);
                let words = text.text.split_inclusive(' ');
                events.extend(words.map(|word| ProviderEvent::ContentDelta(word.to_owned())));
                events.push(ProviderEvent::ContentStop);
            }
            Part::Reasoning(reasoning) => events.push(ProviderEvent::ThinkingDelta(reasoning.text.clone())),
            Part::ToolCall(call) => {
                let id = call.id.to_string();
                events.push(ProviderEvent::ToolUseStart {
                    id: id.clone(),
                    name: call.name.clone(),
                });
                events.push(ProviderEvent::ToolUseDelta {
                    id: id.clone(),
                    json: call.input.clone(),
                });
                events.push(ProviderEvent::ToolUseStop { id });
            }
            _ => {}
        }
    }
    events.push(ProviderEvent::Complete(Box::new(completion)));
    events
}

/// Outlines a request, one line per item.
pub fn outline(request: &Request) -> String {
    let mut lines = Vec::new();
    if !request.prefix.system.is_empty() {
        lines.push(format!("system: {}", request.prefix.system));
    }
    let tools: Vec<_> = request
        .prefix
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    if !tools.is_empty() {
        lines.push(format!("tools: {}", tools.join(", ")));
    }
    if request.tool_choice != ToolChoice::Auto {
        lines.push(format!("tool choice: {:?}", request.tool_choice));
    }
    for message in &request.messages {
        lines.extend(message.parts.iter().filter_map(|part| part_line(message, part)));
    }
    lines.join("\n")
}

fn part_line(message: &Message, part: &Part) -> Option<String> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
    };
    let line = match part {
        Part::Text(text) => text.text.clone(),
        Part::Context(fragment) => fragment.encoded(),
        Part::Reasoning(Reasoning { text, .. }) => format!("(thinks) {text}"),
        Part::ToolCall(call) => format!("{}({})#{}", call.name, call.input, call.id),
        Part::ToolResult(result) => {
            format!(
                "#{}{} {}",
                result.call_id,
                if result.is_error { " error:" } else { ":" },
                result.content
            )
        }
        Part::Compaction(compaction) => format!("(summary) {}", compaction.summary),
        Part::Compressed(compressed) => format!("(compressed) {}", compressed.text),
        Part::Binary(binary) => format!("(file {})", binary.path),
        Part::ImageUrl(image) => format!("(image {})", image.url),
        Part::Finish(_) | Part::Unknown(_) => return None,
    };
    Some(format!("{role}: {line}"))
}
