//! What a front end may ask of Windlass, and what it hears back.
//!
//! A front end — the terminal, the web page, an editor, a pipe — sees only this crate and the plain
//! data of `windlass-core` through it. It submits an input through a [`Client`] and reads
//! [`Envelope`]s until a terminal one; it never sees a session's insides, a provider or a tool.
//!
//! A front end that only passes messages on implements a [`Channel`], and [`converse`] does the rest.
//!
//! What a person types after a slash goes through [`Commands`] and never reaches a model by itself. [`Records`] and
//! [`Presence`] are for looking: what is kept, how a session stands, what a turn waits for.
//!
//! The types to know: [`Client`], [`Submission`], [`EventStream`], [`Envelope`], [`Commands`], [`Channel`],
//! [`ClientError`].
//!
//! Deliberately absent: anything about HTTP, terminals or storage, and any way to reach a running
//! turn but through its session id.

mod channel;
mod command;
mod connection;
mod record;

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::stream::BoxStream;

pub use self::channel::{Channel, ChannelError, Ended, Input, Interrupt, converse};
pub use self::command::{
    CommandInfo, CommandLine, CommandReply, CommandSource, Commands, Follow, command_line, is_own_call,
    own_call, typed_command,
};
pub use self::connection::{Connections, Offer};
pub use self::record::{Find, Overview, Presence, Records, Wait, WaitOn, user_messages};
pub use windlass_core::checkpoint::{Changed, Checkpoint, FileChange};
pub use windlass_core::clock::Timestamp;
pub use windlass_core::event::{
    DeltaKind, EVENT_VERSION, Envelope, Event, FailureKind, GoalCompletion, SessionEvent, StepStatus, Waiting,
};
pub use windlass_core::id::{CallId, MessageId, SessionId};
pub use windlass_core::log::{Entry, Label, SessionInfo, SessionKey, SessionStatus};
pub use windlass_core::message::{Binary, FinishReason, Message, Part, Role};
pub use windlass_core::model::{Usage, dollars};
pub use windlass_core::permission::Answer;
pub use windlass_core::provider::ProviderErrorKind;
pub use windlass_core::tool::Category;

/// What a user wants done.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The session it belongs to.
    pub session: SessionId,
    /// The input, in order.
    pub parts: Vec<Part>,
    /// What becomes of it when the session is busy.
    pub on_busy: OnBusy,
}

/// What becomes of an input for a session that runs a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBusy {
    /// It is not taken.
    #[default]
    Refuse,
    /// It waits until the session is free.
    Queue,
    /// The running turn hears it between two iterations.
    Steer,
}

/// How a session begins to be worked in.
#[derive(Debug, Clone)]
pub enum Begin {
    /// A new one.
    New {
        /// Its id; one is made when `None`.
        id: Option<SessionId>,
        /// The folder it works in.
        place: String,
        /// What it is called.
        label: Label,
        /// The session it is started from.
        parent: Option<SessionId>,
    },
    /// The one that a channel's messages go to: the session that has the key, or a new one with it.
    Keyed {
        /// The key.
        key: SessionKey,
        /// The folder a new one works in.
        place: String,
    },
    /// One that exists.
    Resume(SessionId),
    /// A new one that begins with another one's past.
    Fork {
        /// The other one.
        of: SessionId,
        /// Its last entry that counts; all of them when `None`.
        after: Option<u64>,
        /// The id of the new one; one is made when `None`.
        id: Option<SessionId>,
        /// Folder of the new session; the other one's folder if `None`.
        place: Option<String>,
    },
    /// Another one instead of one that is left, which is given back as soon as nothing is left to do in it.
    Instead {
        /// The one that is left.
        of: SessionId,
        /// The other one.
        begin: Box<Begin>,
    },
}

impl Submission {
    /// A text for `session`.
    pub fn text(session: SessionId, text: impl Into<String>) -> Self {
        Self {
            session,
            parts: vec![Part::text(text)],
            on_busy: OnBusy::default(),
        }
    }
}

/// The way in. Implemented by whatever runs turns; used by every front end.
#[async_trait]
pub trait Client: Send + Sync {
    /// Makes a session or takes one up. It is this process's until it has been idle for a while.
    ///
    /// # Errors
    /// When there is no such session, somebody else works in it, or it cannot be stored.
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError>;

    /// Takes an input and returns the events of the turn it starts, at once. Must not wait for the model. The input is
    /// stored when this returns.
    ///
    /// # Errors
    /// When the input is not taken; then nothing was stored and nothing runs.
    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError>;

    /// Stops the session's running turn. The stream still ends with its own terminal event. Returns
    /// whether there was a turn to stop.
    async fn cancel(&self, session: &SessionId) -> bool;

    /// Answers a permission request or a question of the session's running turn. Returns whether it was waited for.
    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool;

    /// The events of a session after a number, those to come included. A reader that is too slow misses live events, and
    /// is told so; state events it never misses.
    ///
    /// # Errors
    /// When there is no such session.
    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError>;

    /// Makes the conversation smaller now, and returns the events of that.
    ///
    /// # Errors
    /// When the session is busy or there is none.
    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError>;
}

/// Everything that runs sessions offers a front end.
pub trait Backend: Client + Commands + Records + Presence {}

impl<T: Client + Commands + Records + Presence> Backend for T {}

/// What a person says to a [`Waiting::PermissionRequest`] or an [`Waiting::Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserReply {
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
    /// Too many inputs wait for the session already.
    #[error("session {0} has too many inputs waiting")]
    QueueFull(SessionId),
    /// There is no such session.
    #[error("there is no session {0}")]
    Unknown(SessionId),
    /// The input has no content.
    #[error("the input is empty")]
    Empty,
    /// The session is being closed.
    #[error("session {0} is being closed")]
    Closed(SessionId),
    /// There is no such command, or it is not written so.
    #[error("{0}")]
    CommandUsage(String),
    /// The command was not carried out, and nothing was changed.
    #[error("{0}")]
    Command(String),
    /// The command has to wait for the running turn.
    #[error("/{command} has to wait: a turn runs in this session; stop it, or try again when it has ended")]
    CommandBusy {
        /// The session.
        session: SessionId,
        /// The command.
        command: String,
    },
    /// What the session needs could not be made.
    #[error("{0}")]
    Setup(String),
    /// The store failed.
    #[error("{0}")]
    Store(String),
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
