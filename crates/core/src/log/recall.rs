//! CTX-15: `recall`, the tool that reads back verbatim the content that a compaction removed from a
//! conversation.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use super::{Entry, History, LogError, Store, record};
use crate::event::{Event, SessionEvent};
use crate::id::{MessageId, SessionId};
use crate::message::{Message, Part, Role};
use crate::text;
use crate::tool::{AnyTool, Category, Tool, ToolContext, ToolError, ToolOutput, erase};
use schemars::JsonSchema;
use serde::Deserialize;

/// Default number of lines.
const LINES: usize = 500;
/// Maximum number of characters of an answer, so that it is not cut a second time.
const MOST: usize = 30_000;

/// Reads back what was left out of this conversation, by the ref of a note or summary; without one, `grep` searches
/// everything ever said or shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallInput {
    #[serde(rename = "ref", alias = "reference", alias = "id", default)]
    reference: Option<String>,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
    /// Only lines with this text.
    #[serde(default)]
    grep: Option<String>,
}

struct Recall {
    store: Arc<dyn Store>,
    session: SessionId,
}

/// Creates the tool for one session.
pub fn recall_tool(store: Arc<dyn Store>, session: &SessionId) -> Arc<dyn AnyTool> {
    erase(Recall {
        store,
        session: session.clone(),
    })
}

impl Tool for Recall {
    type Input = RecallInput;
    const NAME: &'static str = "recall";

    fn category(&self, _: &RecallInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: RecallInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let entries = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
            entries = record(&*self.store, &self.session) => entries,
        };
        let entries = entries.map_err(|error: LogError| ToolError::Permanent(error.to_string()))?;
        let reference = input.reference.as_deref().map_or("", str::trim);
        if reference.is_empty() && input.grep.is_none() {
            let text = "Give `ref`, as a note or a summary names it, or `grep` to look through everything.";
            return Err(ToolError::Invalid(text.to_owned()));
        }
        let Some(text) = looked_up(&entries, reference) else {
            return Err(ToolError::Invalid(format!(
                "`ref`: nothing was left out under `{reference}`; notes and summaries in the conversation name theirs."
            )));
        };
        page(&text, &input)
    }
}

/// Returns the content behind a reference, or everything if the reference is empty.
fn looked_up(entries: &[Entry], reference: &str) -> Option<String> {
    if reference.is_empty() {
        return Some(everything(entries));
    }
    find(entries, reference)
}

/// Returns the original text of all messages and outputs, except those of `recall` itself.
fn everything(entries: &[Entry]) -> String {
    let mut seen: HashSet<&MessageId> = HashSet::new();
    let mut all: Vec<Arc<Message>> = Vec::new();
    for entry in entries {
        if let Event::Message { message } = &entry.event
            && seen.insert(&message.id)
            && !message.results().any(|result| result.name == Recall::NAME)
        {
            all.push(Arc::clone(message));
        }
    }
    written(&all)
}

/// Returns the tool's answer for the lines with a text; `None` if the reference is unknown or no line
/// matches. Without a reference it searches everything.
pub fn read_back(entries: &[Entry], reference: &str, grep: &str) -> Option<String> {
    let input = RecallInput {
        reference: Some(reference.to_owned()),
        offset: None,
        limit: None,
        grep: Some(grep.to_owned()),
    };
    let text = looked_up(entries, reference).filter(|text| text.contains(grep))?;
    Some(page(&text, &input).ok()?.content)
}

/// Returns the content behind a reference, verbatim.
pub fn find(entries: &[Entry], reference: &str) -> Option<String> {
    result(entries, reference).or_else(|| {
        let place = entries.iter().position(|entry| is_message(entry, reference))?;
        span(entries, place).or_else(|| match &entries.get(place)?.event {
            Event::Message { message } => Some(written(std::slice::from_ref(message))),
            _ => None,
        })
    })
}

fn is_message(entry: &Entry, reference: &str) -> bool {
    matches!(&entry.event, Event::Message { message } if message.id.as_str() == reference)
}

/// Returns the original output of a call. An id can be reused: the result then contains all outputs, last one
/// first.
fn result(entries: &[Entry], call: &str) -> Option<String> {
    let mut seen: HashSet<&MessageId> = HashSet::new();
    let mut found: Vec<String> = Vec::new();
    for entry in entries {
        let Event::Message { message } = &entry.event else {
            continue;
        };
        // A later version of the same message may contain a note in its place.
        if message.role != Role::Tool || !seen.insert(&message.id) {
            continue;
        }
        let own = message.results().filter(|result| result.call_id.as_str() == call);
        found.extend(own.map(|result| result.content.clone()));
    }
    if found.len() < 2 {
        return found.pop();
    }
    let headed = found.iter().enumerate().rev().map(|(index, content)| {
        let number = index + 1;
        format!("--- result {number} of {} of {call} ---\n{content}", found.len())
    });
    Some(headed.collect::<Vec<_>>().join("\n"))
}

/// Returns the messages that a summary replaced.
fn span(entries: &[Entry], summary: usize) -> Option<String> {
    let is_compaction =
        |entry: &&Entry| matches!(entry.event, Event::Session(SessionEvent::Compaction { .. }));
    let after = entries.get(summary..)?.iter().find(is_compaction)?;
    let Event::Session(SessionEvent::Compaction { history, .. }) = &after.event else {
        return None;
    };
    let before = History::read(entries.get(..summary)?).into_messages();
    let kept: HashSet<&MessageId> = history.iter().collect();
    // The original versions: a note may have replaced an output since.
    let mut first: HashMap<&MessageId, &Arc<Message>> = HashMap::new();
    for entry in entries {
        if let Event::Message { message } = &entry.event {
            first.entry(&message.id).or_insert(message);
        }
    }
    let gone = before.iter().filter(|message| !kept.contains(&message.id));
    let gone: Vec<Arc<Message>> = gone
        .filter_map(|message| first.get(&message.id).map(|first| Arc::clone(first)))
        .collect();
    (!gone.is_empty()).then(|| written(&gone))
}

/// Formats messages as text, each under a heading, without cutting anything.
fn written(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        for part in &message.parts {
            let (heading, content) = match part {
                Part::Text(said) => (role(message.role).to_owned(), said.text.clone()),
                Part::Context(fragment) => ("context".to_owned(), fragment.text.clone()),
                Part::ToolCall(call) => (format!("call {} {}", call.id, call.name), call.input.clone()),
                Part::ToolResult(result) => (
                    format!("result {} {}", result.call_id, result.name),
                    result.content.clone(),
                ),
                Part::Compaction(compaction) => ("earlier summary".to_owned(), compaction.summary.clone()),
                Part::Compressed(compressed) => ("compressed".to_owned(), compressed.text.clone()),
                Part::Binary(file) => ("file".to_owned(), format!("{} ({})", file.path, file.mime)),
                Part::ImageUrl(image) => ("image".to_owned(), image.url.clone()),
                Part::Reasoning(_) | Part::Finish(_) | Part::Unknown(_) => continue,
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "--- {heading} ---\n{content}\n");
        }
    }
    text
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
    }
}

fn page(text: &str, input: &RecallInput) -> Result<ToolOutput, ToolError> {
    let lines: Vec<&str> = text.lines().collect();
    let total = lines.len();
    let wanted = input.grep.as_ref().map(|wanted| wanted.to_lowercase());
    let fits = |line: &str| {
        wanted
            .as_ref()
            .is_none_or(|wanted| line.to_lowercase().contains(wanted))
    };
    let first = input.offset.unwrap_or(1).max(1);
    let limit = input.limit.unwrap_or(LINES).max(1);
    if wanted.is_none() && first == 1 && total <= limit && text.len() <= MOST {
        return Ok(ToolOutput::text(text));
    }
    let numbered = lines.iter().enumerate().map(|(index, line)| (index + 1, *line));
    let mut shown = String::new();
    let (mut count, mut last, mut is_cut) = (0, first.saturating_sub(1), false);
    for (number, line) in numbered.skip(first - 1).filter(|(_, line)| fits(line)) {
        if count == limit || shown.len() + line.len() > MOST {
            is_cut = true;
            break;
        }
        let _ = writeln!(shown, "{number}\t{line}");
        (count, last) = (count + 1, number);
    }
    if count == 0 {
        let nothing = match &input.grep {
            Some(wanted) => format!(
                "No line from {first} on has `{wanted}`; the record has {}.",
                text::count(total, "line")
            ),
            None => format!(
                "The record has {}; `offset` is beyond its end.",
                text::count(total, "line")
            ),
        };
        return Ok(ToolOutput::text(nothing));
    }
    if is_cut {
        let _ = write!(
            shown,
            "[{count} of {total} lines; continue with offset={}]",
            last + 1
        );
    }
    Ok(ToolOutput::text(shown))
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
