//! Replaces the middle of a conversation with a summary, with guarantees.
//!
//! CTX-15: even if the summarizer drops everything, returns nothing or fails, the user's messages stay
//! verbatim, open facts are stated as they are now, and every removed span can be read back by its reference.

mod ask;
mod keep;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::ask::outlined;
pub(super) use self::ask::{Question, outline};
use super::{CompactError, Compacted, Compactor, Job, tail_start};
use crate::message::{Compaction, Message, Part, Role};
use crate::middleware::Depth;
use crate::model::Usage;
use crate::text::{clip, readable};
use crate::tokens::Gauge;

/// Source of open facts outside the conversation: todos, processes, children. Must not block.
pub trait OpenFacts: Send + Sync {
    /// Returns the facts, each with a heading.
    fn facts(&self) -> Vec<(String, String)>;
}

/// No open facts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingOpen;

impl OpenFacts for NothingOpen {
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Replaces the middle of the conversation with a summary; the first message and a recent tail stay.
///
/// Invariants: the first message stays, calls and results stay together, an earlier summary is merged into
/// the next one, and the user's messages and the references of an earlier summary are carried over verbatim.
/// Only if they and what was added to them would fill half of the room are the longest of these texts cut to their start
/// and end, and the oldest additions left out, with a notice; and only in a window that is too small even for that, the
/// oldest of the user's messages.
#[derive(Clone)]
pub struct Summarize {
    /// Minimum number of the newest messages that are kept unchanged.
    pub keep_recent: usize,
    /// Timeout of the summarizer, after which an outline is made without it.
    pub limit: Duration,
    /// Source of open facts.
    pub standing: Arc<dyn OpenFacts>,
    /// Gauge for counting tokens.
    pub gauge: Arc<Gauge>,
}

impl Default for Summarize {
    fn default() -> Self {
        Self {
            keep_recent: 6,
            limit: Duration::from_secs(25),
            standing: Arc::new(NothingOpen),
            gauge: Arc::default(),
        }
    }
}

const SYSTEM: &str = "You condense the record of a working session so that the work can continue without it. \
Keep: what the user asked for and how success is judged, decisions and their reasons, names, paths, commands, \
numbers and error texts that are still needed, what is done, what is open, and the next step. \
Leave out raw tool output, and what the user said word for word: that is kept beside it. \
Use 500 words at most. Answer with the summary alone.";
/// Newest messages that are kept unchanged when more do not fit.
pub(super) const LEAST_RECENT: usize = 1;
/// Maximum number of tokens of a summary.
const LONGEST_SUMMARY: u64 = 4_096;

#[async_trait]
impl Compactor for Summarize {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        if job.depth == Depth::Soft {
            return Err(CompactError::NothingToDo);
        }
        let cut = tail_start(job.history, self.keep_recent);
        match job.depth {
            // A short conversation is all recent.
            Depth::Full if cut < 3 => self.fold(&job, 1..job.history.len()).await,
            _ => self.fold(&job, 1..cut).await,
        }
    }

    fn gauge(&self) -> Option<&Gauge> {
        Some(&self.gauge)
    }
}

impl Summarize {
    /// Replaces the messages in `range` with one summary message.
    pub(super) async fn fold(&self, job: &Job<'_>, range: Range<usize>) -> Result<Compacted, CompactError> {
        let middle = job.history.get(range.clone()).unwrap_or_default();
        // A single message, such as an earlier summary, gives little, but it may be all there is.
        let least = 1 + usize::from(job.depth != Depth::Full && self.keep_recent > LEAST_RECENT);
        if middle.len() < least {
            return Err(CompactError::NothingToDo);
        }
        let Told {
            summary,
            usage,
            notice,
        } = self
            .summary(job, middle)
            .await
            .unwrap_or_else(|(why, usage)| Told {
                summary: outlined(middle),
                usage,
                notice: Some(format!(
                    "the summary is an outline made without a model, because {why}"
                )),
            });
        let facts = self.standing.facts();
        let made = self.folded(job, range.clone(), summary, &facts)?;
        let is_shorter = self.gauge.tokens(&made.history) < self.gauge.tokens(job.history);
        if is_shorter || job.depth == Depth::Full {
            return Ok(Compacted {
                usage,
                notice,
                ..Compacted::default()
            }
            .then(made));
        }
        // A summary longer than the text it replaces is not used.
        let shorter = self.folded(
            job,
            range,
            "(See what was said, and the reference.)".to_owned(),
            &facts,
        )?;
        let notice = Some("the summary was longer than the text it replaces and was dropped".to_owned());
        Ok(Compacted {
            usage,
            notice,
            ..Compacted::default()
        }
        .then(shorter))
    }

    /// Replaces the messages with an existing summary.
    pub(super) fn folded(
        &self,
        job: &Job<'_>,
        range: Range<usize>,
        summary: String,
        facts: &[(String, String)],
    ) -> Result<Compacted, CompactError> {
        let part = |range: Range<usize>| job.history.get(range).ok_or(CompactError::NothingToDo);
        let (head, middle) = (part(0..range.start)?, part(range.clone())?);
        let (tail, first) = (part(range.end..job.history.len())?, middle.first());
        let first = first.ok_or(CompactError::NothingToDo)?;
        let mut message = Message::new(&first.session_id, Role::User, Vec::new(), job.now);
        message.id = keep::name(job.history.len(), &range, middle);
        let window = job.provider.model().context_window;
        let kept = keep::kept(middle, &message.id, (job.target / 2, window), &self.gauge);
        let facts = facts.iter().map(|(heading, text)| keep::fact(heading, text));
        let mut part = Compaction {
            summary,
            tokens_before: self.gauge.tokens(job.history),
            tokens_after: 0,
        };
        message.parts.push(Part::Compaction(part.clone()));
        message.parts.extend(kept.parts);
        message.parts.extend(facts);
        let message = Arc::new(message);
        part.tokens_after = self.gauge.tokens(head.iter().chain([&message]).chain(tail));
        let mut message = (*message).clone();
        if let Some(slot) = message.parts.first_mut() {
            *slot = Part::Compaction(part);
        }
        let mut history = head.to_vec();
        history.push(Arc::new(message));
        history.extend(tail.iter().cloned());
        Ok(Compacted {
            notice: kept.notice,
            ..Compacted::new(history)
        })
    }

    /// Returns a model's summary, or the reason there is none and the tokens used in spite of that.
    async fn summary(&self, job: &Job<'_>, middle: &[Arc<Message>]) -> Result<Told, (String, Option<Usage>)> {
        let text: Vec<String> = middle.iter().flat_map(|message| outline(message)).collect();
        // Leaves room for the instructions, the answer, and tokenizer variance on unusual text.
        let room = match job.provider.model().context_window {
            0 => 100_000,
            window => usize::try_from(window.saturating_sub(LONGEST_SUMMARY + 500))
                .unwrap_or(usize::MAX)
                .saturating_mul(3),
        };
        if room < 1_000 {
            return Err(("the model's window is too small to ask for one".to_owned(), None));
        }
        let text = clip(&text.join("\n"), room.min(400_000));
        let question = Question {
            system: SYSTEM,
            prompt: prompt(&text, &job.instructions),
            max_output: LONGEST_SUMMARY,
            limit: self.limit,
        };
        let answer = match question.ask(job).await {
            Ok(answer) => answer,
            Err(no) => match no.beginning() {
                Some((summary, why)) => {
                    return Ok(Told {
                        notice: Some(format!("the summary breaks off, because {why}")),
                        summary,
                        usage: None,
                    });
                }
                None => return Err((no.why(), None)),
            },
        };
        match readable(&answer.text) {
            Ok(summary) => Ok(Told {
                summary,
                usage: Some(answer.usage),
                notice: None,
            }),
            Err(_) if answer.has_calls => Err((
                "it called tools instead of answering".to_owned(),
                Some(answer.usage),
            )),
            Err(why) => Err((why, Some(answer.usage))),
        }
    }
}

/// Answer to a summary request.
struct Told {
    summary: String,
    usage: Option<Usage>,
    notice: Option<String>,
}

/// Returns the question for the summarizer.
fn prompt(text: &str, instructions: &[String]) -> String {
    let instructions: String = instructions.iter().map(|text| format!("\n\n{text}")).collect();
    format!("Summarize this part of the session:{instructions}\n\n{text}")
}

#[cfg(test)]
#[path = "summarize_tests.rs"]
mod tests;
