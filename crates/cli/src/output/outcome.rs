//! Result of a turn.

use windlass_api::Event;

use super::Trouble;
use crate::exit::Exit;

/// Result of a turn, derived from its terminal event.
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    /// The answer, if there is one.
    pub(crate) answer: Option<String>,
    /// The reason why there is no answer.
    pub(crate) problem: Option<Trouble>,
}

impl Outcome {
    /// Derives the result from `event`. `canceled` is the exit code of a canceled turn.
    pub(crate) fn of(event: &Event, canceled: Exit) -> Self {
        match event {
            Event::Final { content, finish } => Self {
                exit: Exit::of_answer(*finish),
                answer: Some(content.clone()),
                problem: None,
            },
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

    fn failed(exit: Exit, kind: &str, message: String, hint: Option<String>) -> Self {
        let problem = Some(Trouble {
            kind: kind.to_owned(),
            message,
            hint,
        });
        Self {
            exit,
            answer: None,
            problem,
        }
    }
}
