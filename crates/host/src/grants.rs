//! Grants that outlive a session, in a file of the user.

use std::io;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use windlass_core::log::UserName;
use windlass_core::permission::{Approver, Denial, Grant, GrantStore, NobodyToAsk, Proposal, granted};

use windlass_config::folders::Folders;
use windlass_config::private_file::{Held, PrivateFile};
use windlass_config::{Problem, ProblemKind};

/// Maximum number of stored grants; the oldest are dropped first.
const MAX_GRANTS: usize = 2000;

/// A grants file. It is read on every use, so that the answers of other processes and manual edits take
/// effect.
pub struct GrantFile {
    file: PrivateFile,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    grants: Vec<Grant>,
}

impl GrantFile {
    /// Returns the grants file of the local user.
    pub fn new(folders: &Folders) -> Self {
        Self::of_user(folders, &UserName::default())
    }

    /// DIST-7: returns the grants file of a user.
    pub fn of_user(folders: &Folders, user: &UserName) -> Self {
        let file = folders.grants_file();
        let file = match user.is_local() {
            true => file,
            false => file.with_file_name(format!("grants@{user}.json")),
        };
        Self {
            file: PrivateFile::new(file),
        }
    }

    /// Returns the grants.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn read(&self) -> Result<Vec<Grant>, Problem> {
        let wrong = |why: String| {
            let text = format!(
                "{}: {why}; its grants are ignored until you fix or remove it",
                self.file.path().display()
            );
            Problem::new(ProblemKind::Config, text)
        };
        let text = self.file.read().map_err(|error| wrong(error.to_string()))?;
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let content: Content = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(content.grants)
    }

    /// Removes all grants and returns their number. Unreadable grants are removed as well.
    pub fn clear(&self) -> Result<usize, Problem> {
        if matches!(self.file.read(), Ok(None)) {
            return Ok(0);
        }
        let failed = |error| {
            let path = self.file.path().display();
            Problem::new(ProblemKind::Failed, format!("{path}: {error}"))
        };
        let held = self.file.hold().map_err(failed)?;
        let count = self.read().map_or(0, |grants| grants.len());
        write(&held, Vec::new()).map_err(failed)?;
        Ok(count)
    }
}

fn write(held: &Held, grants: Vec<Grant>) -> io::Result<()> {
    held.write(&serde_json::to_string_pretty(&Content { grants })?)
}

impl GrantStore for GrantFile {
    fn all(&self) -> Vec<Grant> {
        // A file that cannot be parsed grants nothing.
        self.read().unwrap_or_default()
    }

    fn add(&self, grant: &Grant) -> Result<(), String> {
        let held = self.file.hold().map_err(|error| error.to_string())?;
        let mut grants = self.read().map_err(|problem| problem.to_string())?;
        if !grants.contains(grant) {
            grants.push(grant.clone());
        }
        let surplus = grants.len().saturating_sub(MAX_GRANTS);
        grants.drain(..surplus);
        write(&held, grants).map_err(|error| error.to_string())
    }
}

/// Formats a grant for display.
pub fn grant_line(grant: &Grant) -> String {
    let rules = grant.rules().iter().map(ToString::to_string);
    let parts: Vec<String> = grant.parts().map(str::to_owned).chain(rules).collect();
    let reach: Vec<&str> = grant.reach().words().collect();
    let reach = match reach.as_slice() {
        [] => String::new(),
        words => format!(" ({})", words.join(", ")),
    };
    format!(
        "{} in {}: {}{reach}",
        grant.tool(),
        grant.cwd().display(),
        parts.join(" · ")
    )
}

/// An approver without a person: permanent grants count, every other request is denied.
pub struct NobodyNow(pub GrantFile);

#[async_trait]
impl Approver for NobodyNow {
    fn granted(&self, proposal: &Proposal) -> bool {
        granted(self.0.all().iter(), proposal)
    }

    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        NobodyToAsk.approve(proposal).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use windlass_testkit::at_once;

    /// SAFE-6: permanent grants that are stored at the same time are all stored, and forgetting removes all
    /// of them.
    #[test]
    fn no_yes_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = GrantFile {
            file: PrivateFile::new(folder.path().join("grants.json")),
        };
        assert_eq!(file.clear().unwrap(), 0);
        at_once(8, |number| {
            let grant =
                json!({"tool": "bash", "cwd": "/", "category": "admin", "parts": [number.to_string()]});
            file.add(&serde_json::from_value(grant).unwrap()).unwrap();
        });
        let grants = file.read().unwrap();
        let mut parts: Vec<&str> = grants.iter().flat_map(Grant::parts).collect();
        parts.sort_unstable();
        assert_eq!(parts, ["0", "1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(file.clear().unwrap(), 8);
        assert_eq!(file.read().unwrap(), []);

        // A file that cannot be parsed is not overwritten by an approval, but can be forgotten.
        std::fs::write(file.file.path(), "{ broken").unwrap();
        assert!(file.add(&grants[0]).unwrap_err().contains("grants.json"));
        assert_eq!(file.clear().unwrap(), 0);
        assert_eq!(file.read().unwrap(), []);
    }
}
