//! What is known about a session without reading it.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{MessageId, SessionId};
use crate::model::Usage;

/// A session to be made.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Its id; a new one when `None`.
    pub id: Option<SessionId>,
    /// The session it was started from.
    pub parent: Option<SessionId>,
    /// What it is called.
    pub label: Label,
    /// The folder it works in.
    pub place: String,
    /// When.
    pub time: Timestamp,
}

/// What a session is called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Label {
    /// What it is about, in a line; made for people to recognise it.
    pub title: Option<String>,
    /// What somebody calls it.
    pub name: Option<String>,
    /// Where its messages come from: a channel's key. At most one session has a key.
    pub key: Option<String>,
}

/// A session without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// The session it was started from.
    pub parent: Option<SessionId>,
    /// What it is called.
    pub label: Label,
    /// The folder it works in.
    pub place: String,
    /// How it stands.
    pub standing: SessionStatus,
    /// The provider's configured name and the model that was used last.
    pub model: Option<(String, String)>,
    /// What it came to.
    pub totals: Totals,
    /// The message that stands for everything before it.
    pub summary: Option<MessageId>,
    /// The number of its last entry.
    pub last_seq: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Nothing was asked yet.
    #[default]
    New,
    /// A turn is under way, or was when its process ended.
    Working,
    /// The last turn ended with an answer.
    Answered,
    /// The last turn was stopped by the user.
    Canceled,
    /// The last turn failed.
    Failed,
}

/// Counts and costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Messages, also those that a summary stands for.
    pub messages: u64,
    /// Tokens that models read for it, children included.
    pub prompt_tokens: u64,
    /// Tokens that models wrote for it, children included.
    pub completion_tokens: u64,
    /// What the last request of a turn held.
    pub context_tokens: u64,
    /// US dollars, children included, as far as prices are known.
    pub cost_usd: f64,
}

/// Which sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// Only those that work in this folder.
    pub place: Option<String>,
    /// Only those whose id begins with this, or whose name or key is this.
    pub called: Option<String>,
    /// Whether sessions of sub-agents are among them.
    pub children: bool,
    /// Only those in which something happened, or that were called something.
    pub used: bool,
    /// At most so many; 0 for all.
    pub limit: usize,
}

/// One model call in the books.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Booking {
    /// When it ended.
    pub time: Timestamp,
    /// The provider's configured name.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What it was for: `turn`, `summary`, `title-<session>`.
    pub cause: String,
    /// Its tokens.
    pub usage: Usage,
    /// US dollars; `None` when the model's prices are unknown.
    pub cost_usd: Option<f64>,
}

/// How spending is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentBy {
    /// By session.
    Session,
    /// By provider and model.
    Model,
    /// By what it was for.
    Cause,
    /// By day, in UTC.
    Day,
}

/// What one group of calls came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The session, model, cause or day.
    pub of: String,
    /// How many calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// US dollars, as far as prices are known.
    pub cost_usd: f64,
}

/// A place where words were said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// Its title or name.
    pub title: String,
    /// The entry.
    pub seq: u64,
    /// The words in their surroundings, found ones between `[` and `]`.
    pub snippet: String,
}
