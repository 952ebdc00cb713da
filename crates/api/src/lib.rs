//! Requests of front ends to Windlass, and the events they receive.
//!
//! A front end — the terminal, the web page, an editor, a pipe — sees only this crate and the plain
//! data of `windlass-core` through it. It submits an input through a [`Client`] and reads
//! [`Envelope`]s until a terminal one; it never sees a session's insides, a provider or a tool.
//!
//! A front end that only passes messages on implements a [`Channel`], and [`converse`] does the rest.
//!
//! Slash commands go through [`Commands`] and never reach a model. [`Records`] and [`Presence`] only read:
//! stored sessions, the state of a live session, and what a turn waits for.
//!
//! The types to know: [`Client`], [`Submission`], [`EventStream`], [`Envelope`], [`Commands`], [`Channel`],
//! [`ClientError`].
//!
//! # JSON
//!
//! Every type here serializes, except the traits, [`EventStream`] and the parts of an [`Approval`], so that a
//! front end can run in another process. Names are in snake case. An enum whose variants carry data is `{"type": "…", "data": …}`, an enum
//! without data is a string, and a [`SessionKey`] is the string it is written as. An [`Envelope`] and an
//! [`Entry`] have the fields of their event beside their own. `json_tests.rs` shows an example of each type.
//!
//! Deliberately absent: anything about HTTP, terminals or storage, and any way to reach a running
//! turn but through its session id.

mod approval;
mod channel;
mod cluster;
mod command;
mod connection;
mod context;
mod goal;
mod inputs;
mod record;
mod senders;

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::stream::{self, BoxStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::approval::{Approval, ApprovalChoice, ApprovalKey, Cleaning, HOLD_MS, Pressed};
pub use self::channel::{Channel, ChannelError, Ended, Input, Interrupt, converse};
pub use self::cluster::{CancelPost, ChildQuestion, FolderMade, LocalSessions, SessionFolders};
pub use self::command::{
    CommandInfo, CommandLine, CommandReply, CommandSource, Commands, Follow, command_line, is_own_call,
    own_call, typed_command,
};
pub use self::connection::{Connections, Offer};
pub use self::context::{ContextReport, ContextSpan, SpanOrigin};
pub use self::goal::{GoalRequest, NoteKind, goal_note};
pub use self::inputs::SessionInputs;
pub use self::record::{Find, FolderFacts, Overview, Presence, Records, Wait, WaitOn, user_messages};
pub use self::senders::{Approvers, HeldMessages, SenderMessage};
pub use windlass_core::checkpoint::{Changed, Checkpoint, FileChange};
pub use windlass_core::clock::Timestamp;
pub use windlass_core::event::{
    CheckRun, ClaimCheck, ClaimStatus, Criterion, DeltaKind, EVENT_VERSION, Envelope, Event, Evidence,
    FailureKind, GoalCompletion, GoalEvent, GoalRun, GoalState, GoalStop, Plan, PlanStep, SessionEvent,
    StepState, StepStatus, Waiting,
};
pub use windlass_core::id::{CallId, MessageId, SessionId};
pub use windlass_core::log::{AgentRow, Entry, Label, SessionInfo, SessionKey, SessionStatus, UserName};
pub use windlass_core::message::{Binary, FinishReason, Message, Part, Role};
pub use windlass_core::model::{Usage, dollars, dollars_or_more};
pub use windlass_core::permission::Answer;
pub use windlass_core::provider::ProviderErrorKind;
pub use windlass_core::tool::Category;
pub use windlass_core::turn::DENIED_TEXT;

/// Input of a user for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The session it belongs to.
    pub session: SessionId,
    /// The input, in order.
    pub parts: Vec<Part>,
    /// Action if the session is busy.
    #[serde(default)]
    pub on_busy: OnBusy,
    /// Id of its message; generated if `None`. A sender that repeats a request can tell by it that the first one
    /// arrived: [`Records::sent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
}

/// Action for an input to a session that runs a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Refuse the input.
    #[default]
    Refuse,
    /// Queue the input until the turn ends.
    Queue,
    /// Give the input to the running turn between two iterations.
    Steer,
}

/// Way to start or open a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Begin {
    /// Create a session.
    New {
        /// Id of the session; generated if `None`.
        id: Option<SessionId>,
        /// Folder of the session.
        place: String,
        /// Title, name and key.
        label: Label,
        /// Session that starts this one.
        parent: Option<SessionId>,
    },
    /// Open the session that has a channel's key, or create one with that key.
    Keyed {
        /// The key.
        key: SessionKey,
        /// Folder of a new session.
        place: String,
    },
    /// Open an existing session.
    Resume(SessionId),
    /// Create a session that starts with the history of another.
    Fork {
        /// Session to copy.
        of: SessionId,
        /// Number of the last entry to copy; all entries if `None`.
        after: Option<u64>,
        /// Id of the new session; generated if `None`.
        id: Option<SessionId>,
        /// Folder of the new session; the other one's folder if `None`.
        place: Option<String>,
    },
    /// Do one of the others for a user: sessions of other users do not exist for it, and a new one belongs to it.
    As {
        /// The user.
        user: UserName,
        /// Session to create or open.
        begin: Box<Begin>,
    },
    /// Switch from one session to another. The first is released as soon as it is idle.
    Instead {
        /// Session to leave.
        of: SessionId,
        /// Session to switch to.
        begin: Box<Begin>,
    },
}

impl Submission {
    /// Creates a submission of a text.
    pub fn text(session: SessionId, text: impl Into<String>) -> Self {
        Self {
            session,
            parts: vec![Part::text(text)],
            on_busy: OnBusy::default(),
            id: None,
        }
    }
}

/// Main interface of a front end, implemented by the service that runs turns.
#[async_trait]
pub trait Client: Send + Sync {
    /// Creates or opens a session. This process owns the session until it has been idle for a while.
    ///
    /// # Errors
    /// When there is no such session, another process owns it, or it cannot be stored.
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError>;

    /// Accepts an input and returns at once with the events of the turn it starts. Must not wait for the
    /// model. The input is stored when this returns.
    ///
    /// # Errors
    /// When the input is refused; then nothing was stored and nothing runs.
    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError>;

    /// Stops the session's running turn. Its stream still ends with a terminal event. Returns true if a turn
    /// was running.
    async fn cancel(&self, session: &SessionId) -> bool;

    /// Answers a permission request or a question of the session's running turn. Returns true if the turn was
    /// waiting for the answer.
    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool;

    /// Returns the events of a session after a number, including future ones. A slow reader misses live
    /// events and is notified of the gap; it never misses state events.
    ///
    /// # Errors
    /// When there is no such session.
    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError>;

    /// Compacts the conversation now and returns the events of the compaction.
    ///
    /// # Errors
    /// When the session is busy or does not exist.
    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError>;
}

/// All interfaces that a service offers a front end.
pub trait Backend: Client + Commands + Records + Presence {}

impl<T: Client + Commands + Records + Presence> Backend for T {}

/// Answer of a user to a [`Waiting::PermissionRequest`] or a [`Waiting::Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum UserReply {
    /// Answer to a permission request.
    Permission(Answer),
    /// Answer to a question.
    Text(String),
}

/// Error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ClientError {
    /// The session already runs a turn, or another process has it open.
    #[error("session {0} is busy: it runs a turn, or is open in another Windlass")]
    Busy(SessionId),
    /// The queue of the session is full.
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
    /// The command does not exist or has wrong arguments.
    #[error("{0}")]
    CommandUsage(String),
    /// The command failed, and nothing was changed.
    #[error("{0}")]
    Command(String),
    /// The command cannot run during a turn.
    #[error("/{command} has to wait: a turn runs in this session; stop it, or try again when it has ended")]
    CommandBusy {
        /// The session.
        session: SessionId,
        /// The command.
        command: String,
    },
    /// The environment of the session could not be created.
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

/// A stream without events.
impl Default for EventStream {
    fn default() -> Self {
        Self::new(stream::empty())
    }
}

/// Reads nothing: the stream of a deserialized [`Follow::Watch`] is empty.
impl<'de> Deserialize<'de> for EventStream {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<serde::de::IgnoredAny>::deserialize(deserializer)?;
        Ok(Self::default())
    }
}

impl Stream for EventStream {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        self.0.as_mut().poll_next(cx)
    }
}

#[cfg(test)]
mod json_tests;
