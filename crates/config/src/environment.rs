//! The only place that reads our environment, and from it the settings.

use std::path::Path;

use std::path::PathBuf;
use std::sync::Arc;

use windlass_core::clock::Clock;

use crate::folders::Folders;
use crate::settings::{Override, Settings, Sources, load};
use crate::{Problem, ProblemKind};

/// Settings given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Name of the provider: `--provider`.
    pub provider: Option<String>,
    /// Id of the model: `--model`.
    pub model: Option<String>,
    /// Settings file to read instead of the user's: `--config`.
    pub config: Option<PathBuf>,
    /// Name of a file of further settings: `--profile`.
    pub profile: Option<String>,
    /// `key=value` pairs: `-c`.
    pub set: Vec<String>,
    /// Settings that have a dedicated flag, as (key, flag, value).
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// Returns an environment variable that is set and not empty.
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the folders with Windlass's files.
pub fn folders() -> Result<Folders, Problem> {
    Folders::resolve(&var).map_err(|error| Problem::new(ProblemKind::Config, error.to_string()))
}

/// Loads the settings in effect in a folder.
///
/// # Errors
/// If a `-c` flag is malformed, or a settings file or variable is invalid.
pub fn settings(given: &Given, cwd: &Path) -> Result<Settings, Problem> {
    let folders = folders()?;
    // The shortest way to a log file. Flags take precedence.
    let log = var("WINDLASS_LOG").map(|value| Override {
        key: "log.level".to_owned(),
        value,
        flag: "WINDLASS_LOG".to_owned(),
    });
    let mut overrides: Vec<Override> = log.into_iter().collect();
    for pair in &given.set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Problem::usage(format!(
                "-c {pair}: write it as -c key=value, as in `-c agent.max_iterations=50`"
            )));
        };
        overrides.push(Override {
            key: key.trim().to_owned(),
            value: value.to_owned(),
            flag: "-c".to_owned(),
        });
    }
    let named = [
        ("provider", "--provider", given.provider.clone()),
        ("model", "--model", given.model.clone()),
    ];
    let named = named
        .into_iter()
        .filter_map(|(key, flag, value)| value.map(|value| (key, flag, value)));
    for (key, flag, value) in named.chain(given.flags.iter().cloned()) {
        overrides.push(Override {
            key: key.to_owned(),
            value,
            flag: flag.to_owned(),
        });
    }
    let sources = Sources {
        folders: &folders,
        cwd,
        env: &var,
        env_names: std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .collect(),
        overrides,
        user_file: given.config.clone(),
        profile: profile(&folders, given.profile.as_deref())?,
    };
    load(&sources).map_err(|error| {
        let kind = match error.is_usage() {
            true => ProblemKind::Usage,
            false => ProblemKind::Config,
        };
        Problem::new(kind, error.to_string())
    })
}

/// Returns the file of a profile.
fn profile(folders: &Folders, name: Option<&str>) -> Result<Option<PathBuf>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
        return Err(Problem::usage(format!(
            "--profile {name}: a profile's name consists of letters, digits, `_`, `-` and `.`"
        )));
    }
    let file = folders.profile_file(name);
    if file.is_file() {
        return Ok(Some(file));
    }
    Err(Problem::usage(format!(
        "--profile {name}: there is no {}; it has the same keys as your settings file",
        file.display()
    )))
}

/// Returns all environment variables that are text.
pub fn vars() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Returns the folder that the process was started in.
///
/// # Errors
/// When it no longer exists or cannot be read.
pub fn current_dir() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// Returns the path of this program.
///
/// # Errors
/// When the system does not know it.
pub fn current_exe() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// Returns the machine's clock.
pub fn clock() -> Arc<dyn Clock> {
    windlass_core::clock::system()
}
