//! An answer: the decision of a brain, before it is encoded for a wire.

use uuid::Uuid;

use crate::fault::Fault;

/// Reason the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The answer is complete.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// The model declined to answer.
    Refusal,
    /// A stop sequence occurred (Anthropic; elsewhere sent as [`Stop::EndTurn`]).
    StopSequence,
    /// The model paused a long turn (Anthropic; elsewhere sent as [`Stop::EndTurn`]).
    PauseTurn,
    /// The context window is full (Anthropic; elsewhere sent as [`Stop::MaxTokens`]).
    ContextWindow,
}

impl Stop {
    pub(crate) const NAMES: [(&'static str, Self); 7] = [
        ("end_turn", Self::EndTurn),
        ("tool_use", Self::ToolUse),
        ("max_tokens", Self::MaxTokens),
        ("refusal", Self::Refusal),
        ("stop_sequence", Self::StopSequence),
        ("pause_turn", Self::PauseTurn),
        ("model_context_window_exceeded", Self::ContextWindow),
    ];
}

/// Thinking before the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thinking {
    pub(crate) text: String,
    pub(crate) redacted: bool,
}

/// Splits a part into deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    Characters(usize),
    Count(usize),
}

impl Default for Pieces {
    fn default() -> Self {
        Self::Characters(24)
    }
}

impl Pieces {
    /// Splits a text at character boundaries. An empty text has no pieces.
    pub(crate) fn split(self, text: &str) -> Vec<String> {
        let total = text.chars().count();
        let size = match self {
            Self::Characters(size) => size,
            Self::Count(count) => total.div_ceil(count.max(1)),
        }
        .max(1);
        let mut pieces = Vec::with_capacity(total.div_ceil(size));
        let mut piece = String::new();
        for (index, character) in text.chars().enumerate() {
            if index > 0 && index % size == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
            piece.push(character);
        }
        if !piece.is_empty() {
            pieces.push(piece);
        }
        pieces
    }
}

/// Token counts fixed by a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageOverride {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerCall {
    pub(crate) id: Option<String>,
    pub(crate) tool: String,
    /// Argument text as sent, which a script may have broken on purpose.
    pub(crate) arguments: String,
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) thinking: Vec<Thinking>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<AnswerCall>,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: UsageOverride,
    pub(crate) pieces: Pieces,
    pub(crate) fault: Fault,
    pub(crate) model: Option<String>,
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    pub(crate) fn call(tool: &str, arguments: &serde_json::Value) -> Self {
        Self {
            calls: vec![AnswerCall {
                id: None,
                tool: tool.to_owned(),
                arguments: arguments.to_string(),
            }],
            ..Self::default()
        }
    }

    /// Returns the reason that was set, or the one that follows from the content.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.unwrap_or(if self.calls.is_empty() {
            Stop::EndTurn
        } else {
            Stop::ToolUse
        })
    }

    /// Estimates the number of tokens of the answer.
    pub(crate) fn tokens(&self) -> u64 {
        let text = self.text.as_deref().map_or(0, str::len);
        let calls: usize = self
            .calls
            .iter()
            .map(|call| call.tool.len() + call.arguments.len())
            .sum();
        let total = text + calls + self.thinking_bytes();
        (total as u64).div_ceil(4).max(1)
    }

    pub(crate) fn thinking_tokens(&self) -> u64 {
        (self.thinking_bytes() as u64).div_ceil(4)
    }

    fn thinking_bytes(&self) -> usize {
        self.thinking.iter().map(|thought| thought.text.len()).sum()
    }
}

/// Creates an id with a vendor's prefix. Ids are random because a stored session may talk to many servers.
pub(crate) fn fresh_id(prefix: &str) -> String {
    format!("{prefix}{}", Uuid::new_v4().simple())
}
