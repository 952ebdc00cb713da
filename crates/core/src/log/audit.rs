//! DIST-7: the audit log, and what users have spent.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{LogError, Spent, SpentBy, UserName};
use crate::clock::Timestamp;
use crate::id::SessionId;

/// Something that happened, to be recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// Time, in milliseconds since 1970.
    pub time: Timestamp,
    /// User who did it, or whose session it happened in.
    pub user: UserName,
    /// Name of the credential, if it came through a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Front end or part of the program: `http`, `session`, `cli`.
    pub front_end: String,
    /// Process, as leases name it.
    pub server: String,
    /// Session, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Kind of event, such as `approval_answered` or `call_started`.
    pub action: String,
    /// Details of the kind.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Value")]
    pub detail: Map<String, Value>,
}

/// A row of the audit log. Each row contains the hash of the one before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// Number. The first row is 1, and none is left out.
    pub number: u64,
    /// Hash of the previous row; empty before the first one.
    pub previous: String,
    /// The record as JSON, as it was hashed.
    pub content: String,
    /// SHA-256 of the number, the previous hash and the content, in hexadecimal digits.
    pub hash: String,
    /// The columns that queries select it by, which repeat parts of the content.
    #[serde(skip)]
    pub selected_by: AuditColumns,
}

/// The columns that queries select rows of the audit log by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditColumns {
    /// Time, in milliseconds since 1970.
    pub time: i64,
    /// The user.
    pub user: String,
    /// The session.
    pub session: Option<String>,
    /// Kind of event.
    pub action: String,
}

impl From<&AuditRecord> for AuditColumns {
    fn from(record: &AuditRecord) -> Self {
        Self {
            time: i64::try_from(record.time.0).unwrap_or(i64::MAX),
            user: record.user.as_str().to_owned(),
            session: record.session.as_ref().map(|session| session.as_str().to_owned()),
            action: record.action.clone(),
        }
    }
}

/// Last row of the audit log, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuditHead {
    /// Number of the last row; 0 if there is none.
    pub number: u64,
    /// Its hash.
    pub hash: String,
    /// Number of the last row that was removed because of its age; 0 if none was.
    pub pruned: u64,
    /// Its hash.
    pub pruned_hash: String,
}

/// Selects rows of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Only rows of this user.
    pub user: Option<UserName>,
    /// Only rows of this session.
    pub session: Option<SessionId>,
    /// Only rows of this kind.
    pub action: Option<String>,
    /// Only rows from this time on.
    pub since: Option<Timestamp>,
    /// Only rows after this number.
    pub after: u64,
    /// Maximum number of rows; 0 for all.
    pub limit: usize,
    /// True for the last rows, in order, instead of the first ones.
    pub is_latest: bool,
}

/// Computes the hash of a row from its number, the previous hash and the content.
pub type AuditHash = fn(u64, &str, &str) -> String;

/// Keeps the audit log. Rows are only added, and removed from the start because of their age.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds rows, in order, and returns when they would survive a power cut.
    ///
    /// # Errors
    /// Fails if they cannot be written; none is kept then.
    async fn audit(&self, records: Vec<AuditRecord>, hash: AuditHash) -> Result<(), LogError>;

    /// Returns rows, oldest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn audited(&self, query: &AuditQuery) -> Result<Vec<AuditRow>, LogError>;

    /// Returns the last row.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn audit_head(&self) -> Result<AuditHead, LogError>;

    /// Removes rows before a time. Returns the number of rows removed.
    ///
    /// # Errors
    /// Fails if they cannot be removed.
    async fn prune_audit(&self, before: Timestamp) -> Result<u64, LogError>;
}

/// Reports what users have spent, deleted sessions included.
#[async_trait]
pub trait UserLedger: Send + Sync {
    /// Returns the spending of a user since a time, in groups.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn spent_by(&self, user: &UserName, since: Timestamp, by: SpentBy) -> Result<Vec<Spent>, LogError>;
}

impl AuditHead {
    /// Makes the row that follows, and becomes its head.
    ///
    /// # Errors
    /// Fails if the record cannot be written as JSON.
    pub fn next(&mut self, record: &AuditRecord, hash: AuditHash) -> Result<AuditRow, LogError> {
        let content = serde_json::to_string(record).map_err(|error| LogError::Failed(error.to_string()))?;
        let number = self.number + 1;
        let row = AuditRow {
            number,
            previous: self.hash.clone(),
            hash: hash(number, &self.hash, &content),
            content,
            selected_by: record.into(),
        };
        (self.number, self.hash) = (row.number, row.hash.clone());
        Ok(row)
    }
}
