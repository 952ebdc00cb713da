//! DIST-7: reads the audit log, and the limits of today.

use axum::Json;
use axum::extract::{Extension, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{SessionId, Timestamp, UserName};
use windlass_core::log::{AuditQuery, AuditRecord};

use super::body::Query;
use crate::accounts::Today;
use crate::app::Shared;
use crate::checks::Who;
use crate::problem::Problem;

/// Rows of a page if the request names no number, and at most.
const PAGE: usize = 100;
const LARGEST: usize = 1_000;

/// A selection of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditFilter {
    user: Option<String>,
    /// Not called `session`: the owner of that is checked, and this may be a session that was deleted.
    of_session: Option<SessionId>,
    action: Option<String>,
    since: Option<u64>,
    after: Option<u64>,
    limit: Option<usize>,
}

/// Rows of the audit log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditRows {
    /// Oldest first. Without `after`, the last ones.
    rows: Vec<AuditEntry>,
}

/// A row.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditEntry {
    /// Its number.
    number: u64,
    /// Its hash, which covers the hash of the row before.
    hash: String,
    #[serde(flatten)]
    record: AuditRecord,
}

pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Query(filter): Query<AuditFilter>,
) -> Result<Json<AuditRows>, Problem> {
    let limit = filter.limit.unwrap_or(PAGE);
    if !(1..=LARGEST).contains(&limit) {
        return Err(Problem::field("limit", format!("a number from 1 to {LARGEST}")));
    }
    let user = filter.user.map(|name| name.parse::<UserName>()).transpose();
    let user = user.map_err(|error| Problem::field("user", error.to_string()))?;
    app.oversee(&who, filter.of_session.as_ref(), user.as_ref(), "/api/audit")
        .await?;
    let query = AuditQuery {
        user,
        session: filter.of_session,
        action: filter.action,
        since: filter.since.map(Timestamp),
        after: filter.after.unwrap_or_default(),
        limit,
        is_latest: filter.after.is_none(),
    };
    let found = app.ports.store.audited(&query).await?;
    let rows = found.into_iter().map(|row| AuditEntry {
        number: row.number,
        hash: row.hash,
        // A row that was damaged is shown without its content; `windlass audit verify` says more.
        record: serde_json::from_str(&row.content).unwrap_or_default(),
    });
    Ok(Json(AuditRows { rows: rows.collect() }))
}

/// The user of a credential.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Me {
    /// Name of the user; empty for the user who runs the server.
    user: UserName,
    /// Name of the credential.
    credential: String,
    /// Spending and limits of today; absent without limits.
    today: Option<Today>,
}

pub(crate) async fn me(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<Json<Me>, Problem> {
    Ok(Json(Me {
        today: app.ports.accounts.today(&who.user).await?,
        user: who.user,
        credential: who.name,
    }))
}
