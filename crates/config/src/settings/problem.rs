//! What is wrong with the settings, in words that say where and what would be right.

use std::fmt;

/// Problems listed in full; the rest is counted.
const MAX_LISTED: usize = 20;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// `file:line:column`, `environment NAME` or `flag --name`.
    pub place: String,
    /// The dotted key; empty when the file as a whole is meant.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Everything that is wrong, in the order of the layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsError {
    /// The first problems.
    pub problems: Vec<SettingsProblem>,
    /// How many more there are.
    pub unlisted: usize,
}

impl SettingsError {
    /// Adds a problem. Its text is made only when it will be listed: a broken file can hold thousands.
    pub fn add(&mut self, problem: impl FnOnce() -> SettingsProblem) {
        if self.problems.len() < MAX_LISTED {
            self.problems.push(problem());
        } else {
            self.unlisted += 1;
        }
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
