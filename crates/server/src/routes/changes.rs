//! File changes of a session: checkpoints, diffs, undo and redo.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{Changed, Checkpoint, SessionId};
use windlass_core::checkpoint::WHOLE_SESSION;

use super::body::Body;
use super::messages::CommandAnswer;
use crate::app::Shared;
use crate::diff::{Hunk, hunks};
use crate::problem::Problem;

/// The checkpoints of a session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Checkpoints {
    /// Oldest first.
    checkpoints: Vec<Checkpoint>,
}

pub(crate) async fn checkpoints(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<Checkpoints>, Problem> {
    // Checkpoints belong to a live session.
    app.ports.backend.overview(&id).await?;
    let checkpoints = app.ports.backend.checkpoints(&id).await?;
    Ok(Json(Checkpoints { checkpoints }))
}

/// The changes of one checkpoint.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Changes {
    /// File by file.
    changes: Vec<Change>,
}

/// A change to one file, folder or link.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Change {
    /// Path, relative to the folder if it is inside.
    path: String,
    /// Kind of change.
    what: Changed,
    /// Diff as one text, to copy; absent if the change cannot be shown as text.
    diff: Option<String>,
    /// The same diff, part by part.
    hunks: Vec<Hunk>,
}

pub(crate) async fn changes(
    State(app): State<Shared>,
    Path((id, number)): Path<(SessionId, String)>,
) -> Result<Json<Changes>, Problem> {
    app.ports.backend.overview(&id).await?;
    let number: u64 = number
        .parse()
        .map_err(|_| Problem::field("number", format!("`{number}` is not a number")))?;
    let known = app.ports.backend.checkpoints(&id).await?;
    if number != WHOLE_SESSION && !known.iter().any(|checkpoint| checkpoint.number == number) {
        return Err(Problem::not_found(format!("there is no checkpoint {number}")));
    }
    let found = app.ports.backend.changes(&id, number).await?;
    let change = |change: windlass_api::FileChange| Change {
        hunks: change.diff.as_deref().map(hunks).unwrap_or_default(),
        path: change.path,
        what: change.what,
        diff: change.diff,
    };
    let changes = found.into_iter().map(change).collect();
    Ok(Json(Changes { changes }))
}

/// Options of an undo or a redo.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Back {
    /// Undo: number of the checkpoint to go back to; the last turn if absent.
    checkpoint: Option<u64>,
    /// Undo: also take the conversation back.
    conversation: bool,
    /// Overwrite files that were changed outside the session.
    force: bool,
}

pub(crate) async fn undo(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Body(back): Body<Back>,
) -> Result<Json<CommandAnswer>, Problem> {
    let mut line = match back.checkpoint {
        Some(number) => format!("/checkpoint rewind {number}"),
        None => "/undo".to_owned(),
    };
    if back.conversation {
        line.push_str(" --conversation");
    }
    if back.force {
        line.push_str(" --force");
    }
    super::messages::run(&app, &id, &line).await.map(Json)
}

pub(crate) async fn redo(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Body(back): Body<Back>,
) -> Result<Json<CommandAnswer>, Problem> {
    if back.checkpoint.is_some() || back.conversation {
        return Err(Problem::field("checkpoint", "a redo takes `force` only"));
    }
    let line = if back.force { "/redo --force" } else { "/redo" };
    super::messages::run(&app, &id, line).await.map(Json)
}
