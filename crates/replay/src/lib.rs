//! OBS-2: replays a recorded session offline. The loop runs as it did, with the model's answers from the
//! recording and tool results from the log. The requests must match the recording byte for byte, and the
//! resulting messages must match the log.

mod past;
mod reel;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{Event, Message, Part, Role, SessionId};
use windlass_core::clock::Clock;
use windlass_core::compact::{CompactionPorts, Compactor, compact};
use windlass_core::dispatch::{CallConfig, Execution};
use windlass_core::hook::{Hooks, IncompleteWorkHook};
use windlass_core::log::{Entry, Exchange, Frame, History};
use windlass_core::middleware::Shrink;
use windlass_core::permission::{Mode, Policy};
use windlass_core::provider::Provider;
use windlass_core::run::{Config, Ports, run};
use windlass_core::text::difference;
use windlass_core::turn::{Limits, TurnInput};

use self::past::{Past, nobody};
pub use self::reel::{Difference, RecordedChoices, ReplayRecording};

/// Input of a replay.
pub struct Replay {
    /// The session.
    pub session: SessionId,
    /// Complete record of the session.
    pub entries: Vec<Entry>,
    /// The recorded exchanges.
    pub reel: Arc<ReplayRecording>,
    /// Limits of its turns.
    pub limits: Limits,
    /// Steps around every iteration.
    pub hooks: Hooks,
    /// Makes the history smaller.
    pub compactor: Option<Arc<dyn Compactor>>,
    /// Clock for timeouts.
    pub clock: Arc<dyn Clock>,
}

/// Creates the providers of a replay: like those of the session, but answering from the recording.
#[async_trait]
pub trait ReplayProviders: Send + Sync {
    /// Returns one provider for several configured names and models: each request goes to the one that `next` names.
    ///
    /// # Errors
    /// The error gives the reason there is none.
    async fn provider(&self, order: RecordedChoices) -> Result<Arc<dyn Provider>, String>;

    /// Returns the system prompt and tools of an exchange.
    ///
    /// # Errors
    /// The error gives the reason they are unknown.
    async fn frame(&self, exchange: &Exchange) -> Result<Frame, String>;
}

/// Result of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAgain {
    /// The user's message, on one line.
    pub prompt: String,
    /// Number of requests sent again.
    pub requests: usize,
    /// The outcome.
    pub verdict: ReplayVerdict,
}

/// Comparison of a replayed turn with the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// The turn is identical.
    Same,
    /// The turn was not recorded.
    NotRecorded,
    /// The replay ended before or in this turn, as requested.
    Stopped,
    /// The turn differs, with a description of the difference.
    Different(String),
}

/// One turn in the log.
struct Turn<'a> {
    /// Index of its first entry.
    begin: usize,
    messages: Vec<&'a Arc<Message>>,
    end: Option<&'a Event>,
}

impl Replay {
    /// Replays every turn, until one differs.
    pub async fn run(&self, players: &dyn ReplayProviders) -> Result<Vec<TurnAgain>, String> {
        let mut told = Vec::new();
        for turn in turns(&self.entries) {
            let again = match turn.messages.first() {
                Some(first) if first.is_summary() => self.summary(&turn, players).await?,
                _ => self.turn(&turn, players).await?,
            };
            let goes_on = matches!(again.verdict, ReplayVerdict::Same | ReplayVerdict::NotRecorded);
            told.push(again);
            if !goes_on {
                break;
            }
        }
        Ok(told)
    }

    async fn turn(&self, turn: &Turn<'_>, players: &dyn ReplayProviders) -> Result<TurnAgain, String> {
        let prompt = turn
            .messages
            .first()
            .map(|message| said(message))
            .unwrap_or_default();
        let ids: Vec<_> = turn.messages.iter().map(|message| &message.id).collect();
        let mut exchanges = self.reel.exchanges().iter().enumerate();
        let first =
            exchanges.find(|(_, exchange)| exchange.last.as_ref().is_some_and(|last| ids.contains(&last)));
        let told = |requests, verdict| TurnAgain {
            prompt: prompt.clone(),
            requests,
            verdict,
        };
        let Some((begin, first)) = first else {
            return Ok(told(0, ReplayVerdict::NotRecorded));
        };
        if self.reel.is_over() {
            return Ok(told(0, ReplayVerdict::Stopped));
        }
        let provider = players.provider(RecordedChoices::new(&self.reel, begin)).await?;
        let frame = players.frame(first).await?;
        let past = Arc::new(Past::new(&turn.messages, turn.end));
        let mut history = History::read(&self.entries[..turn.begin]).into_messages();
        history.extend(turn.messages.first().map(|message| Arc::clone(message)));
        let before = self.reel.played();
        self.drive(&provider, &frame, &past, history).await;
        let requests = self.reel.played() - before;
        if self.reel.is_over() {
            return Ok(told(requests, ReplayVerdict::Stopped));
        }
        let has_answer = matches!(turn.end, Some(Event::Final { .. }));
        let logged = turn.messages.get(1..).unwrap_or_default();
        Ok(told(requests, self.verdict(logged, &past, has_answer)))
    }

    /// Replays a summary that the user asked for between two turns.
    async fn summary(&self, turn: &Turn<'_>, players: &dyn ReplayProviders) -> Result<TurnAgain, String> {
        let told = |requests, verdict| TurnAgain {
            prompt: "/compact".to_owned(),
            requests,
            verdict,
        };
        if self.reel.is_over() {
            return Ok(told(0, ReplayVerdict::Stopped));
        }
        // A copied session has summaries whose requests are recorded with the original only.
        let later = |exchange: &Exchange| self.is_after(turn.begin, exchange);
        let upcoming = self.reel.upcoming();
        let Some((begin, _)) = upcoming.filter(|(_, exchange)| !later(exchange)) else {
            return Ok(told(0, ReplayVerdict::NotRecorded));
        };
        let provider = players.provider(RecordedChoices::new(&self.reel, begin)).await?;
        let history = History::read(&self.entries[..turn.begin]).into_messages();
        let past = Past::new(&turn.messages, turn.end);
        let cancel = CancellationToken::new();
        self.reel.stop_with(cancel.clone());
        let before = self.reel.played();
        let ports = CompactionPorts {
            provider: &*provider,
            compactor: self.compactor.as_deref(),
            hooks: &self.hooks,
            clock: &self.clock,
            events: &past,
            cancel: &cancel,
        };
        let limit = self.limits.context_prep_timeout;
        let made = compact(&ports, &history, Shrink::FULL, limit).await;
        let requests = self.reel.played() - before;
        if self.reel.is_over() {
            return Ok(told(requests, ReplayVerdict::Stopped));
        }
        let has_answer = matches!(turn.end, Some(Event::Final { .. }));
        let verdict = match made {
            Err(why) if has_answer => ReplayVerdict::Different(format!("there is no summary: {why}")),
            _ => self.verdict(&turn.messages, &past, has_answer),
        };
        Ok(told(requests, verdict))
    }

    /// Returns true if a request ended with a message that came after the entry with this index.
    fn is_after(&self, begin: usize, exchange: &Exchange) -> bool {
        let rest = self.entries.get(begin + 1..).unwrap_or_default();
        rest.iter().any(|entry| {
            matches!(&entry.event, Event::Message { message } if Some(&message.id) == exchange.last.as_ref())
        })
    }

    async fn drive(
        &self,
        provider: &Arc<dyn Provider>,
        frame: &Frame,
        past: &Arc<Past>,
        history: Vec<Arc<Message>>,
    ) {
        let cancel = CancellationToken::new();
        self.reel.stop_with(cancel.clone());
        let mut config = Config {
            prefix: Arc::new(frame.prefix()),
            max_output: frame.max_output,
            limits: self.limits.clone(),
            calls: CallConfig {
                tools: past.tools(&frame.tools),
                policy: Policy {
                    mode: Mode::Full,
                    ..Policy::default()
                },
                execution_mode: Execution::Sequential,
                timeout: Duration::from_secs(60),
                max_result_chars: None,
                retry_transient: false,
                ..CallConfig::default()
            },
            ..Config::default()
        };
        config.hooks.extend(&self.hooks);
        config.hooks.push(IncompleteWorkHook(Arc::clone(past) as _));
        let ports = Ports {
            provider: Arc::clone(provider),
            compactor: self.compactor.clone(),
            approver: nobody(),
            outputs: None,
            inbox: Arc::clone(past) as _,
            clock: Arc::clone(&self.clock),
            events: Arc::clone(past) as _,
            cancel,
            tasks: TaskTracker::new(),
        };
        let input = TurnInput {
            session: self.session.clone(),
            history,
            limits: self.limits.clone(),
            price: provider.model().price,
            provider: provider.name().to_owned(),
            model: provider.model().id.clone(),
        };
        run(input, &config, &ports).await;
    }

    /// Compares the messages of the turn with the log. A turn that was stopped is compared as far as it got.
    fn verdict(&self, logged: &[&Arc<Message>], past: &Past, has_answer: bool) -> ReplayVerdict {
        if has_answer && let Some(difference) = self.reel.difference() {
            return ReplayVerdict::Different(difference.to_string());
        }
        let again = past.messages();
        for (number, (was, is)) in logged.iter().zip(&again).enumerate() {
            let (before, now) = (essence(was), essence(is));
            if before != now {
                let (_, before, now) = difference(before.as_bytes(), now.as_bytes());
                return ReplayVerdict::Different(format!(
                    "new message {} of the turn differs from the log: recorded `{before}`, now `{now}`",
                    number + 1
                ));
            }
        }
        let (was, is) = (logged.len(), again.len());
        if has_answer && was != is {
            let text = format!("the turn has {is} new messages, but {was} in the log");
            return ReplayVerdict::Different(text);
        }
        ReplayVerdict::Same
    }
}

/// Returns the turns of a record, in order.
fn turns(entries: &[Entry]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let mut is_open = false;
    for (begin, entry) in entries.iter().enumerate() {
        match &entry.event {
            Event::Message { message } if !is_open && message.role == Role::User => {
                is_open = true;
                turns.push(Turn {
                    begin,
                    messages: vec![message],
                    end: None,
                });
            }
            Event::Message { message } if is_open => {
                let Some(turn) = turns.last_mut() else { continue };
                match turn.messages.iter_mut().find(|known| known.id == message.id) {
                    Some(known) => *known = message,
                    None => turn.messages.push(message),
                }
            }
            event if event.is_terminal() && is_open => {
                is_open = false;
                if let Some(turn) = turns.last_mut() {
                    turn.end = Some(event);
                }
            }
            _ => {}
        }
    }
    turns
}

/// Returns the parts of a message that must match, as JSON: everything except ids, times, the finish reason, and the
/// sizes of a summary, which are estimates that depend on the requests of the process so far.
fn essence(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Finish(_) => None,
        Part::Compaction(summary) => Some(Part::text(summary.summary.clone())),
        part => Some(part.clone()),
    };
    let parts: Vec<Part> = message.parts.iter().filter_map(part).collect();
    serde_json::to_string(&(message.role, parts)).unwrap_or_default()
}

fn said(message: &Message) -> String {
    let text = message.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let line = text.unwrap_or_default().lines().next().unwrap_or_default();
    line.chars().take(60).collect()
}
