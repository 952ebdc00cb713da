//! Taking files back to how they were: the port of whoever keeps what a session changed.
//!
//! A [`Checkpoint`] is made before the first call of a turn that may change files. Rewinding to it undoes what that turn
//! and all later ones did; what was rewound can be done again as long as nothing new was done.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::MessageId;

/// The state of files before a turn, and what the turn did to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its number in the session, from 1.
    pub number: u64,
    /// When it was made.
    pub time: Timestamp,
    /// The input of the turn.
    pub message: Option<MessageId>,
    /// The beginning of what the user said.
    pub prompt: String,
    /// The tools that may have changed something, each once.
    pub tools: Vec<String>,
    /// How many files and folders the turn changed.
    pub files: usize,
    /// Whether that has been undone.
    pub undone: bool,
}

/// What happened to one file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path, from the workspace on when it is in there.
    pub path: String,
    /// What happened.
    pub what: Changed,
    /// The difference, where it can be shown as text.
    pub diff: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// It was made.
    Created,
    /// Its content is another.
    Modified,
    /// Only its permissions are others.
    Mode,
    /// It is gone.
    Deleted,
    /// Something of another kind is in its place.
    Replaced,
}

/// What a rewind or a redo did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Restored {
    /// The checkpoints, the oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// What was done to files.
    pub changes: Vec<FileChange>,
    /// What could not be covered, each in a sentence.
    pub uncovered: Vec<String>,
}

/// How far a rewind may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Force {
    /// Files that somebody else changed meanwhile are left alone: nothing is done at all.
    #[default]
    Never,
    /// They are taken back, too. Doing it again brings them back.
    Always,
}

/// Why files were not taken back. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// There is no such checkpoint.
    #[error("there is no checkpoint {number}; {}", known(*.last))]
    Unknown {
        /// The number that was asked for.
        number: u64,
        /// The last one there is; 0 when there is none.
        last: u64,
    },
    /// There is nothing to do.
    #[error("{0}")]
    Nothing(String),
    /// Somebody else changed these files.
    #[error("changed since by somebody else: {}", list(.0))]
    Conflict(Vec<String>),
    /// The files or what was kept of them cannot be used.
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

/// The checkpoints of one session.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// All of them, the oldest first.
    ///
    /// # Errors
    /// When what was kept cannot be read.
    async fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError>;

    /// What the turn of a checkpoint did to files.
    ///
    /// # Errors
    /// When there is no such checkpoint, or what was kept cannot be read.
    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError>;

    /// Restores files as they were at a checkpoint. Once begun it is finished, if need be after a crash.
    ///
    /// # Errors
    /// When there is no such checkpoint, or somebody else changed the files.
    async fn rewind(&self, number: u64, force: Force) -> Result<Restored, CheckpointError>;

    /// Undoes the last rewind, unless something new was done since.
    ///
    /// # Errors
    /// When there is nothing to do again, or somebody else changed the files.
    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError>;
}
