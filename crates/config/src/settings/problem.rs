//! Problems with the settings, described by location, cause and fix.

use std::fmt;

/// Maximum number of problems listed; the rest is counted.
const MAX_LISTED: usize = 20;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// `file:line:column`, `environment NAME` or `flag --name`.
    pub place: String,
    /// Dotted key; empty if the problem concerns the whole file.
    pub key: String,
    /// Description of the problem and the fix.
    pub message: String,
}

/// All problems, in the order of the layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsError {
    /// The first problems.
    pub problems: Vec<SettingsProblem>,
    /// Number of further problems.
    pub unlisted: usize,
}

impl SettingsError {
    /// Adds a problem. Its text is built only if it will be listed: a broken file can contain thousands.
    pub fn add(&mut self, problem: impl FnOnce() -> SettingsProblem) {
        if self.problems.len() < MAX_LISTED {
            self.problems.push(problem());
        } else {
            self.unlisted += 1;
        }
    }

    /// Returns true if only options of the command line are wrong. `-c` overrides the settings files and counts as
    /// one of them.
    pub fn is_usage(&self) -> bool {
        let is_option = |problem: &SettingsProblem| problem.place.starts_with("flag --");
        self.unlisted == 0 && self.problems.iter().all(is_option)
    }

    /// Returns true if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.place, self.message);
        }
        write!(f, "{}: {}: {}", self.place, self.key, self.message)
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        if self.unlisted > 0 {
            write!(f, "\n… and {} more", self.unlisted)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsError {}
