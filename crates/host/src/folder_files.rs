//! SAFE-3: files that a user's command names, such as `/export FILE`. They are in the session's folder, under the limits of its
//! tools: somebody who may send commands over HTTP gets no further than the session does.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_sandbox::{Location, OpenMode, Workspace};
use windlass_service::FolderFiles;

/// Files of a session's folder on this machine.
pub(crate) struct LocalFolder {
    workspace: Workspace,
    folder: PathBuf,
}

impl LocalFolder {
    pub(crate) fn of(workspace: &Workspace, folder: &Path) -> Arc<dyn FolderFiles> {
        Arc::new(Self {
            workspace: workspace.clone(),
            folder: folder.to_owned(),
        })
    }

    /// Returns the absolute path of a file in the folder.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let whole = self.folder.join(path);
        match self.workspace.location("/", &whole.to_string_lossy()) {
            Location::Workspace => Ok(whole),
            Location::Writable | Location::Outside => Err(format!(
                "expected a path in the session's folder, {}",
                self.folder.display()
            )),
        }
    }

    fn open(&self, whole: &Path, how: OpenMode) -> Result<File, String> {
        let opened = self.workspace.files().open(whole, how);
        opened.map_err(|denied| denied.to_string())
    }
}

impl FolderFiles for LocalFolder {
    fn read(&self, path: &str, limit: u64) -> Result<String, String> {
        let file = self.open(&self.inside(path)?, OpenMode::Read)?;
        let about = file.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() || about.len() > limit {
            return Err(format!("expected a file of at most {limit} bytes"));
        }
        let mut text = String::new();
        let read = file.take(limit).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    fn write(&self, path: &str, text: &str, is_new: bool) -> Result<(), String> {
        let whole = self.inside(path)?;
        let judged = self.workspace.writing(&whole.to_string_lossy());
        if !judged.reasons.is_empty() {
            return Err(format!("not written: {}", judged.reasons.join(", and ")));
        }
        if is_new && whole.symlink_metadata().is_ok() {
            return Err("already exists; name a new file".to_owned());
        }
        let how = if is_new { OpenMode::Create } else { OpenMode::Write };
        let mut file = self.open(&whole, how)?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())
    }
}
