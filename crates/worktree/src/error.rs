//! Errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a worktree cannot be created, compared or merged.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The name cannot be the name of a folder and a branch.
    #[error("`{0}` cannot name a worktree; use letters, digits, `-` and `_`, at most 100 of them")]
    Name(String),
    /// There is a worktree with this name already.
    #[error("there is already a worktree at {}", .0.display())]
    Exists(PathBuf),
    /// There is no worktree with this name, or it was not finished.
    #[error("there is no worktree at {}", .0.display())]
    Missing(PathBuf),
    /// The stored description of the worktree cannot be read.
    #[error("the description of a worktree in {} is damaged: {problem}", path.display())]
    Damaged {
        /// File with the description.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The folder to merge into does not correspond to the folder that was copied.
    #[error("cannot merge into {}: it does not end in `{}`, as the copied folder does", into.display(), subfolder.display())]
    Elsewhere {
        /// The folder to merge into.
        into: PathBuf,
        /// Position of the copied folder in its repository.
        subfolder: PathBuf,
    },
    /// The folder has more files than a worktree may have.
    #[error("{} has more than {limit} files, too many for a worktree", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// Maximum number of files.
        limit: usize,
    },
    /// A git command failed.
    #[error("`git {command}` failed: {problem}")]
    Git {
        /// The subcommand.
        command: String,
        /// The message of git, or of the system.
        problem: String,
    },
    /// The work was canceled.
    #[error("the work on the worktree was canceled")]
    Canceled,
    /// The system refused a step.
    #[error("cannot {step} {}: {source}", path.display())]
    System {
        /// The step, as a verb.
        step: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

pub(crate) type Result<T, E = WorktreeError> = std::result::Result<T, E>;

/// Adds the step and the path to an error of the system.
pub(crate) trait Context<T> {
    fn when(self, step: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn when(self, step: &'static str, path: &Path) -> Result<T> {
        self.map_err(|error| WorktreeError::System {
            step,
            path: path.to_owned(),
            source: error.into(),
        })
    }
}
