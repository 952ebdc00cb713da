//! What a front end can look at: the sessions that are kept, and how a live one stands.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use windlass_core::checkpoint::{Checkpoint, FileChange};
use windlass_core::clock::span;
use windlass_core::log::{Entry, counting};

use crate::{ClientError, Event, Message, MessageId, Part, Role, SessionId, SessionInfo, own_call};

/// What is kept. Nothing here changes anything.
#[async_trait]
pub trait Records: Send + Sync {
    /// Sessions, those that fit best first; without words the one that changed last.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError>;

    /// The last entries of a session before a number, in their order; `None` for the last ones there are. Must not
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

    /// What turns did to files, the oldest first.
    ///
    /// # Errors
    /// When the session is not live here, or what was kept cannot be read.
    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError>;

    /// What the turn of one checkpoint did, file by file.
    ///
    /// # Errors
    /// As [`Self::checkpoints`], and when there is no such checkpoint.
    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError>;
}

/// Which sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Find {
    /// Words of a title, a name, an id, or of what was said; all sessions when empty.
    pub words: String,
    /// Only those of this folder.
    pub place: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// How a live session stands, and what can be done about what it waits for.
#[async_trait]
pub trait Presence: Send + Sync {
    /// How it stands now.
    ///
    /// # Errors
    /// When there is no such session, or somebody else works in it.
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError>;

    /// OBS-3: what its running turn waits for, the outermost first: each waits for the next. Empty when nothing runs.
    async fn why(&self, session: &SessionId) -> Vec<Wait>;

    /// Takes a message out of the queue, to be changed or dropped. `None` when it does not wait any more.
    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>>;

    /// Has what is queued asked, where it waits for somebody to say something. Whether there is such a session here.
    async fn go_on(&self, session: &SessionId) -> bool;
}

/// What the user said in the conversation that counts, in order, each with the number of its entry: what one can go back to
/// before. Left out are what a rewind left behind, what stands for a summary, and what tells a model of a command that the
/// user ran. A message that was changed later is where it was first said.
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
        message.role == Role::User && !is_summary && !is_own && !message.said().is_empty()
    });
    found
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// The session, with what it came to so far.
    pub info: SessionInfo,
    /// Who is asked next; empty when nobody can be.
    pub provider: String,
    /// The model that is asked next.
    pub model: String,
    /// How many tokens that model reads at most; 0 when that is not known.
    pub window: u64,
    /// How far the agent may go: a word that `/mode` takes.
    pub mode: String,
    /// Whether a turn runs.
    pub is_busy: bool,
    /// What waits for it to end, the next one first.
    pub queue: Vec<Arc<Message>>,
    /// What the session as a whole is to reach, when it is told.
    pub goal: Option<String>,
    /// What is being worked on, when that is known.
    pub subgoal: Option<String>,
}

/// One thing that a turn waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What kind of thing.
    pub on: WaitOn,
    /// What exactly, in a line.
    pub what: String,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// What would end it, in a line.
    pub ends: String,
}

/// All of it, in a line for people.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, ends, .. } = self;
        let time = span(Duration::from_millis(self.for_ms));
        write!(
            f,
            "waits for {}: {what} — for {time}; ends {ends}",
            self.on.name()
        )
    }
}

/// What a turn can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitOn {
    /// A model's answer.
    Provider,
    /// The time until a request is sent again.
    Retry,
    /// A tool, mostly a process.
    Tool,
    /// A person's permission.
    Approval,
    /// A person's answer.
    Question,
    /// Something that somebody else holds.
    Lock,
    /// A session that this one started.
    Child,
    /// The conversation being made smaller.
    Summary,
}

impl WaitOn {
    /// A word for it.
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
        }
    }
}
