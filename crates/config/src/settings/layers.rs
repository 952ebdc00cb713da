//! The stacked layers: the last one to set a key wins, and the origin of each value is recorded.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::Settings;
use super::keys::{self, Key, render};
use super::problem::{SettingsError, SettingsProblem};
use super::show::assignment;
use super::value::Value;

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The built-in default.
    Default,
    /// A line of a file.
    File {
        /// Path of the file.
        path: Arc<PathBuf>,
        /// Line number, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
    /// A list to which a project's file adds entries.
    Added {
        /// Origin of the other entries.
        to: Box<SettingOrigin>,
        /// Path of the project's file.
        path: Arc<PathBuf>,
        /// Line number, from 1.
        line: usize,
    },
}

impl SettingOrigin {
    /// Returns true if a flag or an environment variable set the value.
    pub(super) fn is_of_this_run(&self) -> bool {
        match self {
            Self::Environment(_) | Self::Flag(_) => true,
            Self::Added { to, .. } => to.is_of_this_run(),
            Self::Default | Self::File { .. } => false,
        }
    }
}

/// CFG-1: a key with the value in effect.
///
/// `Debug` hides the values that [`show`](super::show()) hides.
#[derive(Clone, PartialEq)]
pub struct Effective {
    /// Dotted key; names with unusual characters are quoted.
    pub key: String,
    /// The value; `None` if unset.
    pub value: Option<Value>,
    /// Origin of the value.
    pub origin: SettingOrigin,
}

/// Accumulated result of the layers read so far.
pub(super) struct Layers {
    set: BTreeMap<Vec<String>, Setting>,
    /// Entries that a project adds to a list, whatever the other layers set.
    added: BTreeMap<Vec<String>, Added>,
    problems: SettingsError,
    warnings: Vec<String>,
}

struct Setting {
    key: &'static Key,
    value: Option<Value>,
    origin: SettingOrigin,
}

struct Added {
    entries: Vec<String>,
    path: Arc<PathBuf>,
    line: usize,
}

impl Layers {
    /// Starts with the lowest layer, the defaults.
    pub(super) fn with_defaults() -> Self {
        let named = keys::all().filter(|key| !key.is_pattern());
        let set = named.map(|key| {
            let path = key.name.split('.').map(str::to_owned).collect();
            (
                path,
                Setting {
                    key,
                    value: key.kind.default(),
                    origin: SettingOrigin::Default,
                },
            )
        });
        Self {
            set: set.collect(),
            added: BTreeMap::new(),
            problems: SettingsError::default(),
            warnings: Vec::new(),
        }
    }

    /// Sets a key, overriding lower layers.
    pub(super) fn set(&mut self, key: &'static Key, path: &[String], value: Value, origin: SettingOrigin) {
        self.set.insert(
            path.to_vec(),
            Setting {
                key,
                value: Some(value),
                origin,
            },
        );
    }

    /// SAFE-6: adds entries of a project's file to a list. No other layer can remove them.
    pub(super) fn add(&mut self, at: &[String], entries: Vec<String>, path: Arc<PathBuf>, line: usize) {
        self.added.insert(at.to_vec(), Added { entries, path, line });
    }

    /// Records a problem.
    pub(super) fn problem(&mut self, problem: impl FnOnce() -> SettingsProblem) {
        self.problems.add(problem);
    }

    /// Records a warning about an ignored setting.
    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the settings, or all problems.
    pub(super) fn into_settings(mut self) -> Result<Settings, SettingsError> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        for (at, added) in std::mem::take(&mut self.added) {
            if let Some(setting) = self.set.get_mut(&at) {
                setting.extend(added);
            }
        }
        let places = places();
        // The entries are already sorted by path, and the sort is stable.
        let mut ordered: Vec<(Vec<String>, Setting)> = self.set.into_iter().collect();
        ordered.sort_by_cached_key(|(path, setting)| order(&places, setting.key, path));
        let mut settings = Settings {
            warnings: self.warnings,
            ..Settings::default()
        };
        for (path, setting) in ordered {
            if let Some(value) = &setting.value {
                setting.key.kind.apply(&mut settings, &path, value);
            }
            let Setting { value, origin, .. } = setting;
            settings.origins.push(Effective {
                key: render(&path),
                value,
                origin,
            });
        }
        Ok(settings)
    }
}

impl Setting {
    fn extend(&mut self, added: Added) {
        let mut list = match self.value.take() {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        };
        for entry in added.entries {
            if !list.contains(&entry) {
                list.push(entry);
            }
        }
        self.value = Some(Value::List(list));
        let to = std::mem::replace(&mut self.origin, SettingOrigin::Default);
        self.origin = SettingOrigin::Added {
            to: Box::new(to),
            path: added.path,
            line: added.line,
        };
    }
}

/// Position of each key in the reference: its section, and its index among all keys.
fn places() -> HashMap<&'static str, (usize, usize)> {
    let sections = keys::SECTIONS.iter().enumerate();
    let keys = sections.flat_map(|(section, of)| of.keys.iter().map(move |key| (key.name, section)));
    keys.enumerate()
        .map(|(index, (name, section))| (name, (section, index)))
        .collect()
}

/// Sort key for the order of the reference, with the keys of one provider or model together.
fn order(
    places: &HashMap<&'static str, (usize, usize)>,
    key: &'static Key,
    path: &[String],
) -> (usize, String, usize) {
    let (section, index) = places.get(key.name).copied().unwrap_or_default();
    let name = path.get(1).filter(|_| key.is_pattern());
    (section, name.cloned().unwrap_or_default(), index)
}

impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  # {}", assignment(self), self.origin)
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Added { to, path, line } => match **to {
                Self::Default => write!(f, "{}:{line}", path.display()),
                _ => write!(f, "{to}, and {}:{line}", path.display()),
            },
        }
    }
}
