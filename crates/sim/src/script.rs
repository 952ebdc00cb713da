//! Scripts: a list of replies with conditions on the request.

mod parse;
mod reader;
mod reply;
mod template;
mod when;

use std::path::{Path, PathBuf};

pub use self::reply::Reply;
pub(crate) use self::reply::Times;
pub use self::when::When;

/// A list of replies. A request is answered by the first reply that is not used up and whose condition fits.
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

/// Behavior when no reply is left.
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
    /// Creates an empty script.
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

    /// Reports this model name instead of the requested one.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Sets the behavior when no reply is left.
    #[must_use]
    pub const fn on_end(mut self, on_end: OnEnd) -> Self {
        self.on_end = on_end;
        self
    }

    /// Parses a script from YAML. Messages use `name` as the file name.
    ///
    /// # Errors
    ///
    /// When the text is not a valid script. The error names the line and what is expected there.
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

/// Error while reading a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The text is not YAML.
    #[error("{name}:{line}: not valid YAML: {message}")]
    Syntax {
        /// Name of the file.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// Message of the parser.
        message: String,
    },
    /// A key does not exist.
    #[error("{name}:{line}: unknown key `{key}` in {place}; {hint}")]
    UnknownKey {
        /// Name of the file.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// The unknown key.
        key: String,
        /// Table that contains the key.
        place: &'static str,
        /// Nearest valid key, or all of them.
        hint: String,
    },
    /// A value does not fit its key.
    #[error("{name}:{line}: `{key}` must be {expected}, not {found}")]
    BadValue {
        /// Name of the file.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// Key of the value.
        key: String,
        /// Description of a valid value.
        expected: String,
        /// Description of the value found.
        found: String,
    },
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
