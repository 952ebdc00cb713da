//! CFG-2: rereads the settings of a session between turns when one of their files changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_config::Problem;
use windlass_config::environment::{self, Given};
use windlass_config::folders::Folders;
use windlass_config::settings::{FileStamp, Settings, changes, stamps};

/// Settings that are used only when a session starts: tools, sandbox, connections.
const LATER: [&str; 14] = [
    "provider",
    "model",
    "providers.",
    "models.",
    "retry.",
    "timeouts.",
    "session.",
    "checkpoints.",
    "memory.",
    "tools.taco.",
    "security.network",
    "security.allowed_paths",
    "security.denied_paths",
    "security.blocked_commands",
];

/// Rereads settings when their files changed.
pub struct SettingsReload {
    given: Given,
    folders: Folders,
    cwd: PathBuf,
    /// The files as they were before they were last read.
    stamps: Vec<FileStamp>,
    now: Arc<Settings>,
    /// True if the files are never reread.
    is_fixed: bool,
}

impl SettingsReload {
    /// The settings as they were read when the run began. If the files have changed since then, the first refresh
    /// rereads them.
    pub fn new(given: Given, folders: Folders, cwd: &Path, now: Arc<Settings>) -> Self {
        Self {
            given,
            folders,
            cwd: cwd.to_owned(),
            stamps: now.origins.files.clone(),
            now,
            is_fixed: false,
        }
    }

    /// SUB-3: keeps the settings as they are: a sub-agent has those of the session above it.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self {
            is_fixed: true,
            ..self
        }
    }

    /// Returns the settings in effect.
    pub fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.now)
    }

    /// Returns the new settings, if they changed, and notices for the user. An invalid file changes nothing.
    pub fn refresh(&mut self) -> (Option<Arc<Settings>>, Vec<String>) {
        if self.is_fixed {
            return (None, Vec::new());
        }
        let stamps = self.look();
        if stamps == self.stamps {
            return (None, Vec::new());
        }
        self.stamps = stamps;
        let read: Result<Settings, Problem> = environment::settings(&self.given, &self.cwd);
        let new = match read {
            Ok(new) => new,
            Err(problem) => {
                let text = format!("{problem}\nkeeping the last valid settings");
                return (None, vec![text]);
            }
        };
        let changed = changes(&self.now, &new);
        if changed.is_empty() {
            return (None, Vec::new());
        }
        let is_later = |key: &str| {
            LATER
                .iter()
                .any(|name| key == *name || (name.ends_with('.') && key.starts_with(name)))
        };
        let (later, at_once): (Vec<_>, Vec<_>) = changed.into_iter().partition(|(key, _)| is_later(key));
        let list = |changed: &[(String, String)]| {
            let lines: Vec<&str> = changed.iter().map(|(_, line)| line.as_str()).collect();
            lines.join(", ")
        };
        let mut notices = Vec::new();
        if !at_once.is_empty() {
            notices.push(format!("settings changed: {}", list(&at_once)));
        }
        if !later.is_empty() {
            notices.push(format!("settings changed, from the next start: {}", list(&later)));
        }
        self.now = Arc::new(new);
        (Some(Arc::clone(&self.now)), notices)
    }

    fn look(&self) -> Vec<FileStamp> {
        let given = self.given.config.clone();
        let user_file = given.unwrap_or_else(|| self.folders.user_file());
        let project = self.folders.project(&self.cwd);
        stamps(&self.folders, &user_file, project.as_ref())
    }
}
