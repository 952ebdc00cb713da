//! OBS-1: traces, metrics, logs and dumps.
//!
//! Spans are not recorded while a turn runs: [`turns`] derives them from the record of its session, with ids
//! that follow from the ids in the record. So the trace that is exported live and the one that `windlass
//! export otel` writes a month later are the same. [`Collector`] reads them from a store and finds the span
//! above each turn, [`Encoding`] writes them as OTLP, [`Telemetry`] exports them in the background, and
//! [`Metrics`] counts them.
//!
//! [`Probe`] is the hook that notices the ends of turns. [`LogWriter`] writes the log file, and [`DebugDump`]
//! the model's requests and replies.
//!
//! Deliberately absent: OpenTelemetry's SDK, which records spans as they happen, and any reading of variables
//! or settings: both are passed in.

mod collect;
mod config;
mod derive;
mod dump;
mod exporter;
mod log;
mod metrics;
pub mod names;
mod otlp;
mod probe;
mod sender;
mod span;

pub use self::collect::{Collected, Collector};
pub use self::config::{ExportConfig, ExportConfigError, checked};
pub use self::derive::{Redact, TraceSubject, TurnTrace, caller, turn_context, turns};
pub use self::dump::{DebugDump, RegistrySource};
pub use self::exporter::{LAST_EXPORT, Telemetry, TelemetryParts};
pub use self::log::{LogFormat, LogWriter, RedactLine, RotatingFile};
pub use self::metrics::{Histogram, Metrics, MetricsSnapshot, PROMETHEUS_TYPE, Point, prometheus};
pub use self::otlp::{Encoding, Resource};
pub use self::probe::Probe;
pub use self::sender::{SendError, Sender};
pub use self::span::{AttributeValue, Kind, SpanContext, SpanEvent, TraceSpan};
