//! The log file: the program's `tracing` events as text or JSON lines, without keys.
//!
//! Nothing is installed while logging is off, and a disabled event then costs one comparison.

mod rotate;

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use windlass_core::clock::{Clock, Timestamp};

pub use self::rotate::RotatingFile;

/// Start of the names of our own modules.
const OWN: &str = "windlass";

/// Masks keys in a line.
pub type RedactLine = Box<dyn Fn(&str) -> String + Send + Sync>;

/// Format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Writes events to a file.
pub struct LogWriter {
    level: LevelFilter,
    format: LogFormat,
    file: Mutex<RotatingFile>,
    redact: RedactLine,
    clock: Arc<dyn Clock>,
}

impl LogWriter {
    /// Creates a writer for events of this level (`error`, `warn`, `info`, `debug`, `trace`) and above. Returns
    /// `None` for any other word.
    pub fn new(
        level: &str,
        format: LogFormat,
        file: RotatingFile,
        redact: RedactLine,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let level = match level {
            "error" => LevelFilter::ERROR,
            "warn" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => return None,
        };
        Some(Self {
            level,
            format,
            file: Mutex::new(file),
            redact,
            clock,
        })
    }

    /// Receives all events of the process from now on. Returns false if another writer already does.
    pub fn install(self) -> bool {
        tracing::subscriber::set_global_default(self).is_ok()
    }

    fn line(&self, event: &Event<'_>) -> String {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let time = time(self.clock.now());
        match self.format {
            LogFormat::Json => {
                let mut line = json!({
                    "time": time,
                    "level": level.as_str().to_ascii_lowercase(),
                    "target": target,
                    "message": fields.message,
                });
                if let Some(object) = line.as_object_mut() {
                    object.extend(fields.values);
                }
                line.to_string()
            }
            LogFormat::Text => {
                let mut line = format!("{time} {level:>5} {target}: {}", fields.message);
                for (name, value) in &fields.values {
                    let text = match value {
                        Value::String(text) if !text.contains([' ', '"', '=']) && !text.is_empty() => {
                            text.clone()
                        }
                        other => other.to_string(),
                    };
                    // Writing to a string cannot fail.
                    let _ = write!(line, " {name}={text}");
                }
                one_line(&line)
            }
        }
    }
}

impl Subscriber for LogWriter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_own = metadata.target().starts_with(OWN);
        // Libraries report every frame; their warnings are enough unless everything is asked for.
        let most = if is_own || self.level == LevelFilter::TRACE {
            self.level
        } else {
            self.level.min(LevelFilter::from_level(Level::WARN))
        };
        *metadata.level() <= most
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let line = (self.redact)(&self.line(event));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not stop the program.
        let _ = file.write_line(&line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    values: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.values.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.put(field, text.into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.put(field, value.into()),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

/// Escapes control characters, so that a text cannot look like a line of its own.
fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign.is_control() {
            true => line.extend(sign.escape_default()),
            false => line.push(sign),
        }
    }
    line
}

fn time(now: Timestamp) -> String {
    let now = i64::try_from(now.0).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(now) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => now.to_string(),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
