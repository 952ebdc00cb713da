//! SES-11: checkpoints of a workspace, and taking files back to them.
//!
//! A [`Tracker`] is a hook of a session's turns. Before the first call of a turn that may change files, the state of
//! the workspace is known; after each such call, what it changed is in the session's journal. A tool that names the files
//! it changes costs a look at those; a command costs a [`scan`] of the workspace, which reads only what changed.
//!
//! Where things are, below the folder given to [`Tracker::new`], one folder per workspace:
//!
//! - `index`: every path with its stamp and digest, a cache ([`index`])
//! - `packs/`: contents by digest ([`pack`])
//! - `sessions/<session>.jsonl`: what each session did ([`journal`])
//!
//! What is not covered: the state of version control (`.git`), what is denied to tools, contents beyond the
//! [`CheckpointLimits`], owners and times, and what a background job changes after its turn. What a turn did and could
//! not be kept is said when it is taken back.

pub mod diff;
mod files;
mod index;
mod journal;
mod node;
mod pack;
mod restore;
mod scan;
mod tree;
mod wrap;

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use windlass_core::checkpoint::{Checkpoint, CheckpointError, Checkpoints, FileChange, Force, Restored};
use windlass_core::clock::Clock;
use windlass_core::id::{MessageId, SessionId};

use self::files::{Files, failed, listed};
pub use self::tree::CheckpointLimits;
use windlass_sandbox::Workspace;
use windlass_sandbox::sha256_hex;

/// Follows what a session does to files. Nothing is read or written until something is changed. Cheap to clone.
#[derive(Clone)]
pub struct Tracker(Arc<Files>);

impl Tracker {
    /// The tracker of a session that works on `ground`. What it keeps goes below `folder`.
    pub fn new(
        ground: &Workspace,
        folder: &Path,
        session: &SessionId,
        clock: Arc<dyn Clock>,
        limits: CheckpointLimits,
    ) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let workspace: String = sha256_hex(ground.root().as_os_str().as_bytes())
            .chars()
            .take(32)
            .collect();
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let session = match session.as_str() {
            plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
            odd => sha256_hex(odd.as_bytes()),
        };
        Self(Arc::new(Files {
            ground: ground.clone(),
            folder: folder.join(workspace),
            session,
            clock,
            limits,
            state: Mutex::default(),
            notes: Mutex::default(),
        }))
    }

    /// A new turn begins. What the user should know: a restoration that a stopped process had begun was finished.
    ///
    /// The scan of a call that was cancelled may still be under way; that is waited for by the next call that may change
    /// something, and not here.
    pub async fn begin_turn(&self, message: MessageId, prompt: String) -> Vec<String> {
        self.0.notes().begun = Some((message, prompt));
        if self.0.marker().exists() {
            let mended = self.0.blocking(|this| this.mend(&mut this.lock())).await;
            if let Err(error) = mended {
                let notice = format!("files could not be taken back: {error}");
                self.0.notes().notices.push(notice);
            }
        }
        std::mem::take(&mut self.0.notes().notices)
    }

    /// Looks at the whole workspace now, as the first command of a turn does; how many files and folders there are. For
    /// whoever wants to have paid for it already, or to know what it costs.
    ///
    /// # Errors
    /// When the workspace cannot be read, or what is kept of it not be written.
    pub fn survey(&self) -> std::io::Result<usize> {
        self.0.survey()
    }
}

#[async_trait]
impl Checkpoints for Tracker {
    async fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError> {
        let told = self.0.blocking(Files::told).await.map_err(failed)?;
        Ok(told.turns.values().map(listed).collect())
    }

    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.show_turn(number)))
            .await
            .map_err(failed)?
    }

    async fn rewind(&self, number: u64, force: Force) -> Result<Restored, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.rewind_to(number, force)))
            .await
            .map_err(failed)?
    }

    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError> {
        self.0
            .blocking(move |this| Ok(this.redo_last(force)))
            .await
            .map_err(failed)?
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
