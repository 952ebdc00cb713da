//! CTX-1: token counts, computed once.
//!
//! A [`TokenCounter`] counts texts. The count of a message is cached with the message, so that a history is
//! never counted twice. A [`Gauge`] corrects the counts by the usage a provider reports and estimates the
//! size of the next request. While the reported usage shows that there is room, nothing is counted.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::id::MessageId;
use crate::message::{Binary, Message, Part, Role};
use crate::model::{Model, Usage};
use crate::provider::Prefix;

/// Counts the tokens of a text. May be slow the first time; must return the same number for the same text.
pub trait TokenCounter: Send + Sync {
    /// Returns the cache key of counts. Two counters with the same key must count alike.
    fn key(&self) -> &Arc<str>;

    /// Returns the number of tokens of a text.
    fn count(&self, text: &str) -> u64;
}

/// Estimate of four bytes per token, for models whose tokenizer is not public.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn key(&self) -> &Arc<str> {
        static KEY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("bytes/4"));
        &KEY
    }

    fn count(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }
}

/// Selects the counter for a model.
pub type Counters = fn(&Model) -> Arc<dyn TokenCounter>;

/// Tokens around a message in every wire format.
const FRAME: u64 = 4;
/// Tokens of an image. The real cost depends on its dimensions, and providers shrink large images.
const PICTURE: u64 = 1_000;

/// Returns the tokens of a message, counted on first use.
pub fn of_message(counter: &dyn TokenCounter, message: &Message) -> u64 {
    message.memo.get_or_count(counter.key(), || {
        let parts = message.parts.iter();
        FRAME
            + parts
                .map(|part| of_part(part, |text| counter.count(text)))
                .sum::<u64>()
    })
}

/// Returns the tokens of the system prompt and the tools, counted on first use.
pub fn of_prefix(counter: &dyn TokenCounter, prefix: &Prefix) -> u64 {
    prefix
        .memo
        .get_or_count(counter.key(), || prefix_with(prefix, |text| counter.count(text)))
}

fn prefix_with(prefix: &Prefix, count: impl Fn(&str) -> u64) -> u64 {
    let tools = prefix.tools.iter().map(|tool| {
        let schema = serde_json::to_string(&tool.schema).unwrap_or_default();
        FRAME + count(&tool.name) + count(&tool.description) + count(&schema)
    });
    count(&prefix.system) + tools.sum::<u64>()
}

fn of_part(part: &Part, count: impl Fn(&str) -> u64) -> u64 {
    match part {
        Part::Text(text) => count(&text.text),
        Part::Context(fragment) => count(&fragment.encoded()),
        Part::Reasoning(reasoning) => count(&reasoning.text),
        Part::ToolCall(call) => FRAME + count(&call.name) + count(&call.input),
        Part::ToolResult(result) => {
            FRAME + count(&result.content) + result.images.iter().map(of_picture).sum::<u64>()
        }
        Part::Compaction(compaction) => count(&compaction.summary),
        Part::Compressed(compressed) => count(&compressed.text),
        Part::Binary(binary) => of_picture(binary),
        Part::ImageUrl(_) => PICTURE,
        Part::Finish(_) | Part::Unknown(_) => 0,
    }
}

fn of_picture(picture: &Binary) -> u64 {
    const MOST: u64 = 2_000;
    (picture.data.len() as u64 / 32).min(MOST)
}

/// Upper bound for a prefix that needs no tokenizer, and no schema as text.
fn most_of_prefix(prefix: &Prefix) -> u64 {
    let tools = prefix.tools.iter();
    let tools = tools
        .map(|tool| FRAME + (tool.name.len() + tool.description.len()) as u64 + most_of_value(&tool.schema));
    prefix.system.len() as u64 + tools.sum::<u64>()
}

/// Upper bound for a value as JSON: quotation marks, commas and escaped characters included.
fn most_of_value(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64 * 2 + 3;
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 32,
        Value::String(string) => text(string),
        Value::Array(items) => items.iter().map(most_of_value).sum::<u64>() + 3,
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| text(name) + 1 + most_of_value(value))
                .sum::<u64>()
                + 3
        }
    }
}

/// Upper bound that needs no tokenizer: a token per byte.
fn most(message: &Message) -> u64 {
    let parts = message.parts.iter();
    FRAME
        + parts
            .map(|part| of_part(part, |text| text.len() as u64))
            .sum::<u64>()
}

/// Measures how full a context is. One per session: it learns from the usage that providers report, and
/// starts over with another model.
pub struct Gauge {
    counters: Counters,
    learned: Mutex<Learned>,
}

struct Learned {
    model: String,
    counter: Arc<dyn TokenCounter>,
    factor: f64,
    /// Observations that the factor does not contain yet, the oldest first.
    pending: VecDeque<Observed>,
    last: Option<Reported>,
}

/// Messages, and the tokens that were reported for them. They are counted when the factor is needed.
struct Observed {
    messages: Vec<Arc<Message>>,
    tokens: u64,
}

impl Learned {
    fn new(model: &str, counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            model: model.to_owned(),
            counter,
            factor: 1.0,
            pending: VecDeque::new(),
            last: None,
        }
    }

    /// Remembers an observation. Beyond a few, the oldest hardly matter any more.
    fn observe(&mut self, messages: &[Arc<Message>], tokens: u64) {
        const MOST: usize = 16;
        if messages.iter().any(|message| has_picture(message)) {
            return;
        }
        if self.pending.len() >= MOST {
            self.pending.pop_front();
        }
        self.pending.push_back(Observed {
            messages: messages.to_vec(),
            tokens,
        });
    }

    /// Returns the factor after all observations.
    fn factor(&mut self) -> f64 {
        for Observed { messages, tokens } in std::mem::take(&mut self.pending) {
            let counts = messages.iter().map(|message| of_message(&*self.counter, message));
            self.factor = corrected(self.factor, counts.sum(), tokens);
        }
        self.factor
    }
}

/// Usage reported for a request, and the position of its reply.
#[derive(Debug, Clone, PartialEq)]
struct Reported {
    reply: MessageId,
    /// Total, including the reply.
    total: u64,
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new(|_| Arc::new(Estimate))
    }
}

impl Gauge {
    /// Creates a gauge that uses the right counter for each model.
    pub fn new(counters: Counters) -> Self {
        Self {
            counters,
            learned: Mutex::new(Learned::new("", Arc::new(Estimate))),
        }
    }

    /// Counts for this model from now on. Corrections learned for another model are forgotten.
    pub fn meant_for(&self, model: &Model) {
        let mut learned = self.learned();
        if learned.model != model.id {
            *learned = Learned::new(&model.id, (self.counters)(model));
        }
    }

    /// Returns the factor by which counts are multiplied to match the reported usage.
    pub fn factor(&self) -> f64 {
        self.learned().factor()
    }

    /// Returns the tokens of these messages.
    pub fn tokens<'a>(&self, messages: impl IntoIterator<Item = &'a Arc<Message>>) -> u64 {
        let (counter, factor) = self.counter();
        let counts = messages.into_iter().map(|message| of_message(&*counter, message));
        times(counts.sum(), factor)
    }

    /// Returns the tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        let (counter, factor) = self.counter();
        times(counter.count(text), factor)
    }

    /// Returns the tokens of the system prompt and the tools.
    pub fn prefix(&self, prefix: &Prefix) -> u64 {
        let (counter, factor) = self.counter();
        times(of_prefix(&*counter, prefix), factor)
    }

    /// Returns the tokens of the next request: the last reported usage plus the messages added since, or a
    /// full count if nothing was reported for this history.
    pub fn request(&self, prefix: &Prefix, history: &[Arc<Message>]) -> u64 {
        match self.reported(history) {
            Some((total, since)) => total + self.tokens(since),
            None => self.prefix(prefix) + self.tokens(history),
        }
    }

    /// Returns true if the next request is certainly below `limit`. Needs no tokenizer, so that one is loaded
    /// only when necessary.
    ///
    /// A token per byte is enough: text has at least two bytes per token, and the largest factor is 2.
    pub fn is_surely_below(&self, limit: u64, prefix: &Prefix, history: &[Arc<Message>]) -> bool {
        let (base, since) = match self.reported(history) {
            Some((total, since)) => (total, since),
            None => (most_of_prefix(prefix), history),
        };
        let new: u64 = since.iter().map(|message| most(message)).sum();
        base.saturating_add(new) < limit
    }

    /// Takes the usage reported for the request whose reply is the last one in this history.
    pub fn report(&self, history: &[Arc<Message>], usage: Usage) {
        let input = usage.total_input();
        let Some(place) = history
            .iter()
            .rposition(|message| message.role == Role::Assistant)
        else {
            return;
        };
        let (Some(reply), true) = (history.get(place), input > 0) else {
            return;
        };
        let mut learned = self.learned();
        if learned.last.as_ref().is_some_and(|last| last.reply == reply.id) {
            return;
        }
        let before = learned.last.take();
        if let Some(before) = before
            && let Some(since) = after(history.get(..place).unwrap_or_default(), &before.reply)
        {
            learned.observe(since, input.saturating_sub(before.total));
        }
        learned.last = Some(Reported {
            reply: reply.id.clone(),
            total: input.saturating_add(usage.output),
        });
    }

    /// Forgets the reported usage, because the middle of the history changed.
    pub fn forget(&self) {
        self.learned().last = None;
    }

    /// Returns the usage reported for the start of this history, and the rest of the history.
    fn reported<'a>(&self, history: &'a [Arc<Message>]) -> Option<(u64, &'a [Arc<Message>])> {
        let learned = self.learned();
        let last = learned.last.as_ref()?;
        Some((last.total, after(history, &last.reply)?))
    }

    fn counter(&self) -> (Arc<dyn TokenCounter>, f64) {
        let mut learned = self.learned();
        (Arc::clone(&learned.counter), learned.factor())
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the messages after a message. Searches from the end, where it usually is.
fn after<'a>(history: &'a [Arc<Message>], id: &MessageId) -> Option<&'a [Arc<Message>]> {
    let place = history.iter().rposition(|message| message.id == *id)?;
    history.get(place + 1..)
}

fn has_picture(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Binary(_) | Part::ImageUrl(_) => true,
        Part::ToolResult(result) => !result.images.is_empty(),
        _ => false,
    })
}

/// Returns the factor after one more observation: a third of the way towards it, within fixed bounds.
#[allow(clippy::cast_precision_loss)]
fn corrected(factor: f64, counted: u64, reported: u64) -> f64 {
    const FEWEST: u64 = 50;
    const WEIGHT: f64 = 0.3;
    if counted < FEWEST || reported == 0 {
        return factor;
    }
    let seen = (reported as f64 / counted as f64).clamp(0.5, 2.0);
    (factor + WEIGHT * (seen - factor)).clamp(0.5, 2.0)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn times(tokens: u64, factor: f64) -> u64 {
    if (factor - 1.0).abs() < f64::EPSILON {
        return tokens;
    }
    (tokens as f64 * factor).ceil() as u64
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
