//! Result of a turn.

use windlass_api::{Event, FailureKind};

use super::Trouble;
use crate::exit::Exit;

/// Returns the name of a failure: for a provider, the name of its error, such as `network`.
fn kind(reason: FailureKind) -> String {
    let value = match reason {
        FailureKind::Provider(kind) => serde_json::to_value(kind),
        other => serde_json::to_value(other),
    };
    let name = value.ok().and_then(|value| value.as_str().map(str::to_owned));
    name.unwrap_or_else(|| "failed".to_owned())
}

/// Result of a turn, derived from its terminal event.
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    /// The answer, if there is one.
    pub(crate) answer: Option<String>,
    /// The answer as JSON, if it was checked against a schema.
    pub(crate) structured: Option<serde_json::Value>,
    /// The reason why there is no answer.
    pub(crate) problem: Option<Trouble>,
    /// True if the tool `done` ended the turn.
    pub(crate) done: bool,
}

impl Outcome {
    /// Derives the result from `event`. `canceled` is the exit code of a canceled turn.
    pub(crate) fn of(event: &Event, canceled: Exit) -> Self {
        match event {
            Event::Final { content, finish } => Self::answered(Exit::of_answer(*finish), content.clone()),
            Event::Failed {
                reason,
                message,
                hint,
                ..
            } => Self::failed(
                Exit::of_failure(*reason),
                &kind(*reason),
                message.clone(),
                hint.clone(),
            ),
            _ => Self::failed(canceled, "canceled", "interrupted".to_owned(), None),
        }
    }

    /// The same result of a run that took too long.
    pub(crate) fn late(self) -> Self {
        Self::failed(Exit::Failed, "timeout", "timed out (--timeout)".to_owned(), None)
    }

    /// A result with an answer.
    pub(crate) fn answered(exit: Exit, answer: String) -> Self {
        Self {
            exit,
            answer: Some(answer),
            structured: None,
            problem: None,
            done: false,
        }
    }

    /// The same result with the value that the schema accepted.
    pub(crate) fn conforming(self, value: serde_json::Value) -> Self {
        Self {
            answer: Some(value.to_string()),
            structured: Some(value),
            ..self
        }
    }

    /// A result without an answer.
    pub(crate) fn failed(exit: Exit, kind: &str, message: String, hint: Option<String>) -> Self {
        Self {
            exit,
            answer: None,
            structured: None,
            problem: Some(Trouble {
                kind: kind.to_owned(),
                message,
                hint,
            }),
            done: false,
        }
    }
}
