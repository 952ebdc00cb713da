//! What went over the wire between us and a model, kept so that a session can be driven again without one.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::LogError;
use crate::clock::Timestamp;
use crate::id::{MessageId, SessionId};
use crate::provider::Prefix;
use crate::tool::ToolSpec;

/// One request and what came back. No headers: keys are in there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// When it ended.
    pub time: Timestamp,
    /// The provider's configured name.
    pub provider: String,
    /// The model that was asked.
    pub model: String,
    /// The body of the request, without keys that got into it.
    pub request: Bytes,
    /// The digest of the body as it was sent.
    pub digest: String,
    /// A body that was sent before, by its digest, and how many bytes this one begins with as that one did. For whoever
    /// stores both; a stored exchange has none.
    pub before: Option<(String, u64)>,
    /// The last message of the conversation in it.
    pub last: Option<MessageId>,
    /// What came back.
    pub answer: RecordedAnswer,
    /// The system prompt and the tools of the turn: the digest of a [`Frame`].
    pub frame: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedAnswer {
    /// The HTTP status; `None` when nothing came back.
    pub status: Option<u16>,
    /// The content type.
    pub form: String,
    /// The body as far as it was read.
    pub body: Bytes,
    /// Why there is no more of it; `None` when it is whole.
    pub cut: Option<String>,
}

/// What stands before the messages of every request of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The system prompt.
    pub system: String,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
}

impl Frame {
    /// The same as the prefix of requests.
    pub fn prefix(&self) -> Prefix {
        Prefix {
            system: self.system.clone(),
            tools: self.tools.clone(),
            ..Prefix::default()
        }
    }
}

/// Takes exchanges in. Must not block: an answer waits for it.
pub trait Recorder: Send + Sync {
    /// An exchange of a session ended.
    fn keep(&self, session: &SessionId, exchange: Exchange);
}

/// A provider's way to its tape.
pub type SharedRecorder = Arc<dyn Recorder>;

/// What a store was told of an exchange: of the request only what is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExchange {
    /// The exchange; its request is only what comes after `shared`.
    pub exchange: Exchange,
    /// How many bytes the request shares with the one before it.
    pub shared: u64,
}

/// Keeps exchanges.
#[async_trait]
pub trait Exchanges: Send + Sync {
    /// Keeps one, after those before it. `limit` is the most bytes a session may have of them: what is beyond is not kept,
    /// and then nothing more. False when it was not.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn keep_exchange(
        &self,
        session: &SessionId,
        new: NewExchange,
        limit: u64,
    ) -> Result<bool, LogError>;

    /// All of a session, in order.
    ///
    /// # Errors
    /// When they cannot be read.
    async fn exchanges(&self, session: &SessionId) -> Result<Vec<Exchange>, LogError>;

    /// Keeps a frame and gives its digest.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn keep_frame(&self, frame: &Frame) -> Result<String, LogError>;

    /// The frame of a digest.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn frame(&self, digest: &str) -> Result<Option<Frame>, LogError>;
}
