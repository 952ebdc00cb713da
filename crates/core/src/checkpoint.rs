//! Port for restoring files to an earlier state, implemented by the store of a session's file changes.
//!
//! A [`Checkpoint`] is created before the first call of a turn that may change files. Rewinding to it undoes
//! the changes of that turn and all later turns. A rewind can be redone until a later call changes files.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::MessageId;

/// State of the files before a turn, and the changes the turn made to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Number within the session, starting at 1.
    pub number: u64,
    /// Creation time.
    pub time: Timestamp,
    /// Input message of the turn.
    pub message: Option<MessageId>,
    /// Start of the user's message.
    pub prompt: String,
    /// Tools that may have changed files, each listed once.
    pub tools: Vec<String>,
    /// Number of files and folders the turn changed.
    pub files: usize,
    /// True if the changes have been undone.
    pub undone: bool,
}

/// A change to one file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Path, relative to the workspace if it is inside the workspace.
    pub path: String,
    /// Kind of change.
    pub what: Changed,
    /// Diff, if the change can be shown as text.
    pub diff: Option<String>,
}

/// Kind of change to a file, folder or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// It was created.
    Created,
    /// Its content changed.
    Modified,
    /// Only its permissions changed.
    Mode,
    /// It was deleted.
    Deleted,
    /// It was replaced by an entry of a different kind.
    Replaced,
}

/// Result of a rewind or a redo.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Restored {
    /// Checkpoints that were undone or redone, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Changes made to files.
    pub changes: Vec<FileChange>,
    /// Parts that could not be restored, one sentence each.
    pub uncovered: Vec<String>,
}

/// Treatment of files that were changed outside the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Force {
    /// Refuse: if any file was changed outside the session, change nothing at all.
    #[default]
    Never,
    /// Overwrite those files as well. A redo brings the outside changes back.
    Always,
}

/// Reason files were not restored. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The checkpoint does not exist.
    #[error("there is no checkpoint {number}; {}", known(*.last))]
    Unknown {
        /// Requested number.
        number: u64,
        /// Number of the last checkpoint, or 0 if there are none.
        last: u64,
    },
    /// There is nothing to rewind or redo.
    #[error("{0}")]
    Nothing(String),
    /// These files were changed outside the session.
    #[error("changed outside this session: {}", list(.0))]
    Conflict(Vec<String>),
    /// The files or their stored copies cannot be used.
    #[error("{0}")]
    Failed(String),
}

fn known(last: u64) -> String {
    match last {
        0 => "nothing in this session has changed files yet".to_owned(),
        1 => "there is only checkpoint 1".to_owned(),
        last => format!("there are checkpoints 1 to {last}"),
    }
}

fn list(paths: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> = paths.iter().take(SHOWN).map(String::as_str).collect();
    match paths.len().checked_sub(SHOWN) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Number that stands for all checkpoints of a session together.
pub const WHOLE_SESSION: u64 = 0;

/// Checkpoints of one session.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Returns all checkpoints, oldest first.
    ///
    /// # Errors
    /// Fails if the stored checkpoints cannot be read.
    async fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError>;

    /// Returns the file changes made by the turn of a checkpoint, or with [`WHOLE_SESSION`] by all turns together
    /// that were not undone: each file once, from before the session to now.
    ///
    /// # Errors
    /// Fails if the checkpoint does not exist or cannot be read.
    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError>;

    /// Restores files to their state at a checkpoint. Once started, a rewind is always completed, after a
    /// crash if necessary.
    ///
    /// # Errors
    /// Fails if the checkpoint does not exist or files were changed outside the session.
    async fn rewind(&self, number: u64, force: Force) -> Result<Restored, CheckpointError>;

    /// Undoes the last rewind, unless files were changed since.
    ///
    /// # Errors
    /// Fails if there is nothing to redo or files were changed outside the session.
    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError>;

    /// Returns what cannot be restored of the turns that were not undone, one sentence each.
    ///
    /// # Errors
    /// Fails if the stored checkpoints cannot be read.
    async fn uncovered(&self) -> Result<Vec<String>, CheckpointError> {
        Ok(Vec::new())
    }

    /// Returns a digest of the files in the workspace, without those that version control ignores. `None` if
    /// there are too many. Two equal digests mean equal files.
    ///
    /// # Errors
    /// Fails if the files cannot be read.
    async fn tree(&self) -> Result<Option<String>, CheckpointError> {
        Ok(None)
    }
}
