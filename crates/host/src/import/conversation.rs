//! A conversation that is being imported, from any agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::{CallId, Event, FinishReason, Label, Message, Part, Role, SessionId};
use windlass_core::clock::Timestamp;
use windlass_core::log::interrupted;
use windlass_core::message::{Binary, ImageUrl, Reasoning, ToolCall, ToolResult};

use super::Imported;
use crate::prompt;

/// Maximum length of a title in characters, and the maximum length of a tool name that every provider
/// accepts.
const MAX_TITLE: usize = 50;
const MAX_TOOL_NAME: usize = 64;

/// Messages of users and models, in order. Results are matched with their calls, even if they come late.
#[derive(Default)]
pub(super) struct Conversation {
    turns: Vec<Turn>,
    /// The agent the conversation was with, as a provider name.
    pub(super) provider: &'static str,
    pub(super) title: Option<String>,
    pub(super) place: Option<String>,
    pub(super) model: Option<String>,
    pub(super) skipped: BTreeMap<String, usize>,
    pub(super) damaged: Vec<String>,
}

/// One message, and the results of its calls.
struct Turn {
    role: Role,
    parts: Vec<Part>,
    time: Timestamp,
    model: Option<String>,
    /// Identifies a reply that is written in several pieces.
    reply: Option<String>,
    results: Vec<(CallId, ToolResult)>,
}

impl Conversation {
    pub(super) fn new(provider: &'static str, damaged: Vec<String>) -> Self {
        Self {
            provider,
            damaged,
            ..Self::default()
        }
    }

    /// Counts skipped content.
    pub(super) fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// Drops all messages so far: a summary replaces them.
    pub(super) fn start_over(&mut self) {
        self.turns.clear();
    }

    pub(super) fn user(&mut self, parts: Vec<Part>, time: Timestamp) {
        if !parts.is_empty() {
            self.turns.push(Turn {
                role: Role::User,
                parts,
                time,
                model: None,
                reply: None,
                results: Vec::new(),
            });
        }
    }

    /// Adds a reply of the model. Pieces of the same reply become one message, until a result comes between
    /// them.
    pub(super) fn assistant(&mut self, parts: Vec<Part>, time: Timestamp, reply: Option<&str>) {
        if parts.is_empty() {
            return;
        }
        let reply = reply.map(str::to_owned);
        let last = self
            .turns
            .last_mut()
            .filter(|last| last.role == Role::Assistant && last.results.is_empty() && last.reply == reply);
        match last {
            Some(last) => last.parts.extend(parts),
            None => self.turns.push(Turn {
                role: Role::Assistant,
                parts,
                time,
                model: self.model.clone(),
                reply,
                results: Vec::new(),
            }),
        }
    }

    /// Adds a tool result. A result without a call is skipped.
    pub(super) fn result(&mut self, call: &str, content: Content, is_error: bool) {
        let id = CallId::from(call);
        let waits = |turn: &&mut Turn| turn.waits_for(&id).is_some();
        let Some(turn) = self.turns.iter_mut().rev().find(waits) else {
            self.skip("result without a call");
            return;
        };
        let name = turn.waits_for(&id).unwrap_or_default();
        let result = ToolResult {
            call_id: id.clone(),
            name,
            content: content.text,
            metadata: None,
            is_error,
            images: content.images,
        };
        turn.results.push((id, result));
    }

    /// Returns the session to store: every call has a result, and the turn has ended.
    pub(super) fn imported(self, cwd: &Path, now: Timestamp) -> Imported {
        let created_at = self.turns.first().map(|turn| turn.time);
        let title = self.title.clone().or_else(|| self.first_words());
        let mut messages: Vec<Message> = Vec::new();
        let session = SessionId::from("");
        for (number, turn) in self.turns.into_iter().enumerate() {
            let Turn {
                role,
                mut parts,
                time,
                model,
                mut results,
                ..
            } = turn;
            // The model needs to know the working folder when the session is resumed.
            if number == 0 && role == Role::User {
                parts.insert(0, Part::text(prompt::environment(cwd)));
            }
            let message = Message {
                model,
                ..Message::new(&session, role, parts, time)
            };
            let answers: Vec<Part> = message
                .calls()
                .map(|call| Part::ToolResult(take(&mut results, call)))
                .collect();
            messages.push(message);
            if !answers.is_empty() {
                messages.push(Message::new(&session, Role::Tool, answers, time));
            }
        }
        let count = messages.len();
        let mut events = Vec::new();
        let end = end(messages.last());
        for (number, message) in messages.into_iter().enumerate() {
            let time = message.created_at;
            events.push((
                time,
                Event::Message {
                    message: Arc::new(message),
                },
            ));
            if number == 0 {
                let (provider, model) = (self.provider.to_owned(), self.model.clone().unwrap_or_default());
                events.push((time, Event::Start { provider, model }));
            }
        }
        // The import counts as the latest activity in the session.
        events.push((now, end));
        Imported {
            id: None,
            label: Label {
                title,
                ..Label::default()
            },
            place: self.place,
            created_at,
            events,
            messages: count,
            skipped: self.skipped,
            damaged: self.damaged,
        }
    }

    fn first_words(&self) -> Option<String> {
        let first = self.turns.iter().find(|turn| turn.role == Role::User)?;
        let texts = first.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join(" ");
        Some(windlass_service::format::cut(&text, MAX_TITLE)).filter(|title| !title.is_empty())
    }
}

impl Turn {
    /// Returns the tool of a call that has no result yet.
    fn waits_for(&self, id: &CallId) -> Option<String> {
        let mut calls = self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) if call.id == *id => Some(&call.name),
            _ => None,
        });
        let answered = self.results.iter().filter(|(known, _)| known == id).count();
        calls.nth(answered).cloned()
    }
}

/// Returns the result of a call, or the notice that it may have run.
fn take(results: &mut Vec<(CallId, ToolResult)>, call: &ToolCall) -> ToolResult {
    match results.iter().position(|(id, _)| *id == call.id) {
        Some(place) => results.remove(place).1,
        None => interrupted(call),
    }
}

/// Derives the end of the conversation from its last message.
fn end(last: Option<&Message>) -> Event {
    match last {
        Some(last) if last.role == Role::Assistant => Event::Final {
            content: last.text(),
            finish: FinishReason::EndTurn,
        },
        _ => Event::Canceled {
            message: "The session was imported before it had an answer.".to_owned(),
        },
    }
}

/// Result of a tool call.
#[derive(Default)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) images: Vec<Binary>,
}

impl Content {
    /// Reads a text, or a list of blocks with texts and images.
    pub(super) fn of(value: &Value) -> Self {
        let mut content = Self::default();
        let blocks = match value {
            Value::String(text) => {
                content.text.clone_from(text);
                return content;
            }
            Value::Array(blocks) => blocks.as_slice(),
            Value::Null => return content,
            other => {
                content.text = other.to_string();
                return content;
            }
        };
        let mut texts = Vec::new();
        for part in blocks.iter().filter_map(block) {
            match part {
                Part::Text(part) => texts.push(part.text),
                Part::Binary(image) => content.images.push(image),
                _ => {}
            }
        }
        content.text = texts.join("\n");
        content
    }
}

/// Reads a block of text or an image, in the notation all formats share; `None` for any other.
pub(super) fn block(block: &Value) -> Option<Part> {
    let text = |key: &str| block[key].as_str().filter(|text| !text.is_empty());
    match block["type"].as_str()? {
        "text" | "input_text" | "output_text" => text("text").map(Part::text),
        "input_image" => Some(Part::ImageUrl(ImageUrl {
            url: text("image_url")?.to_owned(),
            detail: None,
        })),
        "image" => {
            let source = &block["source"];
            let (mime, data) = match source.is_object() {
                true => (source["media_type"].as_str()?, source["data"].as_str()?),
                false => (text("mimeType")?, text("data")?),
            };
            Some(Part::Binary(Binary {
                path: "image".to_owned(),
                mime: mime.to_owned(),
                data: data.to_owned(),
            }))
        }
        _ => None,
    }
}

/// Returns the parts of a user message: a text, or blocks.
pub(super) fn parts(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) if !text.trim().is_empty() => vec![Part::text(text)],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

/// Returns the model's reasoning. It is only displayed: no provider accepts another provider's reasoning.
pub(super) fn thought(text: &str) -> Option<Part> {
    let text = text.trim();
    (!text.is_empty()).then(|| {
        Part::Reasoning(Reasoning {
            text: text.to_owned(),
            ..Reasoning::default()
        })
    })
}

/// Returns a call, with a tool name that every provider accepts.
pub(super) fn call(id: &str, name: &str, input: String) -> Part {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let fine = name
        .chars()
        .map(|letter| if is_fine(letter) { letter } else { '_' });
    let mut name: String = fine.take(MAX_TOOL_NAME).collect();
    if name.is_empty() {
        name = "tool".to_owned();
    }
    Part::ToolCall(ToolCall {
        id: CallId::from(id),
        name,
        input,
        finished: true,
    })
}

/// Parses a time in the notations all formats share: RFC 3339, or milliseconds.
pub(super) fn time(value: &Value) -> Timestamp {
    let millis = match value {
        Value::String(text) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|time| u64::try_from(time.as_millisecond()).ok()),
        value => value.as_u64(),
    };
    Timestamp(millis.unwrap_or_default())
}
