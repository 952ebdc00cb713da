//! Reads one session.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{Entry, SessionId};

use super::body::Query;
use crate::app::Shared;
use crate::problem::Problem;
use crate::snapshot::{Snapshot, snapshot};

/// Entries of a page if the request names no number, and at most.
const PAGE: usize = 100;
const LARGEST: usize = 1_000;

pub(crate) async fn state(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<Snapshot>, Problem> {
    snapshot(&app, &id).await.map(Json)
}

/// Place in a record.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntriesQuery {
    /// Only entries before this number.
    before: Option<u64>,
    limit: Option<usize>,
}

/// A page of a record.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// Oldest first.
    entries: Vec<Entry>,
    /// True if there are older entries.
    has_more: bool,
}

pub(crate) async fn entries(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Query(query): Query<EntriesQuery>,
) -> Result<Json<Entries>, Problem> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LARGEST).contains(&limit) {
        return Err(Problem::field("limit", format!("a number from 1 to {LARGEST}")));
    }
    let entries = app.ports.backend.tail(&id, query.before, limit).await?;
    let has_more = entries.first().is_some_and(|entry| entry.seq > 1);
    Ok(Json(Entries { entries, has_more }))
}
