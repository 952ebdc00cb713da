//! Scripts: a list of replies with conditions on the request.

mod parse;
mod reader;
mod reply;
mod template;
mod tree;
mod when;

use std::path::{Path, PathBuf};

pub use self::reply::Reply;
pub(crate) use self::reply::Times;
pub use self::when::When;

/// A list of replies. The first reply that is not used up and whose condition fits answers a request.
///
/// ```
/// use serde_json::json;
/// use windlass_sim::{Reply, Script};
///
/// let script = Script::new()
///     .reply(Reply::call("bash", json!({"command": "ls"})))
///     .reply(Reply::text("I saw: {{last_result}}"));
/// # let _ = script;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub(crate) model: Option<String>,
    pub(crate) on_end: OnEnd,
    pub(crate) replies: Vec<Reply>,
}

/// What happens when no reply is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEnd {
    /// Status 500 with a clear message that must not be retried.
    #[default]
    Error,
    /// The list starts over.
    Repeat,
    /// The rules answer.
    Rules,
}

impl Script {
    /// An empty script.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reply.
    #[must_use]
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// Reports this model name instead of the one asked for.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Says what happens when no reply is left.
    #[must_use]
    pub const fn on_end(mut self, on_end: OnEnd) -> Self {
        self.on_end = on_end;
        self
    }

    /// Reads a script from YAML. `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// Names the line and what would be right there.
    pub fn from_yaml(text: &str, name: &str) -> Result<Self, ScriptError> {
        parse::script(text, name)
    }

    /// Reads a script from a YAML file.
    ///
    /// # Errors
    ///
    /// As [`Script::from_yaml`], and when the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::from_yaml(&text, &path.display().to_string())
    }
}

/// Why a script could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not YAML.
    #[error("{name}:{line}: not valid YAML: {message}")]
    Syntax {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What the parser says.
        message: String,
    },
    /// A key does not exist.
    #[error("{name}:{line}: unknown key `{key}` in {place}; {hint}")]
    UnknownKey {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The key.
        key: String,
        /// What the key was found in.
        place: &'static str,
        /// The nearest valid key, or all of them.
        hint: String,
    },
    /// A value does not fit its key.
    #[error("{name}:{line}: `{key}` must be {expected}, not {found}")]
    BadValue {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The key.
        key: String,
        /// What would be right.
        expected: String,
        /// What was found.
        found: String,
    },
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
