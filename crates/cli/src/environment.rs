//! The only place that reads our environment, and from it the settings.

use std::path::Path;

use crate::args::SettingsOptions;
use crate::connect::{Keys, KeysFile, Surroundings};
use crate::exit::{Exit, Problem};
use crate::folders::Folders;
use crate::settings::{Override, Settings, Sources, load};

/// A variable that is set and not empty.
pub(crate) fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What surrounds this process: its variables, and the user's keys.
pub(crate) struct Process;

impl Surroundings for Process {
    fn var(&self, name: &str) -> Option<String> {
        var(name)
    }

    fn keys(&self) -> Result<Keys, Problem> {
        KeysFile::new(&folders()?).read()
    }
}

/// Where our files are.
pub(crate) fn folders() -> Result<Folders, Problem> {
    Folders::resolve(&var).map_err(|error| Problem::new(Exit::Config, error.to_string()))
}

/// The settings in effect; `flags` are (key, flag, value).
pub(crate) fn settings(
    options: &SettingsOptions,
    cwd: &Path,
    flags: Vec<(&'static str, &'static str, String)>,
) -> Result<Settings, Problem> {
    let folders = folders()?;
    let mut overrides = Vec::new();
    for pair in &options.set {
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
        ("provider", "--provider", options.provider.clone()),
        ("model", "--model", options.model.clone()),
    ];
    let named = named
        .into_iter()
        .filter_map(|(key, flag, value)| value.map(|value| (key, flag, value)));
    for (key, flag, value) in named.chain(flags) {
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
        user_file: options.config.clone(),
    };
    load(&sources).map_err(|error| Problem::new(Exit::Config, error.to_string()))
}
