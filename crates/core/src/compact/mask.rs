//! Replaces old tool outputs with notes. Nothing else is touched: requests, replies and reasoning stay, so a
//! provider's own items stay whole.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::{CompactError, Compacted, Compactor, Job, tail_start};
use crate::message::{Message, Part, ToolResult};
use crate::middleware::Depth;
use crate::text::count;
use crate::tool::RECALL;

/// Minimum size of an output that is replaced by a note.
const SMALLEST: usize = 400;

/// Position of an output: the message, and the part in it.
pub(super) type Place = (usize, usize);

/// Replaces old observations with notes, oldest first and all at once; the newest stay. After "The Complexity
/// Trap" (arXiv 2508.21433), which finds this as good as summaries at half the cost.
///
/// Invariants: no message is added or removed, calls keep their results, only the text of results changes,
/// and the original of every note can be read back with the call's id.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    /// Number of the newest messages that keep their outputs.
    pub keep_recent: usize,
}

impl Default for Mask {
    fn default() -> Self {
        Self { keep_recent: 12 }
    }
}

#[async_trait]
impl Compactor for Mask {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        if job.depth == Depth::Soft {
            return Err(CompactError::NothingToDo);
        }
        let old = tail_start(job.history, self.keep_recent);
        let places: HashSet<Place> = outputs(job.history, 0..old).map(|(place, _)| place).collect();
        if places.is_empty() {
            return Err(CompactError::NothingToDo);
        }
        Ok(Compacted::new(with_results(job.history, &places, |_, result| {
            note(result)
        })))
    }
}

/// Returns the outputs that are worth replacing, in order.
pub(super) fn outputs(
    history: &[Arc<Message>],
    range: std::ops::Range<usize>,
) -> impl Iterator<Item = (Place, &ToolResult)> {
    let messages = history.iter().enumerate().take(range.end).skip(range.start);
    messages.flat_map(|(place, message)| {
        let parts = message.parts.iter().enumerate();
        parts.filter_map(move |(part, content)| match content {
            Part::ToolResult(result) if is_worth_it(result) => Some(((place, part), result)),
            _ => None,
        })
    })
}

fn is_worth_it(result: &ToolResult) -> bool {
    (result.content.len() >= SMALLEST || !result.images.is_empty()) && !result.content.starts_with(NOTE)
}

/// Returns true if this result already stands for a longer output.
pub(super) fn is_short(result: &ToolResult) -> bool {
    [NOTE, SUMMARY, CUT]
        .iter()
        .any(|mark| result.content.starts_with(mark))
}

/// Start of a note.
const NOTE: &str = "[left out: ";
/// Start of the summary of an output.
const SUMMARY: &str = "[summarized: ";
/// Start of an output that was cut to its start and end.
const CUT: &str = "[shortened: ";

/// Returns the history with the results at these positions replaced. Other messages are passed on unchanged.
pub(super) fn with_results(
    history: &[Arc<Message>],
    places: &HashSet<Place>,
    change: impl Fn(&Message, &ToolResult) -> ToolResult,
) -> Vec<Arc<Message>> {
    let touched: HashSet<usize> = places.iter().map(|(message, _)| *message).collect();
    let messages = history.iter().enumerate().map(|(place, message)| {
        if !touched.contains(&place) {
            return Arc::clone(message);
        }
        let mut changed = (**message).clone();
        for (part, content) in changed.parts.iter_mut().enumerate() {
            if let Part::ToolResult(result) = content
                && places.contains(&(place, part))
            {
                *result = change(message, result);
            }
        }
        Arc::new(changed)
    });
    messages.collect()
}

/// Returns the message with notes in place of its outputs, or `None` if it has no output worth replacing.
pub fn without_outputs(message: &Message) -> Option<Message> {
    let history = [Arc::new(message.clone())];
    let places: HashSet<Place> = outputs(&history, 0..1).map(|(place, _)| place).collect();
    if places.is_empty() {
        return None;
    }
    let made = with_results(&history, &places, |_, result| note(result));
    made.first().map(|made| (**made).clone())
}

/// Returns the note for an output. The details for people are kept.
pub(super) fn note(result: &ToolResult) -> ToolResult {
    let size = size(result);
    shorter(result, format!("{NOTE}{size}{}", back(result)))
}

/// Returns a result with a summary in place of the output.
pub(super) fn summarized(result: &ToolResult, summary: &str) -> ToolResult {
    let size = size(result);
    shorter(result, format!("{SUMMARY}{size}{}\n{summary}", back(result)))
}

/// Returns a result with the first and last characters of the output.
pub(super) fn cut(result: &ToolResult, characters: usize) -> ToolResult {
    let (size, ends) = (size(result), crate::text::clip(&result.content, characters));
    shorter(result, format!("{CUT}{size}{}\n{ends}", back(result)))
}

fn size(result: &ToolResult) -> String {
    let lines = count(result.content.lines().count(), "line");
    let pictures = match result.images.len() {
        0 => String::new(),
        1 => ", a picture".to_owned(),
        many => format!(", {many} pictures"),
    };
    let bytes = count(result.content.len(), "byte");
    format!("{bytes}, {lines}{pictures} of `{}`", result.name)
}

/// Returns the hint on how to read the whole output back.
fn back(result: &ToolResult) -> String {
    format!("; {RECALL} {{\"ref\": \"{}\"}} shows it]", result.call_id)
}

fn shorter(result: &ToolResult, content: String) -> ToolResult {
    ToolResult {
        content,
        images: Vec::new(),
        ..result.clone()
    }
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
