//! Answers of Chat Completions: whole, or as a stream. Responses share how a turn is followed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream as streams};
use serde_json::{Value, json};
use windlass_api::{
    Answer, Backend, DeltaKind, Envelope, Event, EventStream, FinishReason, SessionId, Usage, UserReply,
    Waiting,
};

use crate::app::ServerPorts;
use crate::carried::reply_soon;

/// A turn and its client.
pub(super) struct Turn {
    pub(super) ports: ServerPorts,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) session: SessionId,
    pub(super) events: EventStream,
    /// True if the turn continues when the client leaves.
    pub(super) is_detached: bool,
    pub(super) shows_reasoning: bool,
}

/// Stops the turn when the client leaves.
pub(super) struct Leaving {
    backend: Arc<dyn Backend>,
    session: SessionId,
    pub(super) is_over: bool,
}

impl Leaving {
    pub(super) fn of(turn: &Turn) -> Self {
        Self {
            backend: Arc::clone(&turn.ports.backend),
            session: turn.session.clone(),
            is_over: turn.is_detached,
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.is_over {
            let (backend, session) = (Arc::clone(&self.backend), self.session.clone());
            tokio::spawn(async move { backend.cancel(&session).await });
        }
    }
}

/// The answer so far.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) usage: Usage,
    refused: Vec<String>,
    pub(super) end: Option<(String, &'static str)>,
}

impl Heard {
    /// Applies an event. A question is answered with no.
    pub(super) fn apply(&mut self, turn: (&ServerPorts, &SessionId), event: &Event) {
        match event {
            Event::Usage { usage, .. } => {
                self.usage.add(usage);
            }
            Event::Waiting(Waiting::PermissionRequest {
                call_id,
                tool,
                subjects,
                ..
            }) => {
                self.refused
                    .push(format!("{tool} {}", subjects.join(", ")).trim_end().to_owned());
                reply_soon(turn.0, turn.1, call_id, UserReply::Permission(Answer::No));
            }
            Event::Waiting(Waiting::Question { call_id, .. }) => {
                let text = "Nobody can answer here: decide yourself, and say what you assumed.";
                reply_soon(turn.0, turn.1, call_id, UserReply::Text(text.to_owned()));
            }
            Event::Final { content, finish } => {
                let reason = if *finish == FinishReason::MaxTokens {
                    "length"
                } else {
                    "stop"
                };
                self.end = Some((content.clone(), reason));
            }
            Event::Canceled { message } => self.end = Some((message.clone(), "stop")),
            Event::Failed { message, .. } => self.end = Some((self.failure(message), "stop")),
            _ => {}
        }
    }

    /// Explains a failure, and how to allow what was refused.
    fn failure(&self, message: &str) -> String {
        match self.refused.as_slice() {
            [] => message.to_owned(),
            refused => format!(
                "Refused, because nobody could be asked: {}. Allow it with a rule (`security.allow` in the settings of \
                 the server), or start the server with another --mode.",
                refused.join("; ")
            ),
        }
    }

    fn usage(&self) -> Value {
        let prompt = self.usage.input + self.usage.cache_read + self.usage.cache_write;
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": self.usage.output,
            "total_tokens": prompt + self.usage.output,
            "prompt_tokens_details": { "cached_tokens": self.usage.cache_read },
            "completion_tokens_details": { "reasoning_tokens": self.usage.reasoning },
        })
    }
}

/// Waits for the end of the turn.
pub(super) async fn whole(mut turn: Turn) -> Value {
    let mut leaving = Leaving::of(&turn);
    let mut heard = Heard::default();
    while let Some(envelope) = turn.events.next().await {
        heard.apply((&turn.ports, &turn.session), &envelope.event);
    }
    leaving.is_over = true;
    let (text, reason) = heard.end.clone().unwrap_or_default();
    json!({
        "id": turn.id,
        "object": "chat.completion",
        "created": turn.created,
        "model": turn.model,
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": text, "refusal": null },
            "logprobs": null,
            "finish_reason": if reason.is_empty() { "stop" } else { reason },
        }],
        "usage": heard.usage(),
    })
}

/// Passes the turn on as it happens.
pub(super) fn stream(turn: Turn, with_usage: bool) -> Response {
    event_stream(chunks(turn, with_usage))
}

/// Sends frames as server-sent events.
pub(super) fn event_stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(frames.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// State of a stream.
struct Streaming {
    turn: Turn,
    leaving: Leaving,
    heard: Heard,
    ready: VecDeque<Bytes>,
    with_usage: bool,
    has_text: bool,
}

fn chunks(turn: Turn, with_usage: bool) -> impl Stream<Item = Bytes> {
    let mut streaming = Streaming {
        leaving: Leaving::of(&turn),
        heard: Heard::default(),
        ready: VecDeque::new(),
        with_usage,
        has_text: false,
        turn,
    };
    streaming.chunk(&json!({ "role": "assistant", "content": "" }), None);
    streams::unfold(streaming, |mut streaming| async move {
        let chunk = streaming.next().await?;
        Some((chunk, streaming))
    })
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        while self.ready.is_empty() {
            match self.turn.events.next().await {
                Some(envelope) => self.take(&envelope),
                None if self.leaving.is_over && self.heard.end.is_some() => return None,
                None => self.end("stop"),
            }
        }
        self.ready.pop_front()
    }

    fn take(&mut self, envelope: &Envelope) {
        self.heard
            .apply((&self.turn.ports, &self.turn.session), &envelope.event);
        match &envelope.event {
            Event::Delta {
                kind: DeltaKind::Text,
                text,
            } => {
                self.has_text = true;
                self.chunk(&json!({ "content": text }), None);
            }
            Event::Delta {
                kind: DeltaKind::Thinking,
                text,
            } if self.turn.shows_reasoning => {
                self.chunk(&json!({ "reasoning_content": text }), None);
            }
            Event::StepStart { title, .. } if self.turn.shows_reasoning => {
                self.chunk(&json!({ "reasoning_content": format!("\n[{title}]\n") }), None);
            }
            Event::StepStart { title, .. } => {
                let title: String = title.chars().filter(|sign| !sign.is_control()).collect();
                self.ready.push_back(Bytes::from(format!(": tool {title}\n\n")));
                // Text before a tool call and text after it are two paragraphs.
                if std::mem::take(&mut self.has_text) {
                    self.chunk(&json!({ "content": "\n\n" }), None);
                }
            }
            event if event.is_terminal() => {
                let (text, reason) = self.heard.end.clone().unwrap_or_default();
                let is_shown = matches!(event, Event::Final { .. }) && self.has_text;
                if !is_shown {
                    self.chunk(&json!({ "content": text }), None);
                }
                self.end(reason);
            }
            _ => {}
        }
    }

    fn end(&mut self, reason: &str) {
        self.leaving.is_over = true;
        self.heard.end.get_or_insert_with(Default::default);
        self.chunk(&json!({}), Some(reason));
        if self.with_usage {
            let mut chunk = self.frame();
            chunk["usage"] = self.heard.usage();
            self.push(&chunk);
        }
        self.ready.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    fn chunk(&mut self, delta: &Value, reason: Option<&str>) {
        let mut chunk = self.frame();
        chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        self.push(&chunk);
    }

    fn frame(&self) -> Value {
        json!({
            "id": self.turn.id,
            "object": "chat.completion.chunk",
            "created": self.turn.created,
            "model": self.turn.model,
            "choices": [],
        })
    }

    fn push(&mut self, chunk: &Value) {
        self.ready.push_back(Bytes::from(format!("data: {chunk}\n\n")));
    }
}
