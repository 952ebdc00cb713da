//! Side requests to a model, and the view of a conversation they contain.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::compact::Job;
use crate::message::{FragmentSource, Message, Part, Role};
use crate::model::Usage;
use crate::provider::{Prefix, ProviderEvent, Request, ToolChoice};
use crate::text::{clip, readable};

/// One request without tools.
pub(in crate::compact) struct Question {
    /// System prompt.
    pub(in crate::compact) system: &'static str,
    /// Prompt.
    pub(in crate::compact) prompt: String,
    /// Maximum number of tokens of the answer.
    pub(in crate::compact) max_output: u64,
    /// Timeout.
    pub(in crate::compact) limit: Duration,
}

/// The answer of the model.
pub(in crate::compact) struct Answer {
    pub(in crate::compact) text: String,
    pub(in crate::compact) usage: Usage,
    /// True if the model called tools, although it has none.
    pub(in crate::compact) has_calls: bool,
}

/// Reason there is no answer, and the partial result.
pub(in crate::compact) struct NoAnswer {
    why: String,
    so_far: String,
}

impl NoAnswer {
    /// Returns the partial answer if it is usable on its own, and the reason it breaks off.
    pub(super) fn beginning(&self) -> Option<(String, &str)> {
        const SHORTEST: usize = 200;
        let text = readable(&self.so_far)
            .ok()
            .filter(|text| text.len() >= SHORTEST)?;
        Some((text, &self.why))
    }

    /// Returns the reason.
    pub(super) fn why(self) -> String {
        self.why
    }
}

impl Question {
    /// Sends the request and returns the answer, or the reason there is none.
    pub(in crate::compact) async fn ask(self, job: &Job<'_>) -> Result<Answer, NoAnswer> {
        let session = job
            .history
            .first()
            .map_or_else(|| "".into(), |message| message.session_id.clone());
        let cancel = job.cancel.child_token();
        let request = Request {
            prefix: Arc::new(Prefix {
                system: self.system.to_owned(),
                ..Prefix::default()
            }),
            messages: vec![Arc::new(Message::user(&session, self.prompt, job.now))],
            tool_choice: ToolChoice::None,
            max_output: Some(self.max_output),
            session: session.clone(),
            cancel: cancel.clone(),
        };
        let mut stream = job.provider.stream(request);
        let mut late = std::pin::pin!(job.clock.sleep(self.limit));
        let mut so_far = String::new();
        loop {
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                () = &mut late => {
                    cancel.cancel();
                    let why = format!("there was no answer within {} s", self.limit.as_secs());
                    return Err(NoAnswer { why, so_far });
                }
            };
            match event {
                Some(ProviderEvent::ContentDelta(text)) => so_far.push_str(&text),
                Some(ProviderEvent::Retry(notice)) if notice.discard => so_far.clear(),
                Some(ProviderEvent::Complete(completion)) => {
                    let reply = Message::new(&session, Role::Assistant, completion.parts, job.now);
                    return Ok(Answer {
                        text: reply.text(),
                        usage: completion.usage,
                        has_calls: reply.calls().next().is_some(),
                    });
                }
                Some(ProviderEvent::Error(error)) => {
                    return Err(NoAnswer {
                        why: error.message,
                        so_far,
                    });
                }
                Some(_) => {}
                None => {
                    let why = "the answer ended early".to_owned();
                    return Err(NoAnswer { why, so_far });
                }
            }
        }
    }
}

const LONGEST_PIECE: usize = 2_000;
/// Maximum number of characters of a summary made without a model.
const LONGEST_OUTLINE: usize = 6_000;

/// Outlines the messages in lines, for use if no model can summarize them. The user's messages are stored
/// beside it.
pub(super) fn outlined(middle: &[Arc<Message>]) -> String {
    let others = middle
        .iter()
        .filter(|message| message.role != Role::User || has_summary(message));
    let lines: Vec<String> = others
        .flat_map(|message| outline(message))
        .map(|line| match line.strip_prefix("[Earlier summary]: ") {
            Some(summary) => clip(summary, LONGEST_OUTLINE / 2),
            None => clip(line.lines().next().unwrap_or_default(), 200),
        })
        .collect();
    let text = clip(&lines.join("\n"), LONGEST_OUTLINE);
    if text.is_empty() {
        "(Nothing but what the user said.)".to_owned()
    } else {
        text
    }
}

pub(super) fn has_summary(message: &Message) -> bool {
    message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Compaction(_)))
}

/// Formats a message as flat lines for the summarizer. An earlier summary is included whole.
pub(in crate::compact) fn outline(message: &Message) -> Vec<String> {
    let role = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool result",
        Role::System => "System",
    };
    let lines = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(format!("[{role}]: {}", clip(&text.text, LONGEST_PIECE))),
        Part::Context(fragment) => match fragment.source {
            FragmentSource::Reference | FragmentSource::Fact => None,
            FragmentSource::Quote => Some(format!("[{role}]: {}", clip(&fragment.text, LONGEST_PIECE))),
            _ => Some(format!("[Context]: {}", clip(&fragment.text, LONGEST_PIECE))),
        },
        Part::ToolCall(call) => Some(format!("[Tool call]: {}({})", call.name, clip(&call.input, 400))),
        Part::ToolResult(result) => Some(format!("[{role}]: {}", clip(&result.content, 700))),
        Part::Compaction(compaction) => Some(format!("[Earlier summary]: {}", compaction.summary)),
        Part::Compressed(compressed) => Some(format!("[{role}]: {}", clip(&compressed.text, LONGEST_PIECE))),
        _ => None,
    });
    lines.collect()
}
