//! Settings: defaults, then the user's file, the project's file, the environment and flags.
//!
//! Every key is one entry in [`keys`]: its type and range, default, help and effect. All else is derived from
//! that table: reading and checking each layer, the messages, [`show()`], [`explain`], [`schema()`] and the
//! reference in `docs/config.md`. The types to know are [`Sources`] (what to read), [`Settings`] (what came
//! out, one small struct per consumer) and [`SettingsError`] (all that is wrong, with places).
//!
//! Deliberately absent: API keys. They never live in these files: a provider names a variable or a command, and what `/connect` keeps is
//! in a file of its own.

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
use std::path::{Path, PathBuf};

pub use self::layers::Effective;
use self::layers::{Layers, SettingOrigin};
pub use self::problem::SettingsError;
pub use self::reference::{explain, reference_markdown};
pub use self::schema::schema;
pub use self::show::show;
pub use self::typed::{
    AgentSettings, ContextSettings, KeyCommand, ModelEntry, ProviderEntry, RetrySettings, SecuritySettings,
    TimeoutSettings, ToolSettings,
};
pub use self::value::quote;
use crate::folders::{Folders, Project, same_place};
use crate::trust::{self, TrustState};

/// Where settings are looked for.
pub struct Sources<'a> {
    /// The user's folders.
    pub folders: &'a Folders,
    /// The directory whose project counts.
    pub cwd: &'a Path,
    /// Looks up one environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The names of all environment variables, to find misspelled ones.
    pub env_names: Vec<String>,
    /// What flags say; of several for one key the last wins.
    pub overrides: Vec<Override>,
    /// Read instead of the user's file, and must exist: `--config`.
    pub user_file: Option<PathBuf>,
}

/// A setting from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The dotted key, such as `agent.max_iterations`.
    pub key: String,
    /// The value as typed; strings need no quotes.
    pub value: String,
    /// The flag as typed, such as `--model` or `-c`.
    pub flag: String,
}

/// CFG-1: what is in effect.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The provider to use; chosen from the keys in the environment when `None`.
    pub provider: Option<String>,
    /// The model to ask; the provider's default when `None`.
    pub model: Option<String>,
    /// For the loop.
    pub agent: AgentSettings,
    /// For running tools.
    pub tools: ToolSettings,
    /// For failed requests.
    pub retry: RetrySettings,
    /// For connections.
    pub timeouts: TimeoutSettings,
    /// For compaction.
    pub context: ContextSettings,
    /// For approvals.
    pub security: SecuritySettings,
    /// Providers by the user's name for them.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// Facts about models, by model id.
    pub models: BTreeMap<String, ModelEntry>,
    /// Every key, its value and where that came from, in the order of the reference.
    pub origins: Vec<Effective>,
    /// What was ignored and why, one line each.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Whether a flag or a variable of this run sets a key.
    pub fn is_told(&self, key: &str) -> bool {
        let mut told = self.origins.iter().filter(|entry| entry.key == key);
        told.any(|entry| {
            matches!(
                entry.origin,
                SettingOrigin::Environment(_) | SettingOrigin::Flag(_)
            )
        })
    }
}

/// CFG-1: reads all layers. Fails with everything that is wrong in any of them.
pub fn load(sources: &Sources<'_>) -> Result<Settings, SettingsError> {
    let mut layers = Layers::with_defaults();
    let user_file = match &sources.user_file {
        Some(named) => {
            file::read_named(named, &mut layers);
            named.clone()
        }
        None => {
            let usual = sources.folders.user_file();
            file::read_user(&usual, &mut layers);
            usual
        }
    };
    if let Some(project) = sources.folders.project(sources.cwd) {
        read_project(sources.folders, &project, &user_file, &mut layers);
    }
    environment::read(sources, &mut layers);
    environment::read_overrides(&sources.overrides, &mut layers);
    layers.into_settings()
}

/// SAFE-6: a project's file counts only in a folder that the user trusts, and only as it was when it was trusted.
fn read_project(folders: &Folders, project: &Project, user_file: &Path, layers: &mut Layers) {
    let path = project.config_file();
    // A file that the user named is the user's, wherever it lies.
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

/// The keys whose value is another one, each with its new assignment.
pub fn changes(before: &Settings, after: &Settings) -> Vec<(String, String)> {
    let old = |key: &str| before.origins.iter().find(|entry| entry.key == key);
    let mut changes: Vec<(String, String)> = after
        .origins
        .iter()
        .filter(|entry| old(&entry.key).is_none_or(|old| old.value != entry.value))
        .map(|entry| (entry.key.clone(), show::assignment(entry)))
        .collect();
    let is_gone = |entry: &&Effective| !after.origins.iter().any(|new| new.key == entry.key);
    changes.extend(
        before
            .origins
            .iter()
            .filter(is_gone)
            .map(|entry| (entry.key.clone(), format!("{} is gone", entry.key))),
    );
    changes
}

/// What a project's file would set.
pub struct Preview {
    /// Lines of TOML.
    pub assignments: Vec<String>,
    /// What would be ignored and why.
    pub warnings: Vec<String>,
}

/// SAFE-6: reads a project's file alone, for the person who is asked to trust it.
pub fn preview(path: &Path, bytes: &[u8]) -> Result<Preview, SettingsError> {
    let mut layers = Layers::with_defaults();
    file::read_project(path, Some(bytes), &mut layers);
    let settings = layers.into_settings()?;
    let set = settings.origins.iter();
    let set = set.filter(|entry| matches!(entry.origin, SettingOrigin::File { .. }));
    Ok(Preview {
        assignments: set.map(show::assignment).collect(),
        warnings: settings.warnings,
    })
}
