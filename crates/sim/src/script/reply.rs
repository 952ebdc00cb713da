//! Replies of a script.

use serde_json::Value;

use super::template;
use super::when::When;
use crate::answer::{Answer, AnswerCall, Pieces, Stop, Thinking, UsageOverride};
use crate::fault::Fault;
use crate::seen::Seen;

/// One reply of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub(crate) when: When,
    pub(crate) thinking: Vec<Thinking>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<ReplyCall>,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: UsageOverride,
    pub(crate) pieces: Pieces,
    pub(crate) times: Times,
    pub(crate) fault: Fault,
}

/// One tool call of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplyCall {
    pub(crate) id: Option<String>,
    pub(crate) tool: String,
    pub(crate) arguments: CallArguments,
}

/// Arguments as a value (templates apply) or as exact text that need not be JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallArguments {
    Value(Value),
    Raw(String),
}

/// Number of times a reply may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Count(u64),
    Forever,
}

impl Default for Times {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl Reply {
    /// Creates a reply with this text. `{{last_result}}`, `{{last_quoted}}`, `{{user}}` and `{{result:N}}`
    /// are filled in.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// Creates a reply that calls one tool.
    #[must_use]
    pub fn call(tool: &str, args: Value) -> Self {
        Self::default().and_call(tool, args)
    }

    /// Creates a reply that calls one tool with exactly this argument text, valid or not.
    #[must_use]
    pub fn raw_call(tool: &str, arguments: &str) -> Self {
        let mut reply = Self::default();
        reply.calls.push(ReplyCall {
            id: None,
            tool: tool.to_owned(),
            arguments: CallArguments::Raw(arguments.to_owned()),
        });
        reply
    }

    /// Adds a call, after the text and the calls so far.
    #[must_use]
    pub fn and_call(mut self, tool: &str, args: Value) -> Self {
        self.calls.push(ReplyCall {
            id: None,
            tool: tool.to_owned(),
            arguments: CallArguments::Value(args),
        });
        self
    }

    /// Gives the last call this id.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.id = Some(id.to_owned());
        }
        self
    }

    /// Adds text before the calls.
    #[must_use]
    pub fn say(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// Adds thinking before the text.
    #[must_use]
    pub fn thinking(mut self, text: &str) -> Self {
        self.thinking.push(Thinking {
            text: text.to_owned(),
            redacted: false,
        });
        self
    }

    /// Adds thinking that the client cannot read.
    #[must_use]
    pub fn redacted_thinking(mut self, text: &str) -> Self {
        self.thinking.push(Thinking {
            text: text.to_owned(),
            redacted: true,
        });
        self
    }

    /// Stops for this reason instead of the one that follows from the content.
    #[must_use]
    pub const fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Reports these input and output tokens instead of an estimate.
    #[must_use]
    pub const fn tokens(mut self, input: u64, output: u64) -> Self {
        self.usage.input = Some(input);
        self.usage.output = Some(output);
        self
    }

    /// Reports these cached tokens instead of an estimate.
    #[must_use]
    pub const fn cached_tokens(mut self, read: u64, write: u64) -> Self {
        self.usage.cache_read = Some(read);
        self.usage.cache_write = Some(write);
        self
    }

    /// Streams in pieces of this many characters.
    #[must_use]
    pub const fn delta_chars(mut self, characters: usize) -> Self {
        self.pieces = Pieces::Characters(characters);
        self
    }

    /// Streams each part in this many pieces.
    #[must_use]
    pub const fn deltas(mut self, count: usize) -> Self {
        self.pieces = Pieces::Count(count);
        self
    }

    /// Answers only requests that meet these conditions.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Limits the reply to this many uses.
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.times = Times::Count(count);
        self
    }

    /// Removes the limit on uses.
    #[must_use]
    pub const fn forever(mut self) -> Self {
        self.times = Times::Forever;
        self
    }

    /// Adds a fault to the reply.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Builds the answer to a request, with templates filled in.
    pub(crate) fn answer(&self, seen: &Seen) -> Answer {
        let calls = self.calls.iter().map(|call| AnswerCall {
            id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: match &call.arguments {
                CallArguments::Raw(text) => text.clone(),
                CallArguments::Value(value) => template::fill_value(value, seen).to_string(),
            },
        });
        Answer {
            thinking: self.thinking.clone(),
            text: self.text.as_deref().map(|text| template::fill(text, seen)),
            calls: calls.collect(),
            stop: self.stop,
            usage: self.usage,
            pieces: self.pieces,
            fault: self.fault.clone(),
            model: None,
        }
    }
}
