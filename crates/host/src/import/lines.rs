//! A file with a JSON value on each line.

use serde_json::Value;
use windlass_core::json::repaired;
use windlass_core::text::json_problem;

/// Parsed values, with line numbers from 1.
pub(super) struct Lines {
    pub(super) values: Vec<(usize, Value)>,
    /// Unreadable lines: location and reason.
    pub(super) damaged: Vec<String>,
}

impl Lines {
    pub(super) fn read(bytes: &[u8], name: &str) -> Self {
        let mut lines = Self {
            values: Vec::new(),
            damaged: Vec::new(),
        };
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse(line) {
                Ok(value) if value.is_object() => lines.values.push((number, value)),
                Ok(_) => lines.damaged.push(format!("{name}:{number}: not a JSON object")),
                Err(error) => lines
                    .damaged
                    .push(format!("{name}:{number}: {}", json_problem(&error))),
            }
        }
        lines
    }
}

/// Parses a line. Half of a surrogate pair in a text is no reason to lose it: other agents write those.
fn parse(line: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(line).or_else(|error| match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(&repaired(text)),
        Err(_) => Err(error),
    })
}
