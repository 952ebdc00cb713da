//! Result of a turn.

use windlass_api::Event;

use super::Trouble;
use crate::exit::Exit;

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
            } => {
                let kind = serde_json::to_value(reason).ok();
                let kind = kind.map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
                Self::failed(
                    Exit::of_failure(*reason),
                    &kind.unwrap_or_default(),
                    message.clone(),
                    hint.clone(),
                )
            }
            _ => Self::failed(canceled, "canceled", "interrupted".to_owned(), None),
        }
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
