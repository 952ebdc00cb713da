//! The port between servers: what may be lost.
//!
//! Nothing here needs to be durable. State events that a carrier loses are read from the store, an unanswered question
//! is an error that names the server. A carrier only has to preserve the order of the events of one stream.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, EventStream, SessionId};
use windlass_core::log::Holder;

use crate::moving::MoveOrder;

/// A question to the owner of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnerQuery {
    /// The session.
    pub session: SessionId,
    /// The question.
    pub kind: OwnerQueryKind,
}

/// Kind of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum OwnerQueryKind {
    /// The state of the session.
    Overview,
    /// The chain of waits.
    Why,
    /// The spans of the next request.
    Context,
    /// The slash commands.
    Catalog,
    /// Completions of a line.
    Complete(String),
    /// A slash command to carry out.
    Command(String),
    /// A compaction to start.
    Summarize,
    /// The checkpoints.
    Checkpoints,
    /// The changes of one checkpoint.
    Changes(u64),
    /// The session is to be deleted.
    Delete,
    /// The session is to be moved to a place of this server.
    Move(MoveOrder),
    /// The folder of the session is to be stored, and the session to be let go. The id is that of the move.
    Depart(String),
}

/// Sessions of this server, for the others.
#[async_trait]
pub trait WireHandler: Send + Sync {
    /// Answers a question.
    ///
    /// # Errors
    /// The error of the session, which the asking server passes on.
    async fn answer(&self, ask: OwnerQuery) -> Result<Value, ClientError>;

    /// Returns the events of a session after a number, also live ones.
    ///
    /// # Errors
    /// When the session is not open here.
    async fn events(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError>;
}

/// Carries live events and questions between servers.
#[async_trait]
pub trait ClusterWire: Send + Sync {
    /// Offers the sessions of this server to the others, until `stop` is cancelled: publishes the live events of sessions
    /// that others listen to, and answers their questions.
    ///
    /// # Errors
    /// When the carrier cannot be used.
    async fn serve(&self, sessions: Arc<dyn WireHandler>, stop: CancellationToken) -> Result<(), WireError>;

    /// Listens to the events of a session after a number. The stream ends when the owner closes the session, or when the
    /// connection breaks; the caller then looks who owns it now.
    ///
    /// # Errors
    /// When the owner cannot be reached, or the session is not open there.
    async fn listen(&self, owner: &Holder, session: &SessionId, after: u64)
    -> Result<EventStream, WireError>;

    /// Asks the owner of a session, and waits at most two seconds.
    ///
    /// # Errors
    /// When the owner cannot be reached or does not answer. The answer may be an error of its own.
    async fn ask(&self, owner: &Holder, ask: &OwnerQuery) -> Result<Result<Value, ClientError>, WireError>;
}

/// Reason why a server could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("server {server}, which runs this session, cannot be reached: {why}")]
pub struct WireError {
    /// Server that was meant.
    pub server: String,
    /// Cause of the failure.
    pub why: String,
}

impl From<WireError> for ClientError {
    fn from(error: WireError) -> Self {
        Self::Setup(error.to_string())
    }
}
