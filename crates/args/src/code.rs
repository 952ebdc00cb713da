//! Command-line arguments of `windlass code`.

use clap::{Args, Subcommand};

use super::SettingsOptions;

/// Text at the end of `windlass code --help`.
pub const CODE_HELP: &str = "\
The index has every file of the folder that is neither ignored nor denied, its definitions, and
its words with identifiers split. It is stored in the state folder and updated with what has
changed since.

Examples:
  windlass code search where are retries delayed
  windlass code search --path src --lines 20 RetryPolicy
  windlass code map \"the login fails after a redirect\"
  windlass code index --rebuild

Exit codes:
  0    success
  1    nothing fits
  2    wrong usage
  3    a mistake in the settings";

#[derive(Debug, Subcommand)]
pub enum CodeCommand {
    /// Bring the index of this folder up to date, and print its size
    Index {
        /// Read every file again
        #[arg(long)]
        rebuild: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Rank the files that fit a question, an error message or names, and print their best lines
    Search(CodeSearchOptions),
    /// Print the map of files and definitions that a turn with this prompt would get
    Map {
        /// The prompt
        #[arg(required = true)]
        prompt: Vec<String>,
        /// Maximum size in tokens [default: code.map_tokens]
        #[arg(long, value_name = "N")]
        tokens: Option<usize>,
        #[command(flatten)]
        settings: SettingsOptions,
    },
}

#[derive(Debug, Args)]
pub struct CodeSearchOptions {
    /// The question, error message or names
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Only this folder or file
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Only source code: no tests, documents and data
    #[arg(long)]
    pub code: bool,
    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub files: usize,
    /// Number of lines in all
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub lines: usize,
    /// Print a JSON array of files, each with path, score and lines
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub settings: SettingsOptions,
}
