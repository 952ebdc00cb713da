//! HTTP exchanges with a model, recorded so that a session can be replayed without one.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::LogError;
use crate::clock::Timestamp;
use crate::id::{MessageId, SessionId};
use crate::provider::Prefix;
use crate::tool::ToolSpec;

/// One request and its response. Contains no headers, because they hold API keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Time at which the exchange ended.
    pub time: Timestamp,
    /// Configured name of the provider.
    pub provider: String,
    /// Requested model.
    pub model: String,
    /// Request body, with API keys removed.
    pub request: Bytes,
    /// Digest of the body as it was sent.
    pub digest: String,
    /// Digest of an earlier body, and the number of leading bytes this body shares with it. Used by a store
    /// that has both; a stored exchange has none.
    pub before: Option<(String, u64)>,
    /// Last message of the conversation in the request.
    pub last: Option<MessageId>,
    /// The response.
    pub answer: RecordedAnswer,
    /// Digest of the [`Frame`]: the system prompt and the tools of the turn.
    pub frame: Option<String>,
}

/// Recorded response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedAnswer {
    /// HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// Content type.
    pub form: String,
    /// Body, as far as it was read.
    pub body: Bytes,
    /// Reason the body is incomplete; `None` if it is whole.
    pub cut: Option<String>,
}

/// Content that precedes the messages in every request of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The system prompt.
    pub system: String,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// Maximum number of tokens of a reply.
    pub max_output: Option<u64>,
}

impl Frame {
    /// Returns the frame as the prefix of requests.
    pub fn prefix(&self) -> Prefix {
        Prefix {
            system: self.system.clone(),
            tools: self.tools.clone(),
            ..Prefix::default()
        }
    }
}

/// Receives exchanges. Must not block: an answer waits for it.
pub trait Recorder: Send + Sync {
    /// Records an exchange of a session that has ended.
    fn keep(&self, session: &SessionId, exchange: Exchange);
}

/// Recorder shared by providers.
pub type SharedRecorder = Arc<dyn Recorder>;

/// An exchange to store, with only the new part of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExchange {
    /// The exchange; its request holds only the bytes after `shared`.
    pub exchange: Exchange,
    /// Number of leading bytes the request shares with the previous one.
    pub shared: u64,
}

/// Stores exchanges.
#[async_trait]
pub trait Exchanges: Send + Sync {
    /// Stores an exchange after the previous ones. `limit` is the maximum number of bytes stored per session:
    /// an exchange beyond it is not stored, and neither are later ones. Returns false if the exchange was not
    /// stored.
    ///
    /// # Errors
    /// Fails if the exchange cannot be written.
    async fn keep_exchange(
        &self,
        session: &SessionId,
        new: NewExchange,
        limit: u64,
    ) -> Result<bool, LogError>;

    /// Returns all exchanges of a session, in order.
    ///
    /// # Errors
    /// Fails if the exchanges cannot be read.
    async fn exchanges(&self, session: &SessionId) -> Result<Vec<Exchange>, LogError>;

    /// Stores a frame and returns its digest.
    ///
    /// # Errors
    /// Fails if the frame cannot be written.
    async fn keep_frame(&self, frame: &Frame) -> Result<String, LogError>;

    /// Returns the frame with a digest.
    ///
    /// # Errors
    /// Fails if the frame cannot be read.
    async fn frame(&self, digest: &str) -> Result<Option<Frame>, LogError>;
}
