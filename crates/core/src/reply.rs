//! Sends one request to the model. Never fails: every failure is an answer.

use std::sync::Arc;

use futures_util::StreamExt;

use crate::clock::Timestamp;
use crate::context::Context;
use crate::event::{DeltaKind, Event};
use crate::id::SessionId;
use crate::message::{Message, Part, Role};
use crate::model::Usage;
use crate::provider::{
    Completion, Prefix, ProviderError, ProviderErrorKind, ProviderEvent, Request, RetryNotice, ToolChoice,
};
use crate::run::{Config, Ports};
use crate::turn::{Ask, LAST_WORD_PROMPT, ModelAnswer};

/// Sends `history` to the model and shows the reply as it arrives.
pub(crate) async fn reply(
    config: &Config,
    ports: &Ports,
    context: &mut Context,
    history: &[Arc<Message>],
    ask: Ask,
) -> ModelAnswer {
    if ports.cancel.is_cancelled() {
        return ModelAnswer::Canceled { partial: None };
    }
    let session = history
        .last()
        .map_or_else(|| SessionId::from(""), |message| message.session_id.clone());
    let mut listener = Listener {
        config,
        ports,
        session,
        text: String::new(),
        first: None,
        chunks: 0,
    };
    let mut stream = ports
        .provider
        .stream(listener.request(context.prepare(history).to_vec(), ask));
    let mut canceled = std::pin::pin!(ports.cancel.cancelled());
    loop {
        let event = tokio::select! {
            biased;
            () = &mut canceled => return ModelAnswer::Canceled { partial: listener.partial() },
            event = stream.next() => event,
        };
        let Some(event) = event else {
            let error = ProviderError::new(ProviderErrorKind::Network, "the reply broke off before its end");
            return ModelAnswer::Failed {
                error,
                partial: listener.partial(),
            };
        };
        if let Some(answer) = listener.hear(event).await {
            return answer;
        }
    }
}

struct Listener<'a> {
    config: &'a Config,
    ports: &'a Ports,
    session: SessionId,
    text: String,
    /// Time of the first piece of the reply.
    first: Option<Timestamp>,
    /// Pieces of the reply so far.
    chunks: u64,
}

impl Listener<'_> {
    fn request(&self, mut messages: Vec<Arc<Message>>, ask: Ask) -> Request {
        let (prefix, tool_choice) = match ask {
            Ask::Iteration => (Arc::clone(&self.config.prefix), self.config.tool_choice.clone()),
            Ask::LastWord => {
                let now = self.ports.clock.now();
                messages.push(Arc::new(Message::user(&self.session, LAST_WORD_PROMPT, now)));
                let system = self.config.prefix.system.clone();
                (
                    Arc::new(Prefix {
                        system,
                        ..Prefix::default()
                    }),
                    ToolChoice::None,
                )
            }
        };
        Request {
            prefix,
            messages,
            tool_choice,
            max_output: self.config.max_output,
            session: self.session.clone(),
            cancel: self.ports.cancel.child_token(),
        }
    }

    async fn hear(&mut self, event: ProviderEvent) -> Option<ModelAnswer> {
        match event {
            ProviderEvent::ContentDelta(text) => {
                self.text.push_str(&text);
                self.show(DeltaKind::Text, text);
            }
            ProviderEvent::ThinkingDelta(text) => self.show(DeltaKind::Thinking, text),
            ProviderEvent::ToolUseDelta { json, .. } => self.show(DeltaKind::ToolInput, json),
            ProviderEvent::ContentStart
            | ProviderEvent::ContentStop
            | ProviderEvent::ToolUseStart { .. }
            | ProviderEvent::ToolUseStop { .. } => {}
            ProviderEvent::Warning(message) => self.record(Event::Warning { message }).await,
            ProviderEvent::Retry(notice) => self.retrying(notice).await,
            ProviderEvent::Complete(completion) => return Some(self.complete(*completion)),
            ProviderEvent::Error(_) if self.ports.cancel.is_cancelled() => {
                return Some(ModelAnswer::Canceled {
                    partial: self.partial(),
                });
            }
            ProviderEvent::Error(error) => {
                return Some(ModelAnswer::Failed {
                    error,
                    partial: self.partial(),
                });
            }
        }
        None
    }

    fn show(&mut self, kind: DeltaKind, text: String) {
        self.first.get_or_insert_with(|| self.ports.clock.now());
        self.chunks += 1;
        self.ports.events.live(Event::Delta { kind, text });
    }

    /// Records an event. A lost notice about a retry does not fail the turn; the record is checked with every
    /// state event.
    async fn record(&self, event: Event) {
        let _ = self.ports.events.record(event).await;
    }

    async fn retrying(&mut self, notice: RetryNotice) {
        if notice.discard {
            self.text.clear();
            (self.first, self.chunks) = (None, 0);
        }
        self.record(Event::Retry {
            attempt: notice.attempt,
            max_attempts: notice.max_attempts,
            delay_ms: u64::try_from(notice.delay.as_millis()).unwrap_or(u64::MAX),
            kind: notice.error.kind,
            message: notice.error.message,
            discard: notice.discard,
        })
        .await;
    }

    fn complete(&self, completion: Completion) -> ModelAnswer {
        let now = self.ports.clock.now();
        let mut message = Message::new(&self.session, Role::Assistant, completion.parts, now);
        message.created_at = self.first.unwrap_or(now);
        message.model = Some(completion.model);
        message.origin = completion.origin;
        ModelAnswer::Complete {
            message,
            stop: completion.stop,
            usage: Usage {
                chunks: self.chunks,
                ..completion.usage
            },
        }
    }

    /// Returns the text that was shown before the reply broke off. Incomplete calls and unsigned reasoning
    /// are dropped, because they would make the history invalid.
    fn partial(&self) -> Option<Message> {
        if self.text.trim().is_empty() {
            return None;
        }
        let parts = vec![Part::text(self.text.clone())];
        let mut message = Message::new(&self.session, Role::Assistant, parts, self.ports.clock.now());
        message.model = Some(self.ports.provider.model().id.clone());
        Some(message)
    }
}
