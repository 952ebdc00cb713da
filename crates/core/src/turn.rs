//! The pure turn machine: it receives what happened and returns the next action.
//!
//! A [`Turn`] does no IO, gets the time from its driver, and is not stored: rebuilding it from the log gives
//! suspend, resume, fork and replay with one mechanism. Its tests are tables of feeds and expected actions.

mod answer;
mod limits;
mod outcome;
mod reading;
mod repeat;

use std::sync::Arc;

pub(crate) use self::answer::refused;
pub use self::answer::{ModelAnswer, Planned, Settled, SettledEnd};
pub use self::limits::{Limits, OnMaxIterations};
pub use self::outcome::{Answered, ContextMetrics, Failure, Outcome, TurnReport};
use self::repeat::Repeats;
use crate::clock::Timestamp;
use crate::compact::Compacted;
use crate::event::{Event, FailureKind, SinkError};
use crate::id::SessionId;
use crate::message::{FinishReason, FragmentSource, Message, Part, Role};
use crate::middleware::{Depth, Flow, IterationView, Shrink, Stage, Verdict};
use crate::model::{Model, Price, Usage};
use crate::provider::{Prefix, ProviderError};
use crate::text::count;

/// Next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Take the messages the user sent meanwhile, then call [`Turn::heard`].
    Listen,
    /// Run the middleware, then call [`Turn::consulted`].
    Consult(Stage),
    /// Send the history to the model, then call [`Turn::answered`].
    Ask(Ask),
    /// Run these calls, then call [`Turn::settled`].
    Call(Vec<Planned>),
    /// Compact the history, then call [`Turn::shrunk`].
    Shrink(Shrink),
    /// Ask the incomplete-work hook about this answer, then call [`Turn::reviewed`].
    Review(String),
    /// Nothing: the turn has ended.
    Done(Outcome),
}

/// Kind of model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// With the tools.
    Iteration,
    /// Without tools, for a last word at the iteration limit.
    LastWord,
}

/// The user message that asks for a last word. Sent, never stored.
pub const LAST_WORD_PROMPT: &str = "The limit of steps for this turn is reached and no more tools can be called. \
     Sum up where you stand: what is done, what is open, and what the next step would be.";
/// The answer when there is no last word.
pub const LIMIT_TEXT: &str = "Stopped: maximum iteration limit reached.";
/// The result of calls that a cancellation or a denial kept from running.
pub const CANCELED_TEXT: &str = "Tool execution canceled by user";

/// LOOP-11: result of a call that was denied and ended the turn.
pub const DENIED_TEXT: &str = "Permission denied";
const CUT_CALL_TEXT: &str = "Not run: the reply was cut at the output limit before this call was complete. \
     Send it again, in smaller pieces if it is long.";
const CONTINUE_PROMPT: &str =
    "Your reply was cut at the output limit. Go on from where it stopped, in smaller steps.";

/// Input of a turn.
#[derive(Debug, Clone)]
pub struct TurnInput {
    /// The session.
    pub session: SessionId,
    /// The conversation, the new user message last.
    pub history: Vec<Arc<Message>>,
    /// Limits of the turn.
    pub limits: Limits,
    /// The model's prices, for the cost limit.
    pub price: Option<Price>,
    /// Shown in the first event.
    pub provider: String,
    /// Shown in the first event.
    pub model: String,
}

impl TurnInput {
    /// Returns the calls that end the conversation: the turn was taken over before they ran, and begins with them.
    pub fn open_calls(&self) -> Vec<Planned> {
        let last = self.history.last();
        let calls = last.into_iter().flat_map(|message| message.calls().cloned());
        calls.map(|call| Planned { call, refusal: None }).collect()
    }
}

/// One turn: from a pending input until the model has nothing left to do.
#[derive(Debug)]
pub struct Turn {
    session: SessionId,
    history: Vec<Arc<Message>>,
    limits: Limits,
    payee: Payee,
    state: State,
    iteration: u32,
    streaks: Streaks,
    repeats: Repeats,
    last_usage: Option<Usage>,
    spent: Spent,
    news: Vec<Event>,
    now: Timestamp,
}

/// The model that calls are booked for.
#[derive(Debug)]
struct Payee {
    provider: String,
    model: String,
    price: Option<Price>,
}

/// Counters of events that may happen only a limited number of times in a row.
#[derive(Debug, Default)]
struct Streaks {
    cut: u32,
    empty: u32,
    incomplete: u32,
    overflow: u32,
    compacted: u32,
    /// True if a compaction freed nothing: another one in this turn would not either.
    exhausted: bool,
}

#[derive(Debug, Default)]
struct Spent {
    usage: Usage,
    cost_usd: f64,
    context: ContextMetrics,
}

#[derive(Debug)]
enum State {
    Listening,
    Consulting {
        stage: Stage,
        next: Next,
    },
    Waiting(Ask),
    Calling(Vec<Planned>),
    Shrinking {
        shrink: Shrink,
        next: Next,
        overflow: Option<ProviderError>,
    },
    Reviewing(String),
    Over(Outcome),
}

/// Step to continue with after middleware or compaction.
#[derive(Debug, Clone)]
enum Next {
    Ask,
    Iterate,
    End(Outcome),
}

impl Turn {
    /// Creates a turn over `input`.
    pub fn new(input: TurnInput) -> Self {
        let now = input
            .history
            .last()
            .map_or(Timestamp::default(), |message| message.updated_at);
        let state = match input.open_calls() {
            calls if calls.is_empty() => State::Listening,
            calls => State::Calling(calls),
        };
        Self {
            session: input.session,
            history: input.history,
            limits: input.limits,
            payee: Payee {
                provider: input.provider.clone(),
                model: input.model.clone(),
                price: input.price,
            },
            state,
            iteration: 0,
            streaks: Streaks::default(),
            repeats: Repeats::default(),
            last_usage: None,
            spent: Spent::default(),
            news: vec![Event::Start {
                provider: input.provider,
                model: input.model,
            }],
            now,
        }
    }

    /// PROV-13: books the following calls for the model that answers now.
    pub fn billed_to(&mut self, provider: &str, model: &Model) {
        if self.payee.provider != provider || self.payee.model != model.id {
            self.payee = Payee {
                provider: provider.to_owned(),
                model: model.id.clone(),
                price: model.price,
            };
            self.news.push(Event::Start {
                provider: provider.to_owned(),
                model: model.id.clone(),
            });
        }
    }

    /// Returns the next action. Repeated calls return the same action.
    pub fn advance(&self) -> Action {
        match &self.state {
            State::Listening => Action::Listen,
            State::Consulting { stage, .. } => Action::Consult(*stage),
            State::Waiting(ask) => Action::Ask(*ask),
            State::Calling(calls) => Action::Call(calls.clone()),
            State::Shrinking { shrink, .. } => Action::Shrink(*shrink),
            State::Reviewing(text) => Action::Review(text.clone()),
            State::Over(outcome) => Action::Done(outcome.clone()),
        }
    }

    /// Returns the conversation so far.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// State events since the last time this was called. They must be recorded before the next action.
    pub fn news(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.news)
    }

    /// Returns the state that middleware sees.
    pub fn view<'a>(&'a self, model: &'a Model, prefix: &'a Prefix) -> IterationView<'a> {
        IterationView {
            history: &self.history,
            iteration: self.iteration,
            last_usage: self.last_usage,
            cost_usd: self.spent.cost_usd,
            model,
            prefix,
        }
    }

    /// Takes messages that the user sent meanwhile.
    pub fn heard(&mut self, messages: Vec<Message>) {
        for message in messages {
            self.append(message);
        }
        self.iteration += 1;
        self.state = State::Consulting {
            stage: Stage::Before,
            next: Next::Ask,
        };
    }

    /// Takes the verdict of the middleware.
    pub fn consulted(&mut self, verdict: Verdict) {
        let State::Consulting { stage, next } = &self.state else {
            return;
        };
        let (stage, next) = (*stage, next.clone());
        match verdict.flow {
            Flow::Continue => {
                if stage == Stage::Before {
                    self.streaks.compacted = 0;
                }
                self.go(next);
            }
            // A context that stays full after compaction is not compacted forever.
            Flow::Compact(Shrink {
                depth: Depth::Hard, ..
            }) if self.streaks.exhausted || self.streaks.compacted >= self.limits.max_compactions => {
                self.go(next);
            }
            Flow::Compact(shrink) => {
                self.streaks.compacted += u32::from(shrink.depth == Depth::Hard);
                self.state = State::Shrinking {
                    shrink,
                    next,
                    overflow: None,
                };
            }
            // An existing answer is worth more than the request to stop.
            Flow::Stop if matches!(next, Next::End(_)) => self.go(next),
            Flow::Stop => self.fail(FailureKind::Stopped, verdict.reason, None, FinishReason::Error),
            Flow::OverBudget => self.fail(FailureKind::CostLimit, verdict.reason, None, FinishReason::Error),
        }
    }

    /// Takes the reply of the model, or its failure.
    pub fn answered(&mut self, answer: ModelAnswer) {
        let State::Waiting(ask) = self.state else { return };
        match answer {
            ModelAnswer::Complete { message, stop, usage } => {
                self.now = message.updated_at;
                self.book(
                    usage,
                    if ask == Ask::Iteration {
                        "turn"
                    } else {
                        "last_word"
                    },
                );
                match ask {
                    Ask::Iteration => self.replied(message, stop),
                    Ask::LastWord => self.last_word(Some(message)),
                }
            }
            ModelAnswer::Canceled { partial } => self.cancel(partial),
            ModelAnswer::Failed { .. } if ask == Ask::LastWord => self.last_word(None),
            ModelAnswer::Failed { error, partial } => self.unanswered(error, partial),
        }
    }

    /// Takes the results of the calls.
    pub fn settled(&mut self, settled: Settled) {
        let State::Calling(calls) = std::mem::replace(&mut self.state, State::Listening) else {
            return;
        };
        self.now = settled.now;
        self.spend(settled.usage);
        self.repeats.observe(&calls, &settled.results);
        let parts = settled.results.into_iter().map(Part::ToolResult).collect();
        self.append(Message::new(&self.session, Role::Tool, parts, self.now));
        match settled.end {
            Some(SettledEnd::Canceled) => self.cancel(None),
            Some(SettledEnd::Denied { reason, hint }) => {
                self.mark_last_assistant(FinishReason::PermissionDenied);
                self.fail(
                    FailureKind::PermissionDenied,
                    reason,
                    hint,
                    FinishReason::PermissionDenied,
                );
            }
            Some(SettledEnd::Finished(text)) => self.end_iteration(Next::End(Outcome::Answered(Answered {
                text: Some(text)
                    .filter(|text| !text.trim().is_empty())
                    .unwrap_or_else(|| self.last_words()),
                finish: FinishReason::EndTurn,
                done: true,
            }))),
            None => match self.repeats.worst() {
                Some((tool, times)) if times >= self.limits.repeat_stop => {
                    let text = format!(
                        "Stopped: `{tool}` was called {times} times in a row with the same arguments and the same result."
                    );
                    self.fail(FailureKind::Repetition, text, None, FinishReason::Error);
                }
                _ => self.end_iteration(Next::Iterate),
            },
        }
    }

    /// LOOP-10: returns the text beside the last calls, for a `done` without a message.
    fn last_words(&self) -> String {
        let mut recent = self.history.iter().rev();
        let last = recent.find(|message| message.role == Role::Assistant);
        last.map(|message| message.text()).unwrap_or_default()
    }

    /// Takes the compacted history, or the reason compaction failed.
    pub fn shrunk(&mut self, result: Result<Compacted, String>) {
        let State::Shrinking {
            shrink,
            next,
            overflow,
        } = std::mem::replace(&mut self.state, State::Listening)
        else {
            return;
        };
        match (result, overflow) {
            (Ok(compacted), _) => {
                self.adopt(compacted);
                self.go(next);
            }
            (Err(_), None) if shrink.depth == Depth::Soft => self.go(next),
            (Err(reason), None) => {
                self.streaks.exhausted = true;
                self.news.push(Event::Warning {
                    message: format!("Compaction had no effect: {reason}"),
                });
                self.go(next);
            }
            (Err(reason), Some(error)) => {
                let text = format!("{} (compaction had no effect: {reason})", error.message);
                self.fail_request(ProviderError {
                    message: text,
                    ..error
                });
            }
        }
    }

    /// Takes the verdict of the incomplete-work hook about an answer.
    pub fn reviewed(&mut self, prompt: Option<String>) {
        let State::Reviewing(text) = std::mem::replace(&mut self.state, State::Listening) else {
            return;
        };
        match prompt {
            Some(prompt) if self.streaks.incomplete < self.limits.max_incomplete_prompts => {
                self.streaks.incomplete += 1;
                self.news.push(Event::Text { text });
                let reminder = vec![Part::context(FragmentSource::Reminder, prompt)];
                self.append(Message::new(&self.session, Role::User, reminder, self.now));
                self.end_iteration(Next::Iterate);
            }
            _ => self.end_iteration(Next::End(Outcome::Answered(Answered {
                text,
                finish: FinishReason::EndTurn,
                done: false,
            }))),
        }
    }

    /// Ends the turn because the record cannot be written: no further action may happen.
    pub fn abort(&mut self, error: &SinkError) {
        self.fail(FailureKind::Log, error.to_string(), None, FinishReason::Error);
    }

    /// Ends the turn before it starts, and reports it.
    pub fn stopped(self, kind: FailureKind, reason: String) -> TurnReport {
        self.report(Outcome::Failed(Failure {
            kind,
            message: reason,
            hint: None,
            finish: FinishReason::Error,
            retry_after: None,
        }))
    }

    /// Returns the report of the turn.
    pub fn report(self, outcome: Outcome) -> TurnReport {
        TurnReport {
            outcome,
            history: self.history,
            usage: self.spent.usage,
            cost_usd: self.payee.price.map(|_| self.spent.cost_usd),
            iterations: self.iteration,
            context: self.spent.context,
            facts: Vec::new(),
        }
    }

    /// Continues with a smaller history. The compactor has already recorded its new messages.
    fn adopt(&mut self, compacted: Compacted) {
        if let Some(usage) = compacted.usage {
            self.book(usage, "compaction");
        }
        if let Some(fidelity) = compacted.fidelity {
            self.spent.context.compaction_last_before = fidelity.tokens_before;
            self.spent.context.compaction_last_after = fidelity.tokens_after;
            self.spent.context.compaction_last_at_ms = compacted.at.0;
        }
        self.history = compacted.history;
        // The last reported usage belongs to the longer history.
        self.last_usage = None;
    }

    fn cancel(&mut self, partial: Option<Message>) {
        match partial {
            Some(partial) => {
                self.now = partial.updated_at;
                let now = self.now;
                self.append(partial.finished(FinishReason::Canceled, now));
            }
            None => self.mark_last_assistant(FinishReason::Canceled),
        }
        self.end(Outcome::Canceled);
    }

    /// Writes a finish reason over the assistant message this turn ended in, if it wrote one.
    fn mark_last_assistant(&mut self, reason: FinishReason) {
        let now = self.now;
        let recent = self
            .history
            .iter_mut()
            .rev()
            .take_while(|message| message.role != Role::User);
        if let Some(slot) = recent.into_iter().find(|message| message.role == Role::Assistant) {
            *slot = Arc::new(slot.finished(reason, now));
            self.news.push(Event::Message {
                message: Arc::clone(slot),
            });
        }
    }

    fn end_iteration(&mut self, next: Next) {
        self.state = State::Consulting {
            stage: Stage::After,
            next,
        };
    }

    fn go(&mut self, next: Next) {
        match next {
            Next::Ask => self.state = State::Waiting(Ask::Iteration),
            Next::End(outcome) => self.end(outcome),
            Next::Iterate => self.iterate(),
        }
    }

    fn iterate(&mut self) {
        if self
            .limits
            .max_cost_usd
            .is_some_and(|max| self.spent.cost_usd >= max)
        {
            let text = format!(
                "Stopped: the cost limit is reached (${:.4} spent).",
                self.spent.cost_usd
            );
            return self.fail(FailureKind::CostLimit, text, None, FinishReason::Error);
        }
        if self.iteration < self.limits.max_iterations {
            self.state = State::Listening;
            return;
        }
        let limit = count(self.limits.max_iterations, "iteration");
        let message = format!("The limit of {limit} is reached.");
        self.news.push(Event::Error { message });
        match self.limits.on_max_iterations {
            OnMaxIterations::Summary => self.state = State::Waiting(Ask::LastWord),
            OnMaxIterations::Message => self.last_word(None),
        }
    }

    fn fail(&mut self, kind: FailureKind, message: String, hint: Option<String>, finish: FinishReason) {
        self.end(Outcome::Failed(Failure {
            kind,
            message,
            hint,
            finish,
            retry_after: None,
        }));
    }

    /// Ends the turn because the model could not be asked.
    fn fail_request(&mut self, error: ProviderError) {
        self.end(Outcome::Failed(Failure {
            kind: FailureKind::Provider(error.kind),
            message: error.message,
            hint: error.hint,
            finish: FinishReason::Error,
            retry_after: error.retry_after,
        }));
    }

    fn end(&mut self, outcome: Outcome) {
        self.news.push(outcome.event());
        self.state = State::Over(outcome);
    }

    fn append(&mut self, message: Message) {
        let message = Arc::new(message);
        self.news.push(Event::Message {
            message: Arc::clone(&message),
        });
        self.history.push(message);
    }

    /// Counts and records the usage of requests.
    fn spend(&mut self, requests: Vec<Event>) {
        for event in requests {
            if let Event::Usage { usage, cost_usd, .. } = &event {
                self.spent.usage.add(usage);
                self.spent.cost_usd += cost_usd.unwrap_or_default();
            }
            self.news.push(event);
        }
    }

    fn book(&mut self, usage: Usage, cause: &str) {
        self.last_usage = Some(usage);
        self.spend(vec![Event::Usage {
            usage,
            cost_usd: self.payee.price.map(|price| price.cost(&usage)),
            cause: cause.to_owned(),
        }]);
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
