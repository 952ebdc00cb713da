//! Flags under the names that scripts for other agents use. `docs/coming-from.md` has them side by side.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// UI-7: what the model gets and may do in this run.
#[derive(Debug, Clone, Args, Default)]
pub struct GuideOptions {
    /// Replace the built-in system prompt
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,

    /// Add this text to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,

    /// Calls that run without asking, as in `bash(git *)`; the tool names of Claude Code work
    #[arg(long, alias = "allowedTools", value_name = "RULE", num_args = 1..)]
    pub allowed_tools: Vec<String>,

    /// Calls that never run
    #[arg(long, alias = "disallowedTools", value_name = "RULE", num_args = 1..)]
    pub disallowed_tools: Vec<String>,

    /// Another folder that the agent may use; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub add_dir: Vec<PathBuf>,

    /// Send an image with the prompt; may be repeated
    #[arg(short = 'i', long, value_name = "FILE", value_delimiter = ',')]
    pub image: Vec<PathBuf>,

    /// Give commands and `fetch` access to the network
    #[arg(long)]
    pub network: bool,

    /// Reasoning effort: off, low, medium or high
    #[arg(long, value_name = "LEVEL", value_parser = effort)]
    pub effort: Option<&'static str>,
}

/// UI-3: formats and places of input and output.
#[derive(Debug, Clone, Args, Default)]
pub struct OutputOptions {
    /// Format of standard output: the answer, one JSON object, or one JSON event per line
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value_t)]
    output_format: OutputFormat,

    /// One JSON event per line, as `--output-format stream-json`
    #[arg(long, conflicts_with = "output_format")]
    json: bool,

    /// JSON Schema that the answer must match, as a file or as JSON; the answer is then JSON
    #[arg(long, visible_alias = "json-schema", value_name = "FILE|JSON")]
    pub output_schema: Option<String>,

    /// Also write the answer to this file
    #[arg(long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,

    /// Format of standard input: text, or one JSON message per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub input_format: InputFormat,

    /// Show what tools return; `stream-json` ends with a result line
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Colors on standard error: auto, always or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColorChoice,

    /// Stop after this time: seconds, or a number with s, m or h
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Duration>,

    /// Print only errors on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

impl OutputOptions {
    /// Returns the format of standard output.
    pub fn format(&self) -> OutputFormat {
        if self.json {
            OutputFormat::StreamJson
        } else {
            self.output_format
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// One object at the end: answer, usage, cost
    Json,
    /// One event per line, as it happens
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum InputFormat {
    /// The prompt, or context for it
    #[default]
    Text,
    /// One message per line, as Claude Code reads them
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// In a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Parses a reasoning effort by its name here or in another agent.
fn effort(name: &str) -> Result<&'static str, String> {
    windlass_host::compat::effort(name).ok_or_else(|| "expected off, low, medium or high".to_owned())
}

/// Parses a length of time.
fn span(text: &str) -> Result<Duration, String> {
    let wrong = || "expected seconds, or a number with s, m or h, as in `90` or `15m`".to_owned();
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let named = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = named.unwrap_or((text, 1));
    let seconds: u64 = number.parse().map_err(|_| wrong())?;
    match seconds.checked_mul(unit) {
        Some(seconds @ 1..=31_536_000) => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}
