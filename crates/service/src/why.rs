//! OBS-3: the wait chain of a running turn, folded from its events. Stores only the open calls of one
//! iteration.

use std::time::Duration;

use windlass_api::{CallId, Event, Message, Part, Role, SessionEvent, Wait, WaitOn, Waiting};
use windlass_core::clock::span;
use windlass_core::text::count;

use crate::format::cut;

/// Maximum number of characters shown of a command, a question or an error.
const LINE: usize = 120;

/// Condition that ends most waits.
const STOP: &str = "or when you stop the turn";

/// A fold over the events of a turn, with times of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Why {
    /// Provider and model of the current request.
    model: (String, String),
    doing: Doing,
    /// Calls of this iteration without a result, in order.
    calls: Vec<Call>,
    /// Call that waits for approval.
    asked: Option<Asked>,
}

/// Activity of the turn when no call is open.
#[derive(Debug, Default, PartialEq)]
enum Doing {
    #[default]
    Nothing,
    /// The input has arrived, and no request was sent yet.
    Preparing {
        since: Duration,
    },
    Asking {
        since: Duration,
        /// Time of the last piece of the reply.
        heard: Option<Duration>,
    },
    Retrying {
        since: Duration,
        delay: Duration,
        what: String,
    },
    Summarizing {
        since: Duration,
    },
}

#[derive(Debug)]
struct Call {
    id: CallId,
    /// Name of the tool, replaced by the title of the call once it is known.
    title: String,
    since: Option<Duration>,
    /// Time of the last output.
    heard: Option<Duration>,
    /// Question to the user, and the time it was asked.
    question: Option<(String, Duration)>,
}

#[derive(Debug)]
struct Asked {
    id: CallId,
    /// The tool and its subjects.
    what: String,
    reasons: String,
    since: Duration,
}

impl Why {
    /// Applies an event.
    pub(crate) fn hear(&mut self, now: Duration, event: &Event) {
        match event {
            Event::Start { provider, model } => {
                self.model = (provider.clone(), model.clone());
                self.ask(now);
            }
            Event::Message { message } => self.said(now, message),
            Event::Delta { .. } => self.reply_goes_on(now),
            Event::Retry {
                attempt,
                max_attempts,
                delay_ms,
                message,
                ..
            } => {
                self.doing = Doing::Retrying {
                    since: now,
                    delay: Duration::from_millis(*delay_ms),
                    what: format!(
                        "retry {attempt} of {max_attempts}, because {}",
                        cut(message, LINE)
                    ),
                };
            }
            Event::Session(SessionEvent::Compacting { .. }) => self.doing = Doing::Summarizing { since: now },
            Event::Session(SessionEvent::Compaction { .. }) => self.summarized(now),
            Event::Warning { .. } if matches!(self.doing, Doing::Summarizing { .. }) => self.summarized(now),
            Event::StepStart { call_id, title, .. } => {
                let call = self.call(call_id);
                call.title = cut(title, LINE);
                call.since.get_or_insert(now);
            }
            Event::ToolOutput { call_id, .. } => {
                let call = self.call(call_id);
                call.since.get_or_insert(now);
                call.heard = Some(now);
            }
            Event::ToolResult { call_id, .. } => {
                self.calls.retain(|call| call.id != *call_id);
                if self.calls.is_empty() {
                    self.ask(now);
                }
            }
            Event::Waiting(waiting) => self.waits(now, waiting),
            event if event.is_terminal() => *self = Self::default(),
            _ => {}
        }
    }

    /// Returns the current waits, outermost first. `storing` is the start of a write that takes too long: if
    /// no call runs, it is what blocks the turn.
    pub(crate) fn chain(&self, now: Duration, storing: Option<Duration>) -> Vec<Wait> {
        let Some(since) = storing else {
            return self.turn(now);
        };
        let mut chain = match self.calls.is_empty() {
            true => Vec::new(),
            false => self.turn(now),
        };
        chain.push(wait(
            WaitOn::Lock,
            "the session store, which another process may be writing to".to_owned(),
            (since, now),
            "when that process is done; after 20 s the write fails".to_owned(),
        ));
        chain
    }

    fn turn(&self, now: Duration) -> Vec<Wait> {
        if let Some(asked) = &self.asked {
            return self.approval(now, asked);
        }
        if let Some(call) = self.running() {
            return self.tool(now, call);
        }
        let wait = match &self.doing {
            Doing::Nothing => return Vec::new(),
            Doing::Preparing { since } => wait(
                WaitOn::Provider,
                "the first request is being prepared".to_owned(),
                (*since, now),
                format!("when it is sent, {STOP}"),
            ),
            Doing::Asking { since, heard } => self.provider(now, *since, *heard),
            Doing::Retrying { since, delay, what } => match (*since + *delay).checked_sub(now) {
                Some(left) if !left.is_zero() => {
                    let ends = format!("when it is sent, in {}, {STOP}", span(left));
                    wait(WaitOn::Retry, what.clone(), (*since, now), ends)
                }
                _ => self.provider(now, *since + *delay, None),
            },
            Doing::Summarizing { since } => wait(
                WaitOn::Summary,
                "the conversation is being compacted".to_owned(),
                (*since, now),
                format!("when the summary is done or times out, {STOP}"),
            ),
        };
        vec![wait]
    }

    fn ask(&mut self, now: Duration) {
        self.calls.clear();
        self.asked = None;
        self.doing = Doing::Asking {
            since: now,
            heard: None,
        };
    }

    fn reply_goes_on(&mut self, now: Duration) {
        let since = match &self.doing {
            Doing::Asking { since, .. } => *since,
            _ => now,
        };
        self.doing = Doing::Asking {
            since,
            heard: Some(now),
        };
    }

    fn said(&mut self, now: Duration, message: &Message) {
        match (message.role, &self.doing) {
            // A summary consists of messages as well.
            (_, Doing::Summarizing { .. }) => {}
            (Role::Assistant, Doing::Nothing) => {}
            (Role::Assistant, _) => {
                self.ask(now);
                let calls = message.parts.iter().filter_map(|part| match part {
                    Part::ToolCall(call) => Some(Call::new(&call.id, &call.name)),
                    _ => None,
                });
                self.calls.extend(calls);
            }
            (Role::Tool, doing) if *doing != Doing::Nothing => self.ask(now),
            (Role::User, Doing::Nothing) => self.doing = Doing::Preparing { since: now },
            _ => {}
        }
    }

    fn summarized(&mut self, now: Duration) {
        if self.doing != Doing::Nothing {
            self.ask(now);
        }
    }

    fn waits(&mut self, now: Duration, waiting: &Waiting) {
        match waiting {
            Waiting::PermissionRequest {
                call_id,
                tool,
                subjects,
                reasons,
                ..
            } => {
                let about = subjects.join(" · ");
                let what = [tool.as_str(), &about].join(" ");
                self.asked = Some(Asked {
                    id: call_id.clone(),
                    what: cut(&what, LINE),
                    reasons: cut(&reasons.join("; "), LINE),
                    since: now,
                });
            }
            Waiting::PermissionAnswer { .. } => self.asked = None,
            Waiting::Question { call_id, text, .. } => {
                self.call(call_id).question = Some((cut(text, LINE), now));
            }
            Waiting::Queue { .. } => {}
        }
    }

    /// Returns the call, adding it if no message mentioned it.
    fn call(&mut self, id: &CallId) -> &mut Call {
        let known = self.calls.iter().position(|call| call.id == *id);
        let place = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(Call::new(id, ""));
        }
        &mut self.calls[place]
    }

    /// Returns the call that the others wait for: results are taken in the order of the calls.
    fn running(&self) -> Option<&Call> {
        self.calls.first()
    }

    fn provider(&self, now: Duration, since: Duration, heard: Option<Duration>) -> Wait {
        let (provider, model) = &self.model;
        let who = match (provider.as_str(), model.as_str()) {
            ("", "") => "the model".to_owned(),
            (provider, model) => format!("{provider}/{model}"),
        };
        let (what, since, ends) = match heard {
            None => (format!("{who} to answer"), since, "when it answers"),
            Some(heard) => (
                format!(
                    "{who} to continue; the reply has taken {} so far",
                    between(since, now)
                ),
                heard,
                "when it continues",
            ),
        };
        wait(WaitOn::Provider, what, (since, now), format!("{ends}, {STOP}"))
    }

    fn approval(&self, now: Duration, asked: &Asked) -> Vec<Wait> {
        let others = self.calls.iter().filter(|call| call.id != asked.id).count();
        let reasons = match asked.reasons.as_str() {
            "" => String::new(),
            reasons => format!(", because {reasons}"),
        };
        vec![
            wait(
                WaitOn::Tool,
                format!("{}{}", asked.what, more(others)),
                (asked.since, now),
                "when it is approved and has run".to_owned(),
            ),
            wait(
                WaitOn::Approval,
                format!("permission to run {}{reasons}", asked.what),
                (asked.since, now),
                format!("when someone answers, {STOP}"),
            ),
        ]
    }

    fn tool(&self, now: Duration, call: &Call) -> Vec<Wait> {
        let others = self.calls.len().saturating_sub(1);
        let since = call.since.unwrap_or(now);
        let heard = match (call.since, call.heard) {
            (None, _) => ", about to start".to_owned(),
            (Some(_), None) => String::new(),
            (Some(_), Some(heard)) => format!(", last output {} ago", between(heard, now)),
        };
        let mut chain = vec![wait(
            WaitOn::Tool,
            format!("{}{heard}{}", call.title, more(others)),
            (since, now),
            format!("when it ends or times out, {STOP}"),
        )];
        if let Some((text, since)) = &call.question {
            let ends = format!("when someone answers, {STOP}");
            // A question at the end of a turn belongs to no call.
            if call.title.is_empty() {
                chain.clear();
            }
            chain.push(wait(WaitOn::Question, text.clone(), (*since, now), ends));
        }
        chain
    }
}

impl Call {
    fn new(id: &CallId, name: &str) -> Self {
        Self {
            id: id.clone(),
            title: name.to_owned(),
            since: None,
            heard: None,
            question: None,
        }
    }
}

/// Formats the chain for people, one wait per line.
pub(crate) fn lines(chain: &[Wait]) -> String {
    let line = |(level, wait): (usize, &Wait)| format!("{}{wait}", "  ".repeat(level));
    let lines: Vec<String> = chain.iter().enumerate().map(line).collect();
    lines.join("\n")
}

fn wait(on: WaitOn, what: String, (since, now): (Duration, Duration), ends: String) -> Wait {
    Wait {
        on,
        what,
        for_ms: u64::try_from(now.saturating_sub(since).as_millis()).unwrap_or(u64::MAX),
        ends,
    }
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(", then {}", count(others, "more call")),
    }
}

fn between(since: Duration, now: Duration) -> String {
    span(now.saturating_sub(since))
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
