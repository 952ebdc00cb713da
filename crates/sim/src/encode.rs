//! Encodes answers for a wire, as one document or as a stream of frames.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value, json};

pub(crate) use self::gemini::is_signed as is_gemini_signature;

use crate::answer::Answer;
use crate::usage::Usage;
use crate::wire::Protocol;

/// Creation time of all answers. It is fixed so that recordings are equal from run to run.
const CREATED: u64 = 1_750_000_000;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) event: Option<&'static str>,
    pub(crate) data: String,
    pub(crate) part: Part,
}

/// SeenRole of a frame, for the faults that remove or replace frames.
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
    pub(crate) wire: Protocol,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) body: &'request Value,
}

impl Context<'_> {
    /// Encodes the answer as one JSON document.
    pub(crate) fn whole(&self, answer: &Answer) -> Value {
        match self.wire {
            Protocol::Anthropic => anthropic::whole(self, answer),
            Protocol::Chat => chat::whole(self, answer),
            Protocol::Responses => responses::whole(self, answer),
            Protocol::Gemini => gemini::whole(self, answer),
        }
    }

    /// Encodes the answer as a stream.
    pub(crate) fn frames(&self, answer: &Answer) -> Vec<Frame> {
        match self.wire {
            Protocol::Anthropic => anthropic::frames(self, answer),
            Protocol::Chat => chat::frames(self, answer),
            Protocol::Responses => responses::frames(self, answer),
            Protocol::Gemini => gemini::frames(self, answer),
        }
    }

    /// Encodes an error in the middle of a stream, as frame number `sequence`.
    pub(crate) fn error_frame(&self, kind: &str, sequence: usize) -> Frame {
        let message = "the simulated model failed in the middle of the stream";
        let (event, data) = match self.wire {
            Protocol::Anthropic => {
                let error_type = match kind {
                    "overloaded" => "overloaded_error",
                    "failed" => "api_error",
                    other => other,
                };
                let error = json!({"type": error_type, "message": message});
                (Some("error"), json!({"type": "error", "error": error}))
            }
            Protocol::Chat => {
                let error = json!({"message": message, "type": kind, "param": null, "code": kind});
                (None, json!({"error": error}))
            }
            Protocol::Gemini => {
                let (code, status) = match kind {
                    "overloaded" => (503, "UNAVAILABLE"),
                    _ => (500, "INTERNAL"),
                };
                (
                    None,
                    json!({"error": {"code": code, "message": message, "status": status}}),
                )
            }
            Protocol::Responses if kind == "failed" => (
                Some("response.failed"),
                responses::failed(self, message, sequence),
            ),
            Protocol::Responses => (
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
