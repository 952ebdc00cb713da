//! What a front end may ask of Windlass, and what it hears back.
//!
//! A front end — the terminal, the web page, an editor, a pipe — sees only this crate and the plain
//! data of `windlass-core` through it. It submits an input through a [`Client`] and reads
//! [`Envelope`]s until a terminal one; it never sees a session's insides, a provider or a tool.
//!
//! The types to know: [`Client`], [`Submission`], [`EventStream`], [`Envelope`], [`ClientError`].
//!
//! Deliberately absent: anything about HTTP, terminals or storage, and any way to reach a running
//! turn but through its session id.

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::stream::BoxStream;

pub use windlass_core::event::{Asking, DeltaKind, EVENT_VERSION, Envelope, Event, FailureKind, StepStatus};
pub use windlass_core::id::{CallId, MessageId, SessionId};
pub use windlass_core::message::{FinishReason, Message, Part, Role};
pub use windlass_core::model::Usage;
pub use windlass_core::permission::Answer;
pub use windlass_core::provider::ProviderErrorKind;

/// What a user wants done.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The session it belongs to.
    pub session: SessionId,
    /// The input, in order.
    pub parts: Vec<Part>,
}

impl Submission {
    /// A text for `session`.
    pub fn text(session: SessionId, text: impl Into<String>) -> Self {
        Self {
            session,
            parts: vec![Part::text(text)],
        }
    }
}

/// The way in. Implemented by whatever runs turns; used by every front end.
#[async_trait]
pub trait Client: Send + Sync {
    /// Takes an input and returns the events of the turn it starts, at once. Must not wait for the model.
    ///
    /// # Errors
    /// When the input is not taken; then nothing was stored and nothing runs.
    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError>;

    /// Stops the session's running turn. The stream still ends with its own terminal event. Returns
    /// whether there was a turn to stop.
    async fn cancel(&self, session: &SessionId) -> bool;

    /// Answers a permission request or a question of the session's running turn. Returns whether it was waited for.
    async fn reply(&self, session: &SessionId, call: &CallId, reply: Reply) -> bool;
}

/// What a person says to a [`Asking::PermissionRequest`] or an [`Asking::Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a permission request.
    Permission(Answer),
    /// To a question.
    Text(String),
}

/// Why an input was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The session runs a turn already.
    #[error("session {0} is busy with another turn")]
    Busy(SessionId),
    /// The input has no content.
    #[error("the input is empty")]
    Empty,
}

/// The events of one turn. The last one is terminal.
pub struct EventStream(BoxStream<'static, Envelope>);

impl EventStream {
    /// Wraps a stream whose last event is terminal.
    pub fn new(events: impl Stream<Item = Envelope> + Send + 'static) -> Self {
        Self(Box::pin(events))
    }
}

impl Stream for EventStream {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        self.0.as_mut().poll_next(cx)
    }
}
