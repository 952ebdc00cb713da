//! Encodes answers for a wire, as one document or as a stream of frames.

mod anthropic;
mod chat;
mod responses;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::usage::Usage;
use crate::wire::Wire;

/// Creation time of all answers. It is fixed so that recordings are equal from run to run.
const CREATED: u64 = 1_750_000_000;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) event: Option<&'static str>,
    pub(crate) data: String,
    pub(crate) part: Part,
}

/// Role of a frame, for the faults that remove or replace frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Opens or closes a part of the answer.
    Frame,
    /// Carries a piece of the answer.
    Delta,
    /// Marks the answer as complete.
    Terminal,
}

/// Everything an encoder needs besides the answer.
#[derive(Debug)]
pub(crate) struct Context<'request> {
    pub(crate) wire: Wire,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) body: &'request Value,
}

impl Context<'_> {
    /// Encodes the answer as one JSON document.
    pub(crate) fn whole(&self, answer: &Answer) -> Value {
        match self.wire {
            Wire::Anthropic => anthropic::whole(self, answer),
            Wire::Chat => chat::whole(self, answer),
            Wire::Responses => responses::whole(self, answer),
        }
    }

    /// Encodes the answer as a stream.
    pub(crate) fn frames(&self, answer: &Answer) -> Vec<Frame> {
        match self.wire {
            Wire::Anthropic => anthropic::frames(self, answer),
            Wire::Chat => chat::frames(self, answer),
            Wire::Responses => responses::frames(self, answer),
        }
    }

    /// Encodes an error in the middle of a stream, as frame number `sequence`.
    pub(crate) fn error_frame(&self, kind: &str, sequence: usize) -> Frame {
        let message = "the simulated model failed in the middle of the stream";
        let (event, data) = match self.wire {
            Wire::Anthropic => {
                let error_type = match kind {
                    "overloaded" => "overloaded_error",
                    "failed" => "api_error",
                    other => other,
                };
                let error = json!({"type": error_type, "message": message});
                (Some("error"), json!({"type": "error", "error": error}))
            }
            Wire::Chat => {
                let error = json!({"message": message, "type": kind, "param": null, "code": kind});
                (None, json!({"error": error}))
            }
            Wire::Responses if kind == "failed" => (
                Some("response.failed"),
                responses::failed(self, message, sequence),
            ),
            Wire::Responses => (
                Some("error"),
                json!({
                    "type": "error",
                    "code": kind,
                    "message": message,
                    "param": null,
                    "sequence_number": sequence,
                }),
            ),
        };
        Frame {
            event,
            data: data.to_string(),
            part: Part::Frame,
        }
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
