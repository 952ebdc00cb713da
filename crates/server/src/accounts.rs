//! DIST-7: the port to the audit log and to the limits of users.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_api::{SessionId, UserName};
use windlass_core::log::{AuditRecord, LogError};

use crate::app::App;
use crate::credentials::Credential;
use crate::problem::Problem;

/// The audit log, and the limits of users.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Adds a row to the audit log, and returns once it would survive a power cut.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn record(&self, record: AuditRecord) -> Result<(), LogError>;

    /// Returns the rest of a user's day; `None` without limits.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn today(&self, user: &UserName) -> Result<Option<Today>, LogError>;
}

/// Spending of a user today, and the limits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Today {
    /// Cost in US dollars.
    pub cost_usd: f64,
    /// Maximum cost.
    pub max_cost_usd: Option<f64>,
    /// Tokens.
    pub tokens: u64,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// Requests of turns.
    pub turns: u64,
    /// Maximum number of requests of turns.
    pub max_turns: Option<u64>,
    /// The rest of the day, for people.
    pub text: String,
}

impl App {
    /// Records something that the holder of a credential does. It must not happen if this fails.
    pub(crate) async fn audit(
        &self,
        who: &Credential,
        session: Option<&SessionId>,
        action: &str,
        detail: Value,
    ) -> Result<(), Problem> {
        let detail = match detail {
            Value::Object(detail) => detail,
            _ => Map::new(),
        };
        let record = AuditRecord {
            user: who.user.clone(),
            credential: Some(who.name.clone()),
            front_end: "http".to_owned(),
            session: session.cloned(),
            action: action.to_owned(),
            detail,
            ..AuditRecord::default()
        };
        Ok(self.ports.accounts.record(record).await?)
    }

    /// Records that somebody reads what belongs to another user.
    pub(crate) async fn oversee(
        &self,
        who: &Credential,
        session: Option<&SessionId>,
        of: Option<&UserName>,
        path: &str,
    ) -> Result<(), Problem> {
        let of = of.map_or_else(|| "*".to_owned(), UserName::to_string);
        let detail = json!({ "of": of, "path": path });
        self.audit(who, session, "admin_read", detail).await
    }
}
