//! The grants that outlive a session, in a file of the user's.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use windlass_core::permission::{Approver, Denial, Grant, GrantStore, NobodyToAsk, Proposal, granted};

use crate::exit::{Exit, Problem};

/// Older grants go first when there are more.
const MAX_GRANTS: usize = 2000;

/// A file of grants. Read each time it is asked, so that another process's answers count, and so do yours when you edit it.
pub(crate) struct GrantFile {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    grants: Vec<Grant>,
}

impl GrantFile {
    pub(crate) fn new(data_folder: &Path) -> Self {
        Self {
            path: data_folder.join("grants.json"),
        }
    }

    /// The grants.
    ///
    /// # Errors
    /// When the file cannot be read or is not what we write.
    pub(crate) fn read(&self) -> Result<Vec<Grant>, Problem> {
        let wrong = |why: String| {
            let text = format!(
                "{}: {why}; nothing in it counts until you mend or remove it",
                self.path.display()
            );
            Problem::new(Exit::Config, text)
        };
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let content: Content = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(content.grants)
    }

    /// Forgets all of them, and says how many there were.
    pub(crate) fn clear(&self) -> Result<usize, Problem> {
        let count = self.read().map_or(0, |grants| grants.len());
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(count),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Problem::new(
                Exit::Failed,
                format!("{}: {error}", self.path.display()),
            )),
        }
    }

    fn write(&self, grants: Vec<Grant>) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let temporary = folder.join(format!(".grants-{}", std::process::id()));
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        let text = serde_json::to_string_pretty(&Content { grants })?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let moved = written.and_then(|()| fs::rename(&temporary, &self.path));
        if moved.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        moved
    }
}

impl GrantStore for GrantFile {
    fn all(&self) -> Vec<Grant> {
        // A file that is not ours to understand grants nothing.
        self.read().unwrap_or_default()
    }

    fn add(&self, grant: &Grant) -> Result<(), String> {
        let mut grants = self.read().map_err(|problem| problem.to_string())?;
        if !grants.contains(grant) {
            grants.push(grant.clone());
        }
        let surplus = grants.len().saturating_sub(MAX_GRANTS);
        grants.drain(..surplus);
        self.write(grants).map_err(|error| error.to_string())
    }
}

/// A grant, for people.
pub(crate) fn grant_line(grant: &Grant) -> String {
    let parts: Vec<&str> = grant.parts().collect();
    format!(
        "{} in {}: {}",
        grant.tool(),
        grant.cwd().display(),
        parts.join(" · ")
    )
}

/// Nobody is there to ask, but what was granted for good is granted.
pub(crate) struct NobodyNow(pub(crate) GrantFile);

#[async_trait]
impl Approver for NobodyNow {
    fn granted(&self, proposal: &Proposal) -> bool {
        granted(self.0.all().iter(), proposal)
    }

    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        NobodyToAsk.approve(proposal).await
    }
}
