//! The pure turn machine: it is told what happened and says what to do next.
//!
//! A [`Turn`] does no IO, knows no time but what it is told, and is not stored: rebuilding it from the
//! log gives suspend, resume, fork and replay with one mechanism. Its tests are tables of feeds and
//! expected actions.

mod answer;
mod limits;
mod outcome;
mod repeat;

use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use self::answer::refused;
pub use self::answer::{Answer, Planned, Settled, SettledEnd};
pub use self::limits::{Limits, OnMaxIterations};
pub use self::outcome::{Answered, Failure, Outcome, TurnReport};
use self::repeat::Repeats;
use crate::clock::Timestamp;
use crate::compact::Compacted;
use crate::event::{Event, FailureKind, SinkError};
use crate::id::SessionId;
use crate::message::{FinishReason, Message, Part, Role};
use crate::middleware::{Flow, IterationView, Stage, Verdict};
use crate::model::{Model, Price, Usage};
use crate::provider::{ProviderError, Remedy, StopReason};

/// What the driver must do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Take what the user said meanwhile, then call [`Turn::heard`].
    Listen,
    /// Run the middleware, then call [`Turn::consulted`].
    Consult(Stage),
    /// Ask the model about the history, then call [`Turn::answered`].
    Ask(Ask),
    /// Run these calls, then call [`Turn::settled`].
    Call(Vec<Planned>),
    /// Make the history smaller, then call [`Turn::shrunk`].
    Shrink,
    /// Ask the incomplete-work hook about this answer, then call [`Turn::reviewed`].
    Review(String),
    /// Nothing: the turn is over.
    Done(Outcome),
}

/// How the model is asked.
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
const CUT_CALL_TEXT: &str = "Not run: the reply was cut at the output limit before this call was complete. \
     Send it again, in smaller pieces if it is long.";
const CONTINUE_PROMPT: &str =
    "Your reply was cut at the output limit. Go on from where it stopped, in smaller steps.";

/// What a turn starts from.
#[derive(Debug, Clone)]
pub struct TurnInput {
    /// The session.
    pub session: SessionId,
    /// The conversation, the new user message last.
    pub history: Vec<Arc<Message>>,
    /// The caps.
    pub limits: Limits,
    /// The model's prices, for the cost cap.
    pub price: Option<Price>,
    /// Shown in the first event.
    pub provider: String,
    /// Shown in the first event.
    pub model: String,
}

/// One turn: from a pending input until the model has nothing left to do.
#[derive(Debug)]
pub struct Turn {
    session: SessionId,
    history: Vec<Arc<Message>>,
    limits: Limits,
    price: Option<Price>,
    state: State,
    iteration: u32,
    streaks: Streaks,
    repeats: Repeats,
    last_usage: Option<Usage>,
    spent: Spent,
    news: Vec<Event>,
    now: Timestamp,
}

/// Things that may happen only so often in a row.
#[derive(Debug, Default)]
struct Streaks {
    cut: u32,
    empty: u32,
    incomplete: u32,
    overflow: u32,
    compacted: u32,
}

#[derive(Debug, Default)]
struct Spent {
    usage: Usage,
    cost_usd: f64,
}

#[derive(Debug)]
enum State {
    Listening,
    Consulting {
        stage: Stage,
        next: Next,
    },
    Asking(Ask),
    Calling(Vec<Planned>),
    Shrinking {
        next: Next,
        overflow: Option<ProviderError>,
    },
    Reviewing(String),
    Over(Outcome),
}

/// Where to go after a detour through middleware or compaction.
#[derive(Debug, Clone)]
enum Next {
    Ask,
    Iterate,
    End(Outcome),
}

impl Turn {
    /// A turn over `input`.
    pub fn new(input: TurnInput) -> Self {
        let now = input
            .history
            .last()
            .map_or(Timestamp::default(), |message| message.updated_at);
        Self {
            session: input.session,
            history: input.history,
            limits: input.limits,
            price: input.price,
            state: State::Listening,
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

    /// What to do next. Asking twice gives the same answer.
    pub fn advance(&self) -> Action {
        match &self.state {
            State::Listening => Action::Listen,
            State::Consulting { stage, .. } => Action::Consult(*stage),
            State::Asking(ask) => Action::Ask(*ask),
            State::Calling(calls) => Action::Call(calls.clone()),
            State::Shrinking { .. } => Action::Shrink,
            State::Reviewing(text) => Action::Review(text.clone()),
            State::Over(outcome) => Action::Done(outcome.clone()),
        }
    }

    /// The conversation so far.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// State events since the last time this was called. They must be recorded before the next action.
    pub fn news(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.news)
    }

    /// What middleware sees.
    pub fn view<'a>(&'a self, model: &'a Model) -> IterationView<'a> {
        IterationView {
            history: &self.history,
            iteration: self.iteration,
            last_usage: self.last_usage,
            cost_usd: self.spent.cost_usd,
            model,
        }
    }

    /// The user said this meanwhile.
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

    /// The middleware said this.
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
            // A context that stays full however often it is compacted is not compacted for ever.
            Flow::Compact if self.streaks.compacted >= self.limits.max_compactions => self.go(next),
            Flow::Compact => {
                self.streaks.compacted += 1;
                self.state = State::Shrinking { next, overflow: None };
            }
            // An answer that is already there is worth more than the wish to stop.
            Flow::Stop if matches!(next, Next::End(_)) => self.go(next),
            Flow::Stop => self.fail(FailureKind::Stopped, verdict.reason, None, FinishReason::Error),
        }
    }

    /// The model answered, or did not.
    pub fn answered(&mut self, answer: Answer) {
        let State::Asking(ask) = self.state else { return };
        match answer {
            Answer::Complete { message, stop, usage } => {
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
            Answer::Canceled { partial } => self.cancel(partial),
            Answer::Failed { .. } if ask == Ask::LastWord => self.last_word(None),
            Answer::Failed { error, partial } => self.unanswered(error, partial),
        }
    }

    /// The calls have their results.
    pub fn settled(&mut self, settled: Settled) {
        let State::Calling(calls) = std::mem::replace(&mut self.state, State::Listening) else {
            return;
        };
        self.now = settled.now;
        self.repeats.observe(&calls, &settled.results);
        let parts = settled.results.into_iter().map(Part::ToolResult).collect();
        self.append(Message::new(&self.session, Role::Tool, parts, self.now));
        match settled.end {
            Some(SettledEnd::Canceled) => self.cancel(None),
            Some(SettledEnd::Denied(reason)) => {
                self.mark_last_assistant(FinishReason::PermissionDenied);
                self.fail(
                    FailureKind::PermissionDenied,
                    reason,
                    None,
                    FinishReason::PermissionDenied,
                );
            }
            Some(SettledEnd::Finished(text)) => self.end_iteration(Next::End(Outcome::Answered(Answered {
                text,
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

    /// The compactor made the history smaller, or says why it could not.
    pub fn shrunk(&mut self, result: Result<Compacted, String>) {
        let State::Shrinking { next, overflow } = std::mem::replace(&mut self.state, State::Listening) else {
            return;
        };
        match (result, overflow) {
            (Ok(compacted), _) => {
                self.adopt(compacted);
                self.go(next);
            }
            (Err(reason), None) => {
                self.news.push(Event::Warning {
                    message: format!("Compaction had no effect: {reason}"),
                });
                self.go(next);
            }
            (Err(reason), Some(error)) => {
                let text = format!("{} (compaction had no effect: {reason})", error.message);
                self.fail(
                    FailureKind::Provider(error.kind),
                    text,
                    error.hint,
                    FinishReason::Error,
                );
            }
        }
    }

    /// The incomplete-work hook was asked about an answer.
    pub fn reviewed(&mut self, prompt: Option<String>) {
        let State::Reviewing(text) = std::mem::replace(&mut self.state, State::Listening) else {
            return;
        };
        match prompt {
            Some(prompt) if self.streaks.incomplete < self.limits.max_incomplete_prompts => {
                self.streaks.incomplete += 1;
                self.news.push(Event::Text { text });
                self.append(Message::user(&self.session, prompt, self.now));
                self.end_iteration(Next::Iterate);
            }
            _ => self.end_iteration(Next::End(Outcome::Answered(Answered {
                text,
                finish: FinishReason::EndTurn,
                done: false,
            }))),
        }
    }

    /// The record cannot be written: nothing more may happen.
    pub fn abort(&mut self, error: &SinkError) {
        self.fail(FailureKind::Log, error.to_string(), None, FinishReason::Error);
    }

    /// What the turn came to.
    pub fn report(self, outcome: Outcome) -> TurnReport {
        TurnReport {
            outcome,
            history: self.history,
            usage: self.spent.usage,
            cost_usd: self.price.map(|_| self.spent.cost_usd),
            iterations: self.iteration,
        }
    }

    /// Goes on with a smaller history. Messages that are new in it are news.
    fn adopt(&mut self, compacted: Compacted) {
        if let Some(usage) = compacted.usage {
            self.book(usage, "compaction");
        }
        let known: HashSet<_> = self.history.iter().map(Arc::as_ptr).collect();
        let new = compacted
            .history
            .iter()
            .filter(|message| !known.contains(&Arc::as_ptr(message)));
        self.news.extend(new.map(|message| Event::Message {
            message: Arc::clone(message),
        }));
        self.history = compacted.history;
        // What the provider reported last was about the longer history.
        self.last_usage = None;
    }

    fn replied(&mut self, message: Message, stop: StopReason) {
        let text = message.text().trim().to_owned();
        let calls: Vec<_> = message.calls().cloned().collect();
        if calls.is_empty() && text.is_empty() && stop != StopReason::Pause {
            return self.empty_reply(stop);
        }
        self.streaks.empty = 0;
        self.streaks.overflow = 0;
        self.announce_reasoning(&message);
        let finish = match stop {
            StopReason::MaxTokens => FinishReason::MaxTokens,
            StopReason::Refusal => FinishReason::Refusal,
            StopReason::ToolUse | StopReason::EndTurn | StopReason::Pause if !calls.is_empty() => {
                FinishReason::ToolUse
            }
            _ => FinishReason::EndTurn,
        };
        let now = self.now;
        self.append(message.finished(finish, now));
        match stop {
            StopReason::Refusal => {
                self.fail(
                    FailureKind::Refusal,
                    refusal_text(&text),
                    None,
                    FinishReason::Refusal,
                );
            }
            StopReason::MaxTokens => self.cut_off(text, calls),
            StopReason::Pause if calls.is_empty() => {
                self.say(text);
                self.count_cut(|turn| turn.end_iteration(Next::Iterate));
            }
            _ if calls.is_empty() => {
                self.streaks.cut = 0;
                self.state = State::Reviewing(text);
            }
            _ => {
                self.streaks.cut = 0;
                self.say(text);
                self.plan(calls.into_iter().map(|call| (call, None)).collect());
            }
        }
    }

    fn cut_off(&mut self, text: String, calls: Vec<crate::message::ToolCall>) {
        self.say(text);
        let last = calls.len().saturating_sub(1);
        self.count_cut(|turn| {
            if calls.is_empty() {
                turn.append(Message::user(&turn.session, CONTINUE_PROMPT, turn.now));
                turn.end_iteration(Next::Iterate);
            } else {
                // Only the last call can be half; those before it were whole when the cut came.
                let plan = calls.into_iter().enumerate();
                turn.plan(
                    plan.map(|(i, call)| (call, (i == last).then(|| CUT_CALL_TEXT.to_owned())))
                        .collect(),
                );
            }
        });
    }

    fn count_cut(&mut self, go_on: impl FnOnce(&mut Self)) {
        self.streaks.cut += 1;
        if self.streaks.cut > self.limits.max_cut_replies {
            let text = format!(
                "The reply was cut at the output limit {} times in a row.",
                self.streaks.cut
            );
            let hint = "Raise `agent.max_output_tokens`, or ask for smaller steps.".to_owned();
            self.close_open_calls();
            return self.fail(FailureKind::MaxTokens, text, Some(hint), FinishReason::MaxTokens);
        }
        go_on(self);
    }

    /// Gives every call of the last assistant message a result, so that the history stays whole.
    fn close_open_calls(&mut self) {
        let Some(last) = self
            .history
            .last()
            .filter(|message| message.role == Role::Assistant)
        else {
            return;
        };
        let parts: Vec<_> = last
            .calls()
            .map(|call| Part::ToolResult(refused(call, CUT_CALL_TEXT)))
            .collect();
        if !parts.is_empty() {
            self.append(Message::new(&self.session, Role::Tool, parts, self.now));
        }
    }

    fn plan(&mut self, calls: Vec<(crate::message::ToolCall, Option<String>)>) {
        let planned = calls.into_iter().map(|(call, refusal)| {
            let refusal = refusal.or_else(|| self.repeats.note(&call, self.limits.repeat_note));
            Planned { call, refusal }
        });
        self.state = State::Calling(planned.collect());
    }

    fn empty_reply(&mut self, stop: StopReason) {
        if stop == StopReason::Refusal {
            return self.fail(
                FailureKind::Refusal,
                refusal_text(""),
                None,
                FinishReason::Refusal,
            );
        }
        self.streaks.empty += 1;
        if self.streaks.empty > self.limits.max_empty_replies {
            let text = "The model returned an empty reply twice in a row.".to_owned();
            let hint = "Try again, or use another model.".to_owned();
            return self.fail(FailureKind::EmptyReply, text, Some(hint), FinishReason::Error);
        }
        self.news.push(Event::Warning {
            message: "The model returned an empty reply; asking again.".to_owned(),
        });
        self.state = State::Asking(Ask::Iteration);
    }

    fn unanswered(&mut self, error: ProviderError, partial: Option<Message>) {
        if error.remedy() == Remedy::Compact && self.streaks.overflow < self.limits.max_overflow_compactions {
            self.streaks.overflow += 1;
            self.state = State::Shrinking {
                next: Next::Ask,
                overflow: Some(error),
            };
            return;
        }
        if let Some(partial) = partial {
            self.now = partial.updated_at;
            let now = self.now;
            self.append(partial.finished(FinishReason::Error, now));
        }
        self.fail(
            FailureKind::Provider(error.kind),
            error.message,
            error.hint,
            FinishReason::Error,
        );
    }

    fn last_word(&mut self, message: Option<Message>) {
        let text = message
            .as_ref()
            .map(|message| message.text().trim().to_owned())
            .unwrap_or_default();
        let (text, message) = match message {
            Some(message) if !text.is_empty() => (text, message),
            _ => {
                let parts = vec![Part::text(LIMIT_TEXT)];
                (
                    LIMIT_TEXT.to_owned(),
                    Message::new(&self.session, Role::Assistant, parts, self.now),
                )
            }
        };
        // Tools were not offered; a call made all the same would stay without a result.
        let mut message = message.finished(FinishReason::MaxIterations, self.now);
        if message.calls().next().is_some() {
            message.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
            message.origin = None;
        }
        self.append(message);
        self.end(Outcome::Answered(Answered {
            text,
            finish: FinishReason::MaxIterations,
            done: false,
        }));
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
            Next::Ask => self.state = State::Asking(Ask::Iteration),
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
        let message = format!(
            "The limit of {} iterations is reached.",
            self.limits.max_iterations
        );
        self.news.push(Event::Error { message });
        match self.limits.on_max_iterations {
            OnMaxIterations::Summary => self.state = State::Asking(Ask::LastWord),
            OnMaxIterations::Message => self.last_word(None),
        }
    }

    fn fail(&mut self, kind: FailureKind, message: String, hint: Option<String>, finish: FinishReason) {
        self.end(Outcome::Failed(Failure {
            kind,
            message,
            hint,
            finish,
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

    fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.news.push(Event::Text { text });
        }
    }

    fn announce_reasoning(&mut self, message: &Message) {
        let texts = message.parts.iter().filter_map(|part| match part {
            Part::Reasoning(reasoning) if !reasoning.text.is_empty() => Some(reasoning.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            self.news.push(Event::Reasoning { text });
        }
    }

    fn book(&mut self, usage: Usage, cause: &str) {
        let cost_usd = self.price.map(|price| price.cost(&usage));
        self.spent.usage.add(&usage);
        self.spent.cost_usd += cost_usd.unwrap_or_default();
        self.last_usage = Some(usage);
        self.news.push(Event::Usage {
            usage,
            cost_usd,
            cause: cause.to_owned(),
        });
    }
}

fn refusal_text(text: &str) -> String {
    if text.is_empty() {
        "The model refused to answer.".to_owned()
    } else {
        format!("The model refused: {text}")
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
