//! CTX-7: asks a model between turns for the current subgoal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Job;
use super::subgoal::{Extracted, Registry};
use super::summarize::{Question, outline};
use crate::clock::Clock;
use crate::message::{Message, Role};
use crate::middleware::Depth;
use crate::model::Usage;
use crate::provider::Provider;

/// Subgoals of a session, shared by the extraction and the compactor.
#[derive(Debug, Default)]
pub struct Subgoals(Mutex<Tracked>);

#[derive(Debug, Default)]
struct Tracked {
    registry: Registry,
    /// Last user message that a model was asked about.
    asked: String,
    is_running: bool,
}

impl Subgoals {
    /// Returns the active subgoal, for display.
    pub fn active(&self) -> Option<String> {
        self.tracked().registry.active().map(|goal| goal.text.clone())
    }

    /// Returns the current registry, for a dump.
    pub fn registry(&self) -> Registry {
        self.tracked().registry.clone()
    }

    /// Returns the registry for a history of this length.
    pub(super) fn at(&self, length: usize) -> Registry {
        let mut tracked = self.tracked();
        tracked.registry.resize(length);
        tracked.registry.clone()
    }

    /// Updates the spans after a compaction: the first message stays, and the messages up to `cut` were
    /// replaced by one.
    pub(super) fn folded(&self, cut: usize) {
        self.tracked().registry.rebuild(1..cut, 1);
    }

    /// Returns true if the last user message is new and no request is running.
    fn begin(&self, history: &[Arc<Message>]) -> bool {
        let last = history.iter().rev().find(|message| message.role == Role::User);
        let said = last.map(|message| message.text()).unwrap_or_default();
        let mut tracked = self.tracked();
        tracked.registry.resize(history.len());
        if said.is_empty() || tracked.is_running || tracked.asked == said {
            return false;
        }
        tracked.asked = said;
        tracked.is_running = true;
        true
    }

    fn tracked(&self) -> MutexGuard<'_, Tracked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a model for the current subgoal, based on the last six messages, and returns the tokens used. Does
/// nothing if there is no new user message or a request is already running. Call it after a turn, in the
/// background: no turn waits for it.
pub async fn extract(
    subgoals: &Subgoals,
    history: &[Arc<Message>],
    provider: &dyn Provider,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
) -> Option<Usage> {
    const SYSTEM: &str = "You follow a working session. Say what the assistant works on right now, in one sentence, and \
        whether what it worked on before is done. Answer in exactly two lines:\nCURRENT: the present subgoal, or NONE\n\
        COMPLETED: the subgoal that was just finished, or NONE";
    const SEEN: usize = 6;
    if !subgoals.begin(history) {
        return None;
    }
    let end = Running(subgoals);
    let visible = history
        .iter()
        .rev()
        .filter(|message| message.role != Role::Tool)
        .take(SEEN);
    let mut lines: Vec<Vec<String>> = visible.map(|message| outline(message)).collect();
    lines.reverse();
    let question = Question {
        system: SYSTEM,
        prompt: lines.concat().join("\n"),
        max_output: 300,
        limit: Duration::from_secs(30),
    };
    let job = Job {
        history,
        provider,
        cancel,
        now: clock.now(),
        clock,
        depth: Depth::Soft,
        target: 0,
        instructions: Vec::new(),
    };
    let answer = question.ask(&job).await.ok()?;
    if !answer.has_calls {
        subgoals.tracked().registry.update(Extracted::read(&answer.text));
    }
    drop(end);
    Some(answer.usage)
}

/// Marks the request as finished when dropped, so also after a panic or a cancellation.
struct Running<'a>(&'a Subgoals);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.tracked().is_running = false;
    }
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
