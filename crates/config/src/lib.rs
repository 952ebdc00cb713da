//! Configuration: settings, folders, private files, and trust in a project's own files.
//!
//! - [`settings`] defines every key once and derives parsing, errors, the reference and the schema from
//!   that table.
//! - [`folders`] locates the user's and the project's files; [`private_file`] reads and writes files that
//!   only the user can access.
//! - [`trust`] decides whether a project's own files take effect.
//! - [`environment`] is the only module of the product that reads environment variables for settings.
//!
//! API keys are deliberately absent: a provider entry names a variable or a command, and stored keys have a
//! separate file.

pub mod environment;
pub mod folders;
pub mod private_file;
mod problem;
pub mod settings;
pub mod trust;

pub use self::problem::{Problem, ProblemKind};

/// Reads a TOML text as a JSON value, for files of other programs.
///
/// # Errors
/// If it is not valid TOML, with the place and the reason.
pub fn toml_value(text: &str) -> Result<serde_json::Value, String> {
    toml_edit::de::from_str(text).map_err(|error: toml_edit::de::Error| error.to_string())
}
