//! Description of a worktree on the disk.
//!
//! Layout of a worktree's folder:
//!
//! - `record.json`: this description; `is_complete` becomes true when the worktree can be used
//! - `manifest`: the files as they were copied
//! - `base/`: contents of those that are not objects of a repository
//! - `tree/<name>`: the copy, under the name of the folder that was copied

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Algorithm;
use crate::error::{Context, Result, WorktreeError};

const FILE: &str = "record.json";

/// Description of a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) is_complete: bool,
    /// Top folder of what was copied.
    pub(crate) top: PathBuf,
    /// Position of the copied folder below it.
    pub(crate) subfolder: PathBuf,
    /// Top folder of the copy.
    pub(crate) tree: PathBuf,
    /// Algorithm of the digests.
    pub(crate) algorithm: Algorithm,
    /// The repository, if there is one.
    pub(crate) repository: Option<InRepository>,
}

/// Part of a description that concerns the repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InRepository {
    /// Folder that all working trees of the repository share.
    pub(crate) common: PathBuf,
    /// Branch of the worktree.
    pub(crate) branch: String,
    /// Commit that the copied folder was at.
    pub(crate) head: String,
    /// Commit that holds the copied state.
    pub(crate) base: Option<String>,
}

impl Record {
    /// Reads the description in a worktree's folder. Returns `None` if there is none.
    pub(crate) fn read(at: &Path) -> Result<Option<Self>> {
        let path = at.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).when("read", &path),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| WorktreeError::Damaged {
                path,
                problem: error.to_string(),
            })
    }

    /// Writes the description into a worktree's folder, as a whole or not at all.
    pub(crate) fn write(&self, at: &Path) -> Result<()> {
        let path = at.join(FILE);
        let text = serde_json::to_vec_pretty(self).map_err(|error| WorktreeError::Damaged {
            path: path.clone(),
            problem: error.to_string(),
        })?;
        let draft = at.join("record.new");
        fs::write(&draft, text).when("write", &draft)?;
        fs::rename(&draft, &path).when("write", &path)
    }

    pub(crate) fn branch(&self) -> Option<&str> {
        self.repository.as_ref().map(|part| part.branch.as_str())
    }
}
