//! Metadata of a session, available without reading its entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlaceWait, UserName};
use crate::clock::Timestamp;
use crate::id::{MessageId, SessionId};
use crate::model::{Usage, dollars_or_more};

/// A session to be created.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Id of the session; generated if `None`.
    pub id: Option<SessionId>,
    /// Session it was started from.
    pub parent: Option<SessionId>,
    /// Title, name and key.
    pub label: Label,
    /// Folder it works in.
    pub place: String,
    /// Creation time.
    pub time: Timestamp,
    /// Owner; a session with a parent belongs to the owner of that.
    pub user: UserName,
}

/// Names of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// One-line summary of the subject, for people to recognise the session.
    pub title: Option<String>,
    /// Name given by the user.
    pub name: Option<String>,
    /// Origin of its messages: a channel's key. At most one session has a given key.
    pub key: Option<String>,
}

/// A session without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// Session it was started from.
    pub parent: Option<SessionId>,
    /// Title, name and key.
    pub label: Label,
    /// Folder it works in.
    pub place: String,
    /// State of the last turn.
    pub standing: SessionStatus,
    /// Configured provider name and model that were used last.
    pub model: Option<(String, String)>,
    /// Counts and costs.
    pub totals: Totals,
    /// Message that summarizes everything before it.
    pub summary: Option<MessageId>,
    /// Sequence number of its last entry.
    pub last_seq: u64,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Owner.
    #[serde(default, skip_serializing_if = "UserName::is_local")]
    pub user: UserName,
    /// DIST-5: set if no server has the place of its folder now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<PlaceWait>,
}

/// State of a session's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// There was no input yet.
    #[default]
    New,
    /// A turn is running, or was when its process ended.
    Working,
    /// The last turn ended with an answer.
    Answered,
    /// The user stopped the last turn.
    Canceled,
    /// The last turn failed.
    Failed,
}

/// Counts and costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Number of messages, including those replaced by a summary.
    pub messages: u64,
    /// Tokens read by models, children included.
    pub prompt_tokens: u64,
    /// Tokens written by models, children included.
    pub completion_tokens: u64,
    /// Tokens of the last request of a turn.
    pub context_tokens: u64,
    /// Cost in US dollars, children included, as far as prices are known.
    pub cost_usd: f64,
    /// True if no price of its calls is known, so that its cost is not, either.
    #[serde(default)]
    pub unpriced: bool,
}

impl Totals {
    /// Formats the cost; `?` if it is not known.
    pub fn cost(&self) -> String {
        dollars_or_more(self.cost_usd, self.unpriced)
    }
}

/// Filter for listing sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// Only sessions of this user; of all users if `None`.
    pub user: Option<UserName>,
    /// Only sessions in this folder.
    pub place: Option<String>,
    /// Only sessions whose id starts with this text, or whose name or key equals it.
    pub called: Option<String>,
    /// True to include sessions of sub-agents.
    pub children: bool,
    /// Only sessions with events, or with a name.
    pub used: bool,
    /// Maximum number of sessions; 0 for all.
    pub limit: usize,
}

/// Accounting entry of one model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Booking {
    /// Time at which the call ended.
    pub time: Timestamp,
    /// Configured name of the provider.
    pub provider: String,
    /// Id of the model.
    pub model: String,
    /// Purpose of the call: `turn`, `summary`, `title-<session>`.
    pub cause: String,
    /// Tokens of the call.
    pub usage: Usage,
    /// Cost in US dollars; `None` if the model's prices are unknown.
    pub cost_usd: Option<f64>,
}

/// Grouping of spending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentBy {
    /// By session.
    Session,
    /// By provider and model.
    Model,
    /// By purpose.
    Cause,
    /// By day, in UTC.
    Day,
    /// By user.
    User,
}

/// Spending of one group of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// The session, model, cause or day.
    pub of: String,
    /// Number of calls.
    pub calls: u64,
    /// Tokens of the calls.
    pub usage: Usage,
    /// Cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Number of calls whose price is not known.
    #[serde(default)]
    pub unpriced: u64,
}

impl Spent {
    /// Formats the cost; `?` if it is not known.
    pub fn cost(&self) -> String {
        dollars_or_more(self.cost_usd, self.unpriced > 0)
    }

    /// Sums up groups of calls.
    pub fn total(rows: &[Self]) -> Self {
        let mut total = Self {
            of: "total".to_owned(),
            calls: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
            unpriced: 0,
        };
        for row in rows {
            total.calls += row.calls;
            total.usage.add(&row.usage);
            total.cost_usd += row.cost_usd;
            total.unpriced += row.unpriced;
        }
        total
    }
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// Title or name of the session.
    pub title: String,
    /// Sequence number of the entry.
    pub seq: u64,
    /// Matched words in context, each between `[` and `]`.
    pub snippet: String,
}
