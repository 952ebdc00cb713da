//! DIST-5: folders of sessions that move between servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{ClientError, FolderMade, SessionFolders, SessionId};
use windlass_checkpoint::{Rebuild, RebuiltFolder};
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_core::checkpoint::CheckpointError;
use windlass_core::log::ClusterStore;
use windlass_host::factory::LocalFactory;
use windlass_host::sandbox_access::SandboxAccess;

use crate::session_folder;

/// Folders on this machine.
pub(crate) struct LocalFolders {
    pub(crate) factory: Arc<LocalFactory>,
    pub(crate) store: Arc<dyn ClusterStore>,
    /// Folder of the checkpoint data.
    pub(crate) data: PathBuf,
}

impl LocalFolders {
    fn rebuild_of(&self, session: &SessionId) -> Rebuild {
        Rebuild {
            store: Arc::clone(&self.store) as _,
            session: session.clone(),
            data: self.data.clone(),
        }
    }

    /// Checks that files of a session may be written in a folder.
    fn check(&self, folder: &Path) -> Result<(), Problem> {
        let settings = environment::settings(self.factory.given(), session_folder::existing(folder))?;
        session_folder::check_given(&settings, folder)?;
        let above = session_folder::existing(folder.parent().unwrap_or(folder));
        let workspace = SandboxAccess::new(&settings.security, above)?.reading_workspace()?;
        match workspace.protects(&folder.to_string_lossy()) {
            None => Ok(()),
            Some(why) => Err(Problem::new(
                ProblemKind::Denied,
                format!("no session can move to {}: {why}", folder.display()),
            )),
        }
    }
}

#[async_trait]
impl SessionFolders for LocalFolders {
    async fn save(&self, session: &SessionId) -> Result<(), ClientError> {
        let Some(tracker) = self.factory.tracker(session) else {
            let why = "its folder cannot be stored: checkpoints are off there (`checkpoints.enabled`)";
            return Err(ClientError::Command(why.to_owned()));
        };
        let failed =
            |error: CheckpointError| ClientError::Command(format!("its folder cannot be stored: {error}"));
        tracker.save().await.map_err(failed)
    }

    async fn rebuild(&self, session: &SessionId, folder: &str) -> Result<FolderMade, ClientError> {
        self.check(Path::new(folder))
            .map_err(|problem| ClientError::Command(problem.message))?;
        let built = self.rebuild_of(session).run(Path::new(folder)).await;
        let built = built.map_err(|error| ClientError::Command(error.to_string()))?;
        let Some(folder) = built.folder.to_str().map(str::to_owned) else {
            self.rebuild_of(session).discard(&built).await;
            let why = format!(
                "{}: the name of the folder is not valid UTF-8",
                built.folder.display()
            );
            return Err(ClientError::Command(why));
        };
        Ok(FolderMade {
            folder,
            files: built.files,
            as_of: built.as_of,
            after: built.after,
            left: built.left,
            is_new: built.is_new,
        })
    }

    async fn discard(&self, session: &SessionId, made: &FolderMade) {
        let built = RebuiltFolder {
            folder: PathBuf::from(&made.folder),
            is_new: made.is_new,
            files: made.files,
            as_of: made.as_of,
            after: made.after.clone(),
            left: Vec::new(),
        };
        self.rebuild_of(session).discard(&built).await;
    }
}
