//! Answers of Responses: whole, or as a stream. Both are made by the same steps, so that the response at the end of a
//! stream is the one that a whole answer would have been.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream as streams};
use serde_json::{Map, Value, json};
use windlass_api::{DeltaKind, Envelope, Event};

use super::response_id;
use crate::openai::answer::{Heard, Leaving, Turn, event_stream};

/// Waits for the end of the turn.
pub(super) async fn whole(turn: Turn, echo: Map<String, Value>) -> Value {
    let mut made = Making::new(turn, echo);
    while made.next().await.is_some() {}
    made.response()
}

/// Passes the turn on as it happens.
pub(super) fn stream(turn: Turn, echo: Map<String, Value>) -> Response {
    event_stream(frames(Making::new(turn, echo)))
}

fn frames(made: Making) -> impl Stream<Item = Bytes> {
    streams::unfold(made, |mut made| async move {
        let frame = made.next().await?;
        Some((frame, made))
    })
}

/// A response in the making. Text between two tool calls is a message of its own.
struct Making {
    turn: Turn,
    leaving: Leaving,
    heard: Heard,
    echo: Map<String, Value>,
    id: String,
    status: &'static str,
    error: Value,
    /// Texts of the messages so far.
    messages: Vec<String>,
    is_open: bool,
    number: u64,
    ready: VecDeque<Bytes>,
}

impl Making {
    fn new(turn: Turn, echo: Map<String, Value>) -> Self {
        Self {
            leaving: Leaving::of(&turn),
            id: String::new(),
            heard: Heard::default(),
            echo,
            status: "in_progress",
            error: Value::Null,
            messages: Vec::new(),
            is_open: false,
            number: 0,
            ready: VecDeque::new(),
            turn,
        }
    }

    /// Returns the next frame; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        while self.ready.is_empty() {
            if self.status != "in_progress" {
                return None;
            }
            match self.turn.events.next().await {
                Some(envelope) => self.take(&envelope),
                None => self.end("failed", "the session was closed"),
            }
        }
        self.ready.pop_front()
    }

    fn take(&mut self, envelope: &Envelope) {
        if self.id.is_empty() && matches!(envelope.event, Event::Start { .. }) {
            self.begin(envelope.seq);
        }
        self.heard
            .apply((&self.turn.ports, &self.turn.session), &envelope.event);
        match &envelope.event {
            Event::Delta {
                kind: DeltaKind::Text,
                text,
            } => self.add(text),
            Event::StepStart { title, .. } => {
                let title: String = title.chars().filter(|sign| !sign.is_control()).collect();
                self.ready.push_back(Bytes::from(format!(": tool {title}\n\n")));
                if self.is_open {
                    // Clients join the texts of all messages.
                    self.add("\n\n");
                    self.close();
                }
            }
            event if event.is_terminal() => {
                let (text, reason) = self.heard.end.clone().unwrap_or_default();
                let is_shown = matches!(event, Event::Final { .. }) && self.is_open;
                if !is_shown && !text.is_empty() {
                    self.add(&text);
                }
                let status = match event {
                    Event::Final { .. } if reason == "length" => "incomplete",
                    Event::Final { .. } => "completed",
                    Event::Canceled { .. } => "cancelled",
                    _ => "failed",
                };
                self.end(status, &text);
            }
            _ => {}
        }
    }

    fn begin(&mut self, start: u64) {
        self.id = response_id(&self.turn.session, start);
        self.tell_whole("response.created");
        self.tell_whole("response.in_progress");
    }

    fn end(&mut self, status: &'static str, text: &str) {
        if self.id.is_empty() {
            self.begin(0);
        }
        self.leaving.is_over = true;
        self.close();
        self.status = status;
        if status == "failed" {
            self.error = json!({ "code": "server_error", "message": text });
        }
        self.tell_whole(match status {
            "completed" => "response.completed",
            "incomplete" => "response.incomplete",
            _ => "response.failed",
        });
    }

    /// Adds to the open message, or opens one.
    fn add(&mut self, text: &str) {
        if !self.is_open {
            self.is_open = true;
            self.messages.push(String::new());
            let item = self.message(self.messages.len() - 1, "in_progress", &[]);
            self.tell("response.output_item.added", json!({ "item": item }));
            self.tell(
                "response.content_part.added",
                json!({ "item_id": self.item_id(), "content_index": 0, "part": part("") }),
            );
        }
        if let Some(message) = self.messages.last_mut() {
            message.push_str(text);
        }
        let delta = json!({ "item_id": self.item_id(), "content_index": 0, "delta": text, "logprobs": [] });
        self.tell("response.output_text.delta", delta);
    }

    fn close(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let text = self.messages.last().cloned().unwrap_or_default();
        let (id, last) = (self.item_id(), self.messages.len().saturating_sub(1));
        self.tell(
            "response.output_text.done",
            json!({ "item_id": id, "content_index": 0, "text": text, "logprobs": [] }),
        );
        self.tell(
            "response.content_part.done",
            json!({ "item_id": id, "content_index": 0, "part": part(&text) }),
        );
        let item = self.message(last, "completed", &[part(&text)]);
        self.tell("response.output_item.done", json!({ "item": item }));
    }

    fn item_id(&self) -> String {
        format!("{}_{}", self.turn.id, self.messages.len())
    }

    fn message(&self, index: usize, status: &str, content: &[Value]) -> Value {
        let id = format!("{}_{}", self.turn.id, index + 1);
        json!({ "type": "message", "id": id, "status": status, "role": "assistant", "content": content })
    }

    /// Returns the response as it is now.
    fn response(&self) -> Value {
        let messages = self.messages.iter().enumerate();
        let output = messages.map(|(index, text)| self.message(index, "completed", &[part(text)]));
        let usage = &self.heard.usage;
        let is_incomplete = self.status == "incomplete";
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.turn.created,
            "status": self.status,
            "error": self.error,
            "incomplete_details": is_incomplete.then(|| json!({ "reason": "max_output_tokens" })),
            "max_output_tokens": null,
            "model": self.turn.model,
            "output": output.collect::<Vec<_>>(),
            "parallel_tool_calls": true,
            "reasoning": { "effort": null, "summary": null },
            "store": true,
            "temperature": null,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": (self.status != "in_progress").then(|| json!({
                "input_tokens": usage.total_input(),
                "input_tokens_details": { "cached_tokens": usage.cache_read },
                "output_tokens": usage.output,
                "output_tokens_details": { "reasoning_tokens": usage.reasoning },
                "total_tokens": usage.total_input() + usage.output,
            })),
        });
        if let Some(response) = response.as_object_mut() {
            response.extend(self.echo.clone());
        }
        response
    }

    fn tell_whole(&mut self, kind: &str) {
        let response = self.response();
        self.push(kind, json!({ "response": response }));
    }

    fn tell(&mut self, kind: &str, mut data: Value) {
        data["output_index"] = json!(self.messages.len().saturating_sub(1));
        self.push(kind, data);
    }

    fn push(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.number);
        self.number += 1;
        self.ready
            .push_back(Bytes::from(format!("event: {kind}\ndata: {data}\n\n")));
    }
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}
