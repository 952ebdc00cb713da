//! Read access for front ends: stored sessions, and the state of live ones.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_core::checkpoint::{Checkpoint, FileChange};
use windlass_core::clock::span;
use windlass_core::log::{AgentRow, Entry, counting};

use crate::{
    ClientError, ContextReport, Event, Message, MessageId, Part, Role, SessionId, SessionInfo, UserName,
    own_call,
};

/// Stored sessions. All methods only read.
#[async_trait]
pub trait Records: Send + Sync {
    /// Returns sessions, best matches first; without words, the last changed first.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError>;

    /// Returns the last entries of a session before a number, in order; `None` means before the end. Must not
    /// read more than these.
    ///
    /// # Errors
    /// When there is no such session, or the store cannot be read.
    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError>;

    /// Returns the checkpoints of file changes, oldest first.
    ///
    /// # Errors
    /// When the session is not live here, or the checkpoints cannot be read.
    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError>;

    /// Returns the changes of one checkpoint, file by file.
    ///
    /// # Errors
    /// As [`Self::checkpoints`], and when there is no such checkpoint.
    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError>;

    /// SRV-1: returns the number of the entry that recorded a message of the session, by the message's id.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn sent(&self, _session: &SessionId, _message: &MessageId) -> Result<Option<u64>, ClientError> {
        Ok(None)
    }

    /// SUB-8: returns the sub-agents below a session, by number.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn agents(&self, _session: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        Ok(Vec::new())
    }
}

/// Query for sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Find {
    /// Words of a title, a name, an id or a message; all sessions if empty.
    pub words: String,
    /// Only sessions of this folder.
    pub place: Option<String>,
    /// Only sessions of this user; of all users if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserName>,
    /// Maximum number of sessions.
    pub limit: usize,
}

/// State of live sessions, and control of their queues.
#[async_trait]
pub trait Presence: Send + Sync {
    /// Returns the state of a session.
    ///
    /// # Errors
    /// When there is no such session, or another process owns it.
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError>;

    /// OBS-3: returns what the running turn waits for, outermost first: each waits for the next. Empty if no
    /// turn runs.
    async fn why(&self, session: &SessionId) -> Vec<Wait>;

    /// Removes a message from the queue, to edit or drop it. Returns `None` if it is no longer queued.
    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>>;

    /// Starts a turn with the queued input, if the queue is paused. Returns true if the session is live here.
    async fn go_on(&self, session: &SessionId) -> bool;

    /// CTX-16: returns the spans of the next request, as far as it is known.
    ///
    /// # Errors
    /// When a turn runs, when the provider does not say what it sends, or when there is no such session.
    async fn context(&self, session: &SessionId) -> Result<ContextReport, ClientError> {
        Err(not_offered(session))
    }

    /// Deletes a session permanently. A session that is live here is closed first: its turn is canceled.
    ///
    /// # Errors
    /// When there is no such session, or another process works in it.
    async fn delete(&self, session: &SessionId) -> Result<(), ClientError> {
        Err(not_offered(session))
    }
}

fn not_offered(session: &SessionId) -> ClientError {
    ClientError::Setup(format!("this is not possible for session {session} from here"))
}

/// Returns the user's messages in the current conversation, in order, each with the number of its entry: the
/// points that a rewind can go back to. Leaves out rewound messages, summaries, and messages that report a
/// command of the user to the model. A message that was changed later has the place of its first version.
pub fn user_messages(entries: &[Entry]) -> Vec<(u64, &Message)> {
    let mut calls = HashSet::new();
    let mut known = HashSet::new();
    let mut found: Vec<(u64, &Message)> = Vec::new();
    for entry in counting(entries) {
        match &entry.event {
            Event::StepStart { call_id, .. } => drop(calls.insert(call_id)),
            Event::Message { message } if known.insert(&message.id) => found.push((entry.seq, message)),
            _ => {}
        }
    }
    found.retain(|(_, message)| {
        let is_summary = message
            .parts
            .iter()
            .any(|part| matches!(part, Part::Compaction(_)));
        let is_own = calls.contains(&own_call(&message.id));
        message.role == Role::User && !is_summary && !is_own && !message.user_text().is_empty()
    });
    found
}

/// State of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// The session, with its totals so far.
    pub info: SessionInfo,
    /// Provider of the next turn; empty if there is none.
    pub provider: String,
    /// Model of the next turn.
    pub model: String,
    /// Context window of the model in tokens; 0 if unknown.
    pub window: u64,
    /// Permission mode, as `/mode` takes it.
    pub mode: String,
    /// Reasoning effort of the next turn, as `/effort` takes it; empty if it is not known.
    #[serde(default)]
    pub effort: String,
    /// Version control and instructions of the session's folder.
    #[serde(default)]
    pub surroundings: FolderFacts,
    /// True if a turn runs.
    pub is_busy: bool,
    /// Queued messages, next one first.
    pub queue: Vec<Arc<Message>>,
    /// Goal of the session, if there is one.
    pub goal: Option<String>,
    /// Current subgoal, if known.
    pub subgoal: Option<String>,
}

/// The folder of a session, as far as a person wants to see it beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FolderFacts {
    /// Branch that is checked out, or the start of the commit; `None` outside a Git repository.
    pub branch: Option<String>,
    /// EXT-1: files with instructions that the model reads, the most general first.
    pub instructions: Vec<String>,
}

/// Something that a turn waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Kind of wait.
    pub on: WaitOn,
    /// Description in one line.
    pub what: String,
    /// Time so far, in milliseconds.
    pub for_ms: u64,
    /// Condition that ends the wait, in one line.
    pub ends: String,
}

/// Formats the wait in one line for the user.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, ends, .. } = self;
        let time = span(Duration::from_millis(self.for_ms));
        write!(
            f,
            "waiting for {}: {what} — for {time}; ends {ends}",
            self.on.name()
        )
    }
}

/// Kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitOn {
    /// Answer of a model.
    Provider,
    /// Delay before a request is retried.
    Retry,
    /// Tool call, mostly a process.
    Tool,
    /// Approval of a user.
    Approval,
    /// Answer of a user.
    Question,
    /// Lock that another process or session holds.
    Lock,
    /// Child session.
    Child,
    /// Compaction of the conversation.
    Summary,
    /// Server that has the place of the session's folder.
    Place,
}

impl WaitOn {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Retry => "retry",
            Self::Tool => "tool",
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Lock => "lock",
            Self::Child => "child",
            Self::Summary => "summary",
            Self::Place => "place",
        }
    }
}
