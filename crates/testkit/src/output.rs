//! What a run came to.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// What a run of the binary came to.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code; `None` when a signal ended the process.
    pub code: Option<i32>,
    /// Standard output, bad bytes replaced.
    pub stdout: String,
    /// Standard error, bad bytes replaced.
    pub stderr: String,
    /// How long it took.
    pub elapsed: Duration,
}

impl Output {
    /// The lines of `--output-format stream-json`.
    pub fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            super::must(
                serde_json::from_str(line),
                &format!("not an event: {line}\n{self}"),
            )
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The events of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["type"] == kind);
        events
    }

    /// The types of all events but live ones, in order.
    pub fn story(&self) -> Vec<String> {
        let events = self.events().into_iter();
        let kinds = events.map(|event| event["type"].as_str().unwrap_or("?").to_owned());
        kinds
            .filter(|kind| !["delta", "tool_output", "status"].contains(&kind.as_str()))
            .collect()
    }

    /// The object of `--output-format json`.
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
        assert_eq!(self.code, Some(code), "the exit code is another\n{self}");
        self
    }

    /// Checks that standard error says `text`.
    #[track_caller]
    pub fn assert_says(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "standard error does not say `{text}`\n{self}"
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
