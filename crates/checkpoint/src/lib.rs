//! SES-11: checkpoints of a workspace, and restoring files to them.
//!
//! A [`Tracker`] is a hook of a session's turns. Before the first call of a turn that may change files, the
//! state of the workspace is recorded; after each such call, its changes are written to the session's
//! journal. For a tool that names the files it changes, only those are checked; a command requires a `scan`
//! of the workspace, which reads only changed files. In a large workspace the folders are watched (`watch`), and
//! only what was reported is looked at (`survey`).
//!
//! Layout below the folder given to [`Tracker::new`], one folder per workspace:
//!
//! - `index`: every path with its stamp and digest, an append-only cache (`index`)
//! - `packs/`: contents by digest (`pack`)
//! - `sessions/<session>.jsonl`: changes made by each session (`journal`)
//!
//! If several servers share the store of the sessions, the same data goes there, in the background (`share`), so that
//! another server can rebuild the workspace (`rebuild`).
//!
//! Not covered: the state of version control (`.git`), files denied to tools, contents beyond the
//! [`CheckpointLimits`], owners and times, and changes made by a background job after its turn. A rewind
//! reports the changes of a turn that could not be stored.

mod access;
mod describe;
pub mod diff;
mod files;
mod index;
mod journal;
mod look;
mod node;
mod pack;
mod rebuild;
mod restore;
mod scan;
mod share;
mod survey;
mod tree;
mod watch;
mod wrap;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use windlass_core::checkpoint::{Checkpoint, CheckpointError, Checkpoints, FileChange, Force, Restored};
use windlass_core::clock::Clock;
use windlass_core::id::{MessageId, SessionId};

use self::files::{Files, failed, listed};
use self::journal::Journal;
pub use self::rebuild::{Rebuild, RebuildError, RebuiltFolder, sweep};
pub use self::share::Sharing;
pub use self::tree::{CheckpointLimits, is_internal};
use windlass_sandbox::Workspace;
use windlass_sandbox::sha256_hex;

/// Receives the paths that calls changed, as soon as they are recorded.
pub trait ChangeObserver: Send + Sync {
    /// Tells the paths below the workspace that a call changed; `None` if they are not known. Must not block.
    fn files_changed(&self, paths: Option<Vec<PathBuf>>);
}

/// Records the changes that a session makes to files. Nothing is read or written until a call may change a
/// file. Cheap to clone.
#[derive(Clone)]
pub struct Tracker(Arc<Files>);

impl Tracker {
    /// Creates the tracker of a session that works in `workspace`. It stores its data below `folder`.
    pub fn new(
        workspace: &Workspace,
        folder: &Path,
        session: &SessionId,
        clock: Arc<dyn Clock>,
        limits: CheckpointLimits,
    ) -> Self {
        Self(Arc::new(Files {
            workspace: workspace.clone(),
            folder: data_of(folder, workspace.root()),
            session: file_name(session),
            clock,
            limits,
            state: Mutex::default(),
            notes: Mutex::default(),
            observer: OnceLock::new(),
            survey: Mutex::default(),
            share: OnceLock::new(),
        }))
    }

    /// Describes the workspace in a store that several servers share, in the background after every change. Only the
    /// first call counts.
    pub fn share(&self, sharing: Sharing) {
        let _ = self.0.share.set(share::Share::new(sharing));
    }

    /// Describes the workspace as it is now, and waits until that is stored. Does nothing if it is not shared. No call
    /// may run.
    ///
    /// # Errors
    /// When the workspace cannot be read, or the store cannot be written.
    pub async fn save(&self) -> Result<(), CheckpointError> {
        self.0
            .save(share::Freshness::Now)
            .await
            .map_err(CheckpointError::Failed)
    }

    /// Waits until the last change is described, for a moment at most.
    pub async fn settle(&self) {
        self.0.settle().await;
    }

    /// Names the one who is told what calls change. Only the first one is.
    pub fn observe(&self, observer: Arc<dyn ChangeObserver>) {
        let _ = self.0.observer.set(observer);
    }

    /// Starts a new turn. Returns notices for the user, such as a restoration that a stopped process had
    /// started and that is now finished.
    ///
    /// The scan of a cancelled call may still be running. The next call that may change something waits for
    /// it; this function does not.
    pub async fn begin_turn(&self, message: MessageId, prompt: String) -> Vec<String> {
        self.0.notes().begun = Some((message, prompt));
        if self.0.marker().exists() {
            let recovered = self.0.blocking(|this| this.recover(&mut this.lock())).await;
            if let Err(error) = recovered {
                let notice = format!("files could not be restored: {error}");
                self.0.notes().notices.push(notice);
            }
        }
        std::mem::take(&mut self.0.notes().notices)
    }

    /// Scans the whole workspace now, as the first command of a turn does, and returns the number of files
    /// and folders. Useful to pay for the first scan in advance, or to measure it.
    ///
    /// # Errors
    /// When the workspace cannot be read, or the stored state cannot be written.
    pub fn survey(&self) -> std::io::Result<usize> {
        self.0.survey()
    }
}

/// Returns the checkpoints of a session that another process may work in, oldest first. Changes nothing, so what that
/// process has not recorded yet is missing.
///
/// # Errors
/// When the stored checkpoints cannot be read.
pub fn recorded(folder: &Path, workspace: &Path, session: &SessionId) -> std::io::Result<Vec<Checkpoint>> {
    let sessions = data_of(folder, workspace).join("sessions");
    let history = Journal::new(sessions.join(format!("{}.jsonl", file_name(session)))).read()?;
    Ok(history.turns.values().map(listed).collect())
}

/// Returns the folder of the data about a workspace.
fn data_of(folder: &Path, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let name = sha256_hex(root.as_os_str().as_bytes());
    folder.join(name.chars().take(32).collect::<String>())
}

/// Returns the id of a session as a file may be called.
fn file_name(session: &SessionId) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    match session.as_str() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
        odd => sha256_hex(odd.as_bytes()),
    }
}

#[async_trait]
impl Checkpoints for Tracker {
    async fn tree(&self) -> Result<Option<String>, CheckpointError> {
        self.0.blocking(Files::digest).await.map_err(failed)
    }

    async fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError> {
        let history = self.0.blocking(Files::history).await.map_err(failed)?;
        Ok(history.turns.values().map(listed).collect())
    }

    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.show_turn(number)))
            .await
            .map_err(failed)?
    }

    async fn uncovered(&self) -> Result<Vec<String>, CheckpointError> {
        let history = self.0.blocking(Files::history).await.map_err(failed)?;
        let turns = history.turns.values().filter(|turn| !turn.checkpoint.undone);
        Ok(turns.flat_map(|turn| turn.blind.iter().cloned()).collect())
    }

    async fn rewind(&self, number: u64, force: Force) -> Result<Restored, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.rewind_to(number, force)))
            .await
            .map_err(failed)?
            .inspect(|_| self.0.share_soon())
    }

    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.redo_last(force)))
            .await
            .map_err(failed)?
            .inspect(|_| self.0.share_soon())
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "share_tests.rs"]
mod share_tests;
