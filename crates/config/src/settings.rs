//! Settings: defaults, then the user's file, the project's file, the environment and flags.
//!
//! Every key is one entry in the table of keys: its type and range, default, help and effect. Everything else is
//! derived from that table: reading and checking each layer, the messages, [`show()`], [`explain`],
//! [`schema()`] and the reference in `docs/config.md`. The types to know are [`Sources`] (the input),
//! [`Settings`] (the result, one small struct per consumer) and [`SettingsError`] (all problems, with their
//! locations).
//!
//! Deliberately absent: API keys. They never belong in these files: a provider names a variable or a command,
//! and keys stored by `/connect` have a separate file.

mod environment;
mod file;
mod keys;
mod kind;
mod layers;
mod problem;
mod reference;
mod schema;
mod show;
mod suggest;
mod typed;
mod value;

#[cfg(test)]
mod error_tests;
#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod reference_tests;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::layers::Effective;
use self::layers::{Layers, SettingOrigin};
pub use self::problem::SettingsError;
pub use self::reference::{explain, reference_markdown};
pub use self::schema::schema;
pub use self::show::show;
pub use self::typed::{
    AgentSettings, AuditScope, AuditSettings, AutonomySettings, ChildSettings, ClusterSettings, CodeSettings,
    ContextSettings, DailyLimits, EmbeddingSource, KeyCommand, McpSettings, MemorySettings, ModelEntry,
    NetworkAccess, ProviderEntry, RetrySettings, SearchEngine, SecuritySettings, ServerSettings,
    TimeoutSettings, ToolSettings, UserLimits, WebSearchSettings,
};
pub use self::value::quote;
use crate::folders::{Folders, Project, same_place};
use crate::trust::{self, TrustState};

/// Inputs from which settings are read.
pub struct Sources<'a> {
    /// Folders of the user.
    pub folders: &'a Folders,
    /// Directory whose project is used.
    pub cwd: &'a Path,
    /// Looks up one environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Names of all environment variables, to detect misspelled ones.
    pub env_names: Vec<String>,
    /// Settings from flags; if a key is given more than once, the last one wins.
    pub overrides: Vec<Override>,
    /// Settings file to read instead of the user's; it must exist: `--config`.
    pub user_file: Option<PathBuf>,
    /// File of further settings, over the user's and the project's: `--profile`.
    pub profile: Option<PathBuf>,
}

/// A setting from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Dotted key, such as `agent.max_iterations`.
    pub key: String,
    /// Value as typed; strings need no quotes.
    pub value: String,
    /// Flag as typed, such as `--model` or `-c`.
    pub flag: String,
}

/// CFG-1: the settings in effect.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Provider to use; chosen by the keys in the environment if `None`.
    pub provider: Option<String>,
    /// Id of the model; the provider's default if `None`.
    pub model: Option<String>,
    /// Settings of the agent loop.
    pub agent: AgentSettings,
    /// Settings of tool execution.
    pub tools: ToolSettings,
    /// Settings for retrying failed requests.
    pub retry: RetrySettings,
    /// Settings of connections.
    pub timeouts: TimeoutSettings,
    /// Settings of compaction.
    pub context: ContextSettings,
    /// Settings of approvals.
    pub security: SecuritySettings,
    /// Providers, by the user's name for them.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// Facts about models, by model id.
    pub models: BTreeMap<String, ModelEntry>,
    /// Every key with its value and origin, in the order of the reference.
    pub origins: Origins,
    /// Ignored settings and the reasons, one line each.
    pub warnings: Vec<String>,
}

/// Every key with its value and origin, and the files that they were read from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    list: Arc<[Effective]>,
    /// The files as they were before they were read.
    pub files: Vec<FileStamp>,
}

impl Deref for Origins {
    type Target = [Effective];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl Origins {
    fn new(list: Vec<Effective>) -> Self {
        Self {
            list: list.into(),
            files: Vec::new(),
        }
    }
}

/// A file and the fingerprint of its state; `None` if it does not exist.
pub type FileStamp = (PathBuf, Option<(u64, i64, i64, u64)>);

/// Returns the state of the files that settings are read from: `user_file`, the list of trusted folders, and the file of
/// the project.
pub fn stamps(folders: &Folders, user_file: &Path, project: Option<&Project>) -> Vec<FileStamp> {
    let files = [user_file.to_owned(), folders.trust_file()];
    let files = files.into_iter().chain(project.map(Project::config_file));
    let stamp = |path: PathBuf| {
        let data = std::fs::metadata(&path).ok();
        let data = data.map(|data| (data.size(), data.mtime(), data.mtime_nsec(), data.ino()));
        (path, data)
    };
    files.map(stamp).collect()
}

impl Settings {
    /// Returns true if a flag or an environment variable of this run sets a key.
    pub fn is_told(&self, key: &str) -> bool {
        let mut told = self.origins.iter().filter(|entry| entry.key == key);
        told.any(|entry| entry.origin.is_of_this_run())
    }
}

/// CFG-1: reads all layers. The error contains every problem in any of them.
pub fn load(sources: &Sources<'_>) -> Result<Settings, SettingsError> {
    let mut layers = Layers::default();
    let project = sources.folders.project(sources.cwd);
    let named = sources.user_file.as_ref();
    let user_file = named.map_or_else(|| sources.folders.user_file(), PathBuf::clone);
    let files = stamps(sources.folders, &user_file, project.as_ref());
    match named {
        Some(named) => file::read_named(named, &mut layers),
        None => file::read_user(&user_file, &mut layers),
    }
    if let Some(project) = &project {
        read_project(sources.folders, project, &user_file, &mut layers);
    }
    if let Some(profile) = &sources.profile {
        file::read_named(profile, &mut layers);
    }
    environment::read(sources, &mut layers);
    environment::read_overrides(&sources.overrides, &mut layers);
    let mut settings = layers.into_settings()?;
    settings.warnings.extend(sources.folders.exposed(&user_file));
    settings.security.config_file = Some(user_file);
    settings.origins.files = files;
    Ok(settings)
}

/// SAFE-6: a project's file takes effect only in a folder that the user trusts, and only with the content
/// that was trusted.
fn read_project(folders: &Folders, project: &Project, user_file: &Path, layers: &mut Layers) {
    let path = project.config_file();
    // A file that the user named is the user's, wherever it is.
    let is_users = same_place(&path, user_file);
    if is_users && !project.tools_file().exists() && !project.commands_folder().exists() {
        return;
    }
    let standing = trust::look(folders, project);
    if let Some(notice) = standing.notice(project) {
        layers.warn(notice);
    }
    if let (TrustState::Trusted(snapshot), false) = (standing, is_users) {
        file::read_project(&path, snapshot.bytes(project, &path), layers);
    }
}

/// Returns the keys whose values differ, each with its new assignment.
pub fn changes(before: &Settings, after: &Settings) -> Vec<(String, String)> {
    let old = |key: &str| before.origins.iter().find(|entry| entry.key == key);
    let mut changes: Vec<(String, String)> = after
        .origins
        .iter()
        .filter(|entry| old(&entry.key).is_none_or(|old| old.value != entry.value))
        .map(|entry| (entry.key.to_string(), show::assignment(entry)))
        .collect();
    let is_gone = |entry: &&Effective| !after.origins.iter().any(|new| new.key == entry.key);
    changes.extend(
        before
            .origins
            .iter()
            .filter(is_gone)
            .map(|entry| (entry.key.to_string(), format!("{} is gone", entry.key))),
    );
    changes
}

/// Effect of a project's file.
pub struct Preview {
    /// Assignments, as lines of TOML.
    pub assignments: Vec<String>,
    /// Settings that would be ignored, and the reasons.
    pub warnings: Vec<String>,
}

/// SAFE-6: reads only a project's file, to show it to the user before they trust it.
pub fn preview(path: &Path, bytes: &[u8]) -> Result<Preview, SettingsError> {
    let mut layers = Layers::default();
    file::read_project(path, Some(bytes), &mut layers);
    let settings = layers.into_settings()?;
    let set = settings.origins.iter();
    let set = set.filter(|entry| {
        matches!(
            entry.origin,
            SettingOrigin::File { .. } | SettingOrigin::Added { .. }
        )
    });
    Ok(Preview {
        assignments: set.map(show::assignment).collect(),
        warnings: settings.warnings,
    })
}
