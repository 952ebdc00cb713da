//! Sessions that clients of the server upload.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use windlass_config::ProblemKind;
use windlass_core::log::Store;
use windlass_server::{Files, ImportRefusal, ImportedSession, SessionImports, UploadedSession};

use super::files::LocalFiles;
use crate::args::ImportFrom;
use crate::sessions::import::{keep, parse};

/// Stores uploaded sessions like `windlass sessions import`.
pub(crate) struct LocalImports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) files: Arc<LocalFiles>,
    /// Folder of sessions whose own does not exist here.
    pub(crate) here: String,
}

#[async_trait]
impl SessionImports for LocalImports {
    async fn import(&self, upload: UploadedSession) -> Result<ImportedSession, ImportRefusal> {
        let (here, user) = (self.here.clone(), upload.user.clone());
        let reading = move || {
            let read = parse(None, upload.text.as_bytes(), &upload.name, Path::new(&here));
            read.map(|(from, imported)| (from, imported, upload.lenient))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| ImportRefusal::Failed(error.to_string()))?;
        let (from, mut imported, lenient) = read.map_err(|problem| match problem.kind {
            ProblemKind::Usage => {
                ImportRefusal::Unknown(problem.message.replace("; --from sets the format", ""))
            }
            _ => ImportRefusal::Unknown(problem.message),
        })?;
        if !lenient && !imported.damaged.is_empty() {
            return Err(ImportRefusal::Damaged(imported.damaged));
        }
        // A folder that sessions may not work in is no place for an imported one either.
        if let Some(place) = imported.place.take()
            && self.files.check(&place).await.is_ok()
        {
            imported.place = Some(place);
        }
        let kept = keep(&*self.store, (&user, &imported), Path::new(&self.here)).await;
        let id = kept.map_err(|problem| ImportRefusal::Failed(problem.message))?;
        Ok(ImportedSession {
            id,
            from: match from {
                ImportFrom::Windlass => "windlass",
                ImportFrom::ClaudeCode => "claude-code",
                ImportFrom::Codex => "codex",
                ImportFrom::Pi => "pi",
            },
            messages: imported.messages,
            skipped: imported.skipped,
            damaged: imported.damaged,
        })
    }
}
