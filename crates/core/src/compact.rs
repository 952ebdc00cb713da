//! Making the history smaller: the port, the summarizing strategy, and the middleware that asks for it.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::event::{Event, SessionEvent};
use crate::id::SessionId;
use crate::message::{Binary, Compaction, Message, Part, Role};
use crate::middleware::{IterationView, Middleware, Verdict};
use crate::model::Usage;
use crate::provider::{Prefix, Provider, Request, ToolChoice};
use crate::run::Deps;

/// What a compactor works on.
pub struct Job<'a> {
    /// The whole history.
    pub history: &'a [Arc<Message>],
    /// A model to summarize with.
    pub provider: &'a dyn Provider,
    /// Ends the work.
    pub cancel: CancellationToken,
    /// When it is.
    pub now: Timestamp,
}

/// Makes a history smaller. Must keep calls and results together and must not lose an earlier summary.
#[async_trait]
pub trait Compactor: Send + Sync {
    /// The smaller history.
    ///
    /// # Errors
    /// Says, in a form people can read, why nothing was done.
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError>;
}

/// A smaller history, and what making it used.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The smaller history.
    pub history: Vec<Arc<Message>>,
    /// Tokens of the model call that summarized, if there was one.
    pub usage: Option<Usage>,
}

/// Why nothing was made smaller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// There is nothing between the first message and the protected tail.
    #[error("there is nothing to summarize yet")]
    NothingToDo,
    /// The summary would not be smaller.
    #[error("the summary is not smaller than what it replaces")]
    NoGain,
    /// The model gave no summary.
    #[error("no summary was returned: {0}")]
    NoSummary(String),
}

/// Runs the configured compactor and tells what it did.
///
/// # Errors
/// Says, in a form people can read, why nothing was done.
pub async fn compact(deps: &Deps<'_>, history: &[Arc<Message>]) -> Result<Compacted, String> {
    let compactor = deps.compactor.ok_or_else(|| "compaction is off".to_owned())?;
    let before = estimate_tokens(history);
    deps.events.live(Event::Status {
        text: format!("Compacting: {before} tokens"),
    });
    let job = Job {
        history,
        provider: deps.provider,
        cancel: deps.cancel.child_token(),
        now: deps.clock.now(),
    };
    let smaller = tokio::select! {
        biased;
        // The history stays as it is; the next question notices the cancellation and ends the turn as canceled.
        () = deps.cancel.cancelled() => return Ok(Compacted { history: history.to_vec(), usage: None }),
        result = compactor.compact(job) => result.map_err(|error| error.to_string())?,
    };
    let after = estimate_tokens(&smaller.history);
    if after >= before {
        return Err(CompactError::NoGain.to_string());
    }
    tell(deps, history, &smaller.history, before, after).await?;
    Ok(smaller)
}

/// Records what is new in the smaller history, and which messages it is made of from here on.
async fn tell(
    deps: &Deps<'_>,
    old: &[Arc<Message>],
    new: &[Arc<Message>],
    before: u64,
    after: u64,
) -> Result<(), String> {
    let is_new = |message: &&Arc<Message>| !old.iter().any(|known| known.id == message.id);
    let mut events: Vec<Event> = new
        .iter()
        .filter(is_new)
        .map(|message| Event::Message {
            message: Arc::clone(message),
        })
        .collect();
    events.push(Event::Session(SessionEvent::Compaction {
        before,
        after,
        history: new.iter().map(|message| message.id.clone()).collect(),
    }));
    for event in events {
        deps.events
            .record(event)
            .await
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Replaces the middle of the conversation by a summary; the first message and a recent tail stay.
#[derive(Debug, Clone, Copy)]
pub struct Summarize {
    /// How many of the newest messages stay as they are, at least.
    pub keep_recent: usize,
}

impl Default for Summarize {
    fn default() -> Self {
        Self { keep_recent: 6 }
    }
}

const SUMMARY_SYSTEM: &str = "You condense the record of a working session so that the work can go on without it. \
Keep: what the user asked for and how success is judged, decisions and their reasons, names, paths, commands, \
numbers and error texts that are still needed, what is done, what is open, and the next step. \
Leave out raw tool output. Answer with the summary alone.";
const LONGEST_PIECE: usize = 2_000;
const LONGEST_INPUT: usize = 100_000;

#[async_trait]
impl Compactor for Summarize {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        let cut = tail_start(job.history, self.keep_recent);
        let (Some((first, rest)), true) = (job.history.split_first(), cut > 2) else {
            return Err(CompactError::NothingToDo);
        };
        let (middle, tail) = rest.split_at(cut - 1);
        let session = first.session_id.clone();
        let (summary, usage) = summarize(&job, &session, middle).await?;
        let tokens_before = estimate_tokens(job.history);
        let mut message = Message::new(&session, Role::User, Vec::new(), job.now);
        let mut part = Compaction {
            summary,
            tokens_before,
            tokens_after: 0,
        };
        part.tokens_after = estimate_tokens(tail) + (part.summary.len() as u64) / 4;
        message.parts.push(Part::Compaction(part));
        let mut history = vec![Arc::clone(first), Arc::new(message)];
        history.extend(tail.iter().cloned());
        Ok(Compacted {
            history,
            usage: Some(usage),
        })
    }
}

/// Where the kept tail starts: never between a call and its result.
fn tail_start(history: &[Arc<Message>], keep_recent: usize) -> usize {
    let mut start = history.len().saturating_sub(keep_recent);
    while start > 0
        && history
            .get(start)
            .is_some_and(|message| message.role == Role::Tool)
    {
        start -= 1;
    }
    start
}

async fn summarize(
    job: &Job<'_>,
    session: &SessionId,
    middle: &[Arc<Message>],
) -> Result<(String, Usage), CompactError> {
    let text: String = middle
        .iter()
        .flat_map(|message| outline(message))
        .collect::<Vec<_>>()
        .join("\n");
    let prompt = format!(
        "Summarize this part of the session:\n\n{}",
        clip(&text, LONGEST_INPUT)
    );
    let request = Request {
        prefix: Arc::new(Prefix {
            system: SUMMARY_SYSTEM.to_owned(),
            ..Prefix::default()
        }),
        messages: vec![Arc::new(Message::user(session, prompt, job.now))],
        tool_choice: ToolChoice::None,
        max_output: Some(4_096),
        session: session.clone(),
        cancel: job.cancel.clone(),
    };
    let completion = job
        .provider
        .send(request)
        .await
        .map_err(|error| CompactError::NoSummary(error.message))?;
    let reply = Message::new(session, Role::Assistant, completion.parts, job.now);
    match reply.text().trim() {
        "" => Err(CompactError::NoSummary("the reply was empty".to_owned())),
        summary => Ok((summary.to_owned(), completion.usage)),
    }
}

/// The message as flat lines for the summarizer. An earlier summary goes in whole.
fn outline(message: &Message) -> Vec<String> {
    let role = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool result",
        Role::System => "System",
    };
    let lines = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(format!("[{role}]: {}", clip(&text.text, LONGEST_PIECE))),
        Part::ToolCall(call) => Some(format!("[Tool call]: {}({})", call.name, clip(&call.input, 400))),
        Part::ToolResult(result) => Some(format!("[{role}]: {}", clip(&result.content, 700))),
        Part::Compaction(compaction) => Some(format!("[Earlier summary]: {}", compaction.summary)),
        Part::Compressed(compressed) => Some(format!("[{role}]: {}", clip(&compressed.text, LONGEST_PIECE))),
        _ => None,
    });
    lines.collect()
}

/// The first and last characters of a text that is too long.
fn clip(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(count - most / 2).collect();
    format!("{head} … {tail}")
}

/// A quick estimate, four bytes to a token.
pub fn estimate_tokens(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| estimate_message(message)).sum()
}

fn estimate_message(message: &Message) -> u64 {
    let bytes: usize = message.parts.iter().map(part_bytes).sum();
    (bytes / 4) as u64 + 4
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.text.len(),
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::ToolCall(call) => call.name.len() + call.input.len(),
        Part::ToolResult(result) => {
            result.content.len() + result.images.iter().map(image_bytes).sum::<usize>()
        }
        Part::Compaction(compaction) => compaction.summary.len(),
        Part::Compressed(compressed) => compressed.text.len(),
        Part::Binary(binary) => image_bytes(binary),
        Part::ImageUrl(_) => 4_000,
        Part::Finish(_) | Part::Unknown(_) => 0,
    }
}

/// A picture costs by its size on the screen, and providers shrink what is large.
fn image_bytes(image: &Binary) -> usize {
    const MOST: usize = 8_000;
    (image.data.len() / 8).min(MOST)
}

/// Asks for compaction when the context fills up.
#[derive(Debug, Clone, Copy)]
pub struct AutoCompact {
    /// The share of the model's window above which it asks.
    pub threshold: f64,
}

impl Default for AutoCompact {
    fn default() -> Self {
        Self { threshold: 0.90 }
    }
}

#[async_trait]
impl Middleware for AutoCompact {
    async fn before_turn(&self, view: IterationView<'_>) -> Verdict {
        let used = pressure(view);
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let limit = (view.model.context_window as f64 * self.threshold) as u64;
        if limit == 0 || used < limit {
            return Verdict::proceed();
        }
        let mut verdict = Verdict::compact(format!("the context holds {used} of {limit} tokens"));
        verdict.metadata.insert("old_tokens".to_owned(), used.into());
        verdict
    }
}

/// The size of the next request: what the provider reported last, plus an estimate of what came since.
fn pressure(view: IterationView<'_>) -> u64 {
    let Some(usage) = view.last_usage else {
        return if view.iteration <= 1 {
            estimate_tokens(view.history)
        } else {
            0
        };
    };
    let new = view
        .history
        .iter()
        .rev()
        .take_while(|message| message.role != Role::Assistant);
    usage.total_input() + usage.output + new.map(|message| estimate_message(message)).sum::<u64>()
}
