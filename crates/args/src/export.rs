//! Arguments of `windlass export`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::SettingsOptions;

/// Text at the end of `windlass export otel --help`.
const OTEL_HELP: &str = "\
Spans are derived from the session's log, so the trace is the same as the one that was sent live,
if one was:
  windlass export otel 0198c1 --endpoint http://localhost:4318
  windlass export otel 0198c1 --out trace.json

To send the spans of every turn, set OTEL_EXPORTER_OTLP_ENDPOINT, or telemetry.endpoint in your
settings.";

#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Export the trace of a session and its agents for OpenTelemetry
    #[command(after_help = OTEL_HELP)]
    Otel(ExportOtelOptions),
}

#[derive(Debug, Args)]
pub struct ExportOtelOptions {
    /// The session: its name, or the start of its id
    pub session: String,
    /// Write to this file: JSON if its name ends in `.json`, otherwise protobuf [default: JSON to standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Send to this collector, such as http://localhost:4318
    #[arg(long, value_name = "URL", conflicts_with_all = ["out", "format"])]
    pub endpoint: Option<String>,
    /// Encoding of the output
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<OtelFormat>,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OtelFormat {
    /// OTLP as JSON
    Json,
    /// OTLP as protobuf
    Protobuf,
}
