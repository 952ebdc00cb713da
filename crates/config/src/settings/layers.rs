//! The stacked layers: the last one to set a key wins, and the origin of each value is recorded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::keys::{self, Key, render};
use super::problem::{SettingsError, SettingsProblem};
use super::show::assignment;
use super::value::Value;
use super::{Origins, Settings};

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
    pub key: Cow<'static, str>,
    /// The value; `None` if unset.
    pub value: Option<Value>,
    /// Origin of the value.
    pub origin: SettingOrigin,
}

/// Accumulated result of the layers read so far. Defaults are added at the end, so that a key that nobody sets costs
/// nothing until then.
#[derive(Default)]
pub(super) struct Layers {
    /// Keys without a pattern, by name.
    named: BTreeMap<&'static str, Setting>,
    /// Keys of providers, models and servers, by path.
    patterns: BTreeMap<Vec<String>, Setting>,
    /// Entries that a project adds to a list, by key, whatever the other layers set.
    added: BTreeMap<&'static str, Added>,
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
    /// Sets a key, overriding lower layers.
    pub(super) fn set(&mut self, key: &'static Key, path: &[String], value: Value, origin: SettingOrigin) {
        let setting = Setting {
            key,
            value: Some(value),
            origin,
        };
        if key.is_pattern() {
            self.patterns.insert(path.to_vec(), setting);
        } else {
            self.named.insert(key.name, setting);
        }
    }

    /// SAFE-6: adds entries of a project's file to a list. No other layer can remove them.
    pub(super) fn add(&mut self, key: &'static Key, entries: Vec<String>, path: Arc<PathBuf>, line: usize) {
        self.added.insert(key.name, Added { entries, path, line });
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
        let mut settings = Settings {
            warnings: std::mem::take(&mut self.warnings),
            ..Settings::default()
        };
        let mut patterns: Vec<(Vec<String>, Setting)> =
            std::mem::take(&mut self.patterns).into_iter().collect();
        // Sorted by path already, and the sort is stable: the keys of one provider or model stay together.
        patterns.sort_by_cached_key(|(path, setting)| order(setting.key, path));
        let mut patterns = patterns.into_iter().peekable();
        let mut list = Vec::with_capacity(keys::all().count());
        for (index, section) in keys::SECTIONS.iter().enumerate() {
            for key in section.keys.iter().filter(|key| !key.is_pattern()) {
                let setting = self.setting(key);
                list.push(setting.applied(&mut settings, &[], Cow::Borrowed(key.name)));
            }
            while let Some((path, setting)) =
                patterns.next_if(|(_, setting)| section_of(setting.key) == index)
            {
                list.push(setting.applied(&mut settings, &path, Cow::Owned(render(&path))));
            }
        }
        settings.origins = Origins::new(list);
        Ok(settings)
    }

    /// Returns a key without a pattern as the layers set it.
    fn setting(&mut self, key: &'static Key) -> Setting {
        let default = || Setting {
            key,
            value: key.kind.default(),
            origin: SettingOrigin::Default,
        };
        let mut setting = self.named.remove(key.name).unwrap_or_else(default);
        if let Some(added) = self.added.remove(key.name) {
            setting.extend(added);
        }
        setting
    }
}

impl Setting {
    /// Stores the value in the settings.
    fn applied(self, settings: &mut Settings, path: &[String], key: Cow<'static, str>) -> Effective {
        if let Some(value) = &self.value {
            self.key.kind.apply(settings, path, value);
        }
        Effective {
            key,
            value: self.value,
            origin: self.origin,
        }
    }

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

/// Index of the section of a key.
fn section_of(key: &'static Key) -> usize {
    let is_in = |section: &&keys::Section| section.keys.iter().any(|other| other.name == key.name);
    let found = keys::SECTIONS.iter().position(is_in);
    found.unwrap_or_default()
}

/// Sort key of keys with a pattern, for the order of the reference.
fn order(key: &'static Key, path: &[String]) -> (usize, String, usize) {
    let name = path.get(1).cloned().unwrap_or_default();
    let index = keys::all().position(|other| other.name == key.name);
    (section_of(key), name, index.unwrap_or_default())
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
