//! Replacement for the model that a strategy asks.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use windlass_api::{Message, Part, Usage};
use windlass_core::model::Model;
use windlass_core::provider::{Completion, Provider, ProviderEvent, Request, StopReason};
use windlass_core::tokens::Gauge;
use windlass_core::tool::ToolSpec;

use super::Side;

/// Rule for answering requests of a strategy.
///
/// Neither rule is as good as a model. They give a lower bound that is the same on every machine: facts in
/// sight after a compaction with [`Summarizer::Extract`] are those that plain rules would keep, and facts in
/// sight with [`Summarizer::Nothing`] are guaranteed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Summarizer {
    /// Picks lines: an earlier summary, then the first line of each reply and of each output, at most 3,000
    /// characters in total, newest first. It knows nothing about the facts planted in generated sessions.
    #[default]
    Extract,
    /// States that work was done, and nothing else.
    Nothing,
}

/// Maximum number of characters of a summary.
const LONGEST: usize = 3_000;
/// Maximum number of characters of a line in it.
const LONGEST_LINE: usize = 160;

impl Summarizer {
    /// Summarizes lines such as `[Assistant]: …` and `[Tool result]: …`.
    pub(super) fn summary(self, lines: &str) -> String {
        match self {
            Self::Nothing => "Some work was done on this.".to_owned(),
            Self::Extract => extract(lines),
        }
    }
}

fn extract(text: &str) -> String {
    let (mut earlier, mut replies, mut outputs): (Vec<&str>, Vec<&str>, Vec<&str>) = Default::default();
    let mut kind = Kind::Other;
    let mut is_open = false;
    for line in text.lines() {
        let (next, rest) = Kind::read(line, kind);
        if rest.len() != line.len() {
            is_open = true;
        }
        kind = next;
        match kind {
            Kind::Earlier => earlier.push(rest),
            Kind::Reply if is_open => {
                replies.push(rest);
                is_open = false;
            }
            Kind::Output if is_open => {
                outputs.push(rest);
                is_open = false;
            }
            _ => {}
        }
    }
    let mut lines = newest(&earlier, LONGEST / 2);
    lines.extend(newest(&outputs, LONGEST / 4));
    lines.extend(newest(&replies, LONGEST / 4));
    if lines.is_empty() {
        return Summarizer::Nothing.summary(text);
    }
    lines.join("\n")
}

/// Returns the last lines that fit into `room`, each cut to the maximum length.
fn newest(lines: &[&str], room: usize) -> Vec<String> {
    let mut left = room;
    let mut kept: Vec<String> = Vec::new();
    for line in lines.iter().rev() {
        let short: String = line.trim().chars().take(LONGEST_LINE).collect();
        let Some(rest) = left.checked_sub(short.len() + 1) else {
            break;
        };
        left = rest;
        if !short.is_empty() && !kept.contains(&short) {
            kept.push(short);
        }
    }
    kept.reverse();
    kept
}

/// Origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Earlier,
    Reply,
    Output,
    Other,
}

impl Kind {
    /// Returns the origin and the text of a line. A line without a marker continues the previous one.
    fn read(line: &str, before: Self) -> (Self, &str) {
        for (mark, kind) in [
            ("[Earlier summary]: ", Self::Earlier),
            ("[Assistant]: ", Self::Reply),
            ("[Tool result]: ", Self::Output),
            ("[User]: ", Self::Other),
            ("[Tool call]: ", Self::Other),
        ] {
            if let Some(rest) = line.strip_prefix(mark) {
                return (kind, rest);
            }
        }
        (before, line)
    }
}

/// Answers by a rule, and counts the usage.
pub(super) struct Offline {
    model: Model,
    summarizer: Summarizer,
    gauge: Arc<Gauge>,
    side: Mutex<Side>,
}

impl Offline {
    pub(super) fn new(model: Model, summarizer: Summarizer, gauge: Arc<Gauge>) -> Self {
        Self {
            model,
            summarizer,
            gauge,
            side: Mutex::default(),
        }
    }

    /// Returns the usage so far.
    pub(super) fn side(&self) -> Side {
        *self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Recognizes the kind of request by the answer format it asks for.
    fn answer(&self, request: &Request) -> String {
        let asked = request.messages.first().map(|message| message.text());
        let asked = asked.unwrap_or_default();
        let system = &request.prefix.system;
        if system.contains("del_cursors") {
            old_half(&asked)
        } else if system.contains("CURRENT:") {
            present_goal(&asked)
        } else {
            self.summarizer.summary(&asked)
        }
    }

    fn completion(&self, request: &Request) -> Completion {
        let text = self.answer(request);
        let usage = Usage {
            input: self.gauge.prefix(&request.prefix) + self.gauge.tokens(&request.messages),
            output: self.gauge.text(&text),
            ..Usage::default()
        };
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        side.requests += 1;
        side.input += usage.input;
        side.output += usage.output;
        Completion {
            parts: vec![Part::text(text)],
            origin: None,
            stop: StopReason::EndTurn,
            usage,
            model: self.model.id.clone(),
        }
    }
}

/// Returns the older half of the listed outputs.
fn old_half(asked: &str) -> String {
    let shown = asked.lines().filter(|line| line.starts_with('[')).count();
    let cursors: Vec<String> = (0..shown.div_ceil(2)).map(|cursor| cursor.to_string()).collect();
    format!("{{\"del_cursors\": [{}]}}", cursors.join(", "))
}

/// Returns the last user message as the current subgoal.
fn present_goal(asked: &str) -> String {
    let said = asked.lines().rev().find_map(|line| line.strip_prefix("[User]: "));
    let goal = said
        .and_then(|said| said.split(['.', '?']).next())
        .unwrap_or("NONE");
    format!("CURRENT: {goal}\nCOMPLETED: NONE")
}

impl Provider for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn model(&self) -> &Model {
        &self.model
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let completion = self.completion(&request);
        stream::iter([ProviderEvent::Complete(Box::new(completion))]).boxed()
    }

    fn convert_tools(&self, _: &[ToolSpec]) -> Value {
        Value::Null
    }
}

/// Formats messages as the lines shown to a summarizer, for summaries written by the agent itself.
pub(super) fn lines(messages: &[Arc<Message>]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Text(text) => lines.push(format!("[Assistant]: {}", text.text)),
            Part::ToolResult(result) => lines.push(format!("[Tool result]: {}", result.content)),
            _ => {}
        }
    }
    lines.join("\n")
}
