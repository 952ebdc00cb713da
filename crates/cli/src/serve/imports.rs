//! Sessions that clients of the server upload.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;
use windlass_core::log::Store;
use windlass_host::import::keep;
use windlass_server::{Files, ImportRefusal, ImportedSession, SessionImports, UploadedSession};

use super::files::LocalFiles;
use crate::sessions::import::parse;

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
            let place = (upload.name.as_str(), Path::new(&here));
            let read = parse(None, upload.text.as_bytes(), place, upload.lenient);
            read.map(|(from, imported)| (from, imported, upload.lenient))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| ImportRefusal::Failed(error.to_string()))?;
        let (from, mut imported, lenient) = read.map_err(|problem| {
            ImportRefusal::Unknown(problem.message.replace("; --from sets the format", ""))
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
        let kept = keep(&*self.store, &imported, Path::new(&self.here), user).await;
        let id = kept.map_err(|error| ImportRefusal::Failed(error.to_string()))?;
        let from = from.to_possible_value();
        Ok(ImportedSession {
            id,
            from: from.map(|from| from.get_name().to_owned()).unwrap_or_default(),
            messages: imported.messages,
            skipped: imported.skipped,
            damaged: imported.damaged,
        })
    }
}
