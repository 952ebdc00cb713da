//! The result of a run.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Result of a run of the binary.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output, with invalid bytes replaced.
    pub stdout: String,
    /// Standard error, with invalid bytes replaced.
    pub stderr: String,
    /// Duration of the run.
    pub elapsed: Duration,
}

impl Output {
    /// Returns the lines of `--output-format stream-json`.
    pub fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            super::must(
                serde_json::from_str(line),
                &format!("not an event: {line}\n{self}"),
            )
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Returns the events of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["type"] == kind);
        events
    }

    /// Returns the types of all events except live ones, in order.
    pub fn story(&self) -> Vec<String> {
        let events = self.events().into_iter();
        let kinds = events.map(|event| event["type"].as_str().unwrap_or("?").to_owned());
        kinds
            .filter(|kind| !["delta", "tool_output", "status"].contains(&kind.as_str()))
            .collect()
    }

    /// Returns the object of `--output-format json`.
    pub fn json(&self) -> Value {
        super::must(
            serde_json::from_str(&self.stdout),
            &format!("not one JSON object\n{self}"),
        )
    }

    /// Checks the exit code, and that nothing panicked.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert!(!self.stderr.contains("panicked"), "it panicked\n{self}");
        assert_eq!(self.code, Some(code), "unexpected exit code\n{self}");
        self
    }

    /// Checks that standard error contains `text`.
    #[track_caller]
    pub fn assert_says(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "standard error does not contain `{text}`\n{self}"
        );
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            stdout,
            stderr,
            elapsed,
        } = self;
        write!(
            f,
            "exit code {code:?} after {elapsed:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        )
    }
}
