//! Keeps a session's conversation within its model's context window: token counting, pressure, the configured
//! strategy, and its state between turns.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::compress::Booker;
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_core::clock::Clock;
use windlass_core::compact::{
    Compactor, CompleteFocus, Deferred, FocusConfig, FocusState, OpenFacts, PAIR_SUMMARY, PairSummaries,
    Parts, Pressure, SidequestTurns, StartFocus, Strategy, Subgoals, UsageReport, extract, validate,
};
use windlass_core::event::Event;
use windlass_core::hook::{Hook, Hooks, MiddlewareHook, TurnEnd, TurnHook};
use windlass_core::id::SessionId;
use windlass_core::log::{Booking, Store};
use windlass_core::message::Message;
use windlass_core::model::Usage;
use windlass_core::provider::Provider;
use windlass_core::tokens::Gauge;
use windlass_core::tool::{ToolSet, erase};
use windlass_providers::tokens::counter_for;
use windlass_tools::{BackgroundJobs, TodoList};

use windlass_config::settings::{ContextSettings, Settings};
use windlass_config::{Problem, ProblemKind};

/// Number of turns between two requests that ask a model which outputs can be evicted.
const SIDEQUEST_TURNS: u32 = 10;

/// A summarizer's timeout is this much shorter than the whole compaction's, to leave time for the remaining
/// steps.
const MARGIN: Duration = Duration::from_secs(5);

/// The state of a session's context. One per session.
#[derive(Clone)]
pub struct ContextParts {
    strategy: Strategy,
    parts: Parts,
    has_sidequest: bool,
    has_pairs: bool,
    soft: f64,
    hard: f64,
    tasks: TaskTracker,
    cancel: CancellationToken,
    clock: Arc<dyn Clock>,
    books: Books,
    /// True once the state of an earlier process has been restored.
    is_restored: Arc<Mutex<bool>>,
    pins: Pins,
}

/// Accounts for the usage of background model calls.
#[derive(Clone)]
struct Books {
    store: Option<Arc<dyn Store>>,
    session: SessionId,
}

impl Books {
    fn book(&self, provider: &dyn Provider, usage: Usage, cause: &str, clock: &dyn Clock) {
        let Some(store) = self.store.clone() else { return };
        let (session, model) = (self.session.clone(), provider.model());
        let booking = Booking {
            time: clock.now(),
            provider: provider.name().to_owned(),
            model: model.id.clone(),
            cause: cause.to_owned(),
            usage,
            cost_usd: model.price.map(|price| price.cost(&usage)),
        };
        tokio::spawn(async move {
            let _ = store.book(&session, booking).await;
        });
    }
}

/// CTX-15: open work that is not part of the conversation.
struct Open {
    todos: TodoList,
    background: BackgroundJobs,
    /// Messages that the user pinned.
    pins: Pins,
}

type Pins = Arc<Mutex<Vec<String>>>;

impl OpenFacts for Open {
    fn facts(&self) -> Vec<(String, String)> {
        let list = |items: Vec<String>| {
            items
                .iter()
                .map(|item| format!("- {item}"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let open = [
            ("open todos", self.todos.open()),
            ("running in the background", self.background.running()),
        ];
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pins = pins
            .into_iter()
            .map(|text| ("pinned by the user".to_owned(), text));
        open.into_iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(what, items)| (what.to_owned(), list(items)))
            .chain(pins)
            .collect()
    }
}

impl ContextParts {
    /// Creates the context parts that the settings ask for.
    pub fn new(
        settings: &Settings,
        open: (TodoList, BackgroundJobs),
        store: Option<Arc<dyn Store>>,
        session: &SessionId,
    ) -> Result<Self, Problem> {
        let context = &settings.context;
        let wrong = |error: windlass_core::compact::InvalidStrategy| {
            Problem::new(ProblemKind::Config, format!("memory: {error}"))
        };
        let strategy = strategy(context);
        validate(strategy, context.sidequest).map_err(wrong)?;
        let focus = FocusConfig {
            auto_consolidate_min_window: u32::try_from(context.focus_window).unwrap_or(u32::MAX),
        };
        focus.validate().map_err(wrong)?;
        let (todos, background) = open;
        let pins = Pins::default();
        Ok(Self {
            strategy,
            parts: Parts {
                keep_recent: context.keep_recent_messages,
                limit: context
                    .prep_timeout
                    .saturating_sub(MARGIN)
                    .max(context.prep_timeout / 2),
                standing: Arc::new(Open {
                    todos,
                    background,
                    pins: Arc::clone(&pins),
                }),
                gauge: Arc::new(Gauge::new(counter_for)),
                deferred: context.pair_summaries.then(|| Arc::new(Deferred::default())),
                subgoals: Arc::default(),
                focus: Arc::new(FocusState::new(focus)),
                sidequest: Arc::new(SidequestTurns::new(SIDEQUEST_TURNS)),
            },
            has_sidequest: context.sidequest || strategy == Strategy::ModelEviction,
            has_pairs: context.pair_summaries,
            soft: context.soft_threshold,
            hard: context.hard_threshold,
            tasks: TaskTracker::new(),
            cancel: CancellationToken::new(),
            clock: windlass_config::environment::clock(),
            books: Books {
                store,
                session: session.clone(),
            },
            is_restored: Arc::default(),
            pins,
        })
    }

    /// Rereads the pressure thresholds; the strategy is chosen once per session.
    pub fn adjust(&mut self, context: &ContextSettings) {
        self.soft = context.soft_threshold;
        self.hard = context.hard_threshold;
        self.parts.keep_recent = context.keep_recent_messages;
        if strategy(context) == Strategy::None {
            self.strategy = Strategy::None;
        }
    }

    /// Returns the compactor; `None` if compaction is off.
    pub fn compactor(&self) -> Option<Arc<dyn Compactor>> {
        self.strategy.compactor(self.parts.clone())
    }

    /// Returns the hooks that watch the context of a turn.
    pub fn hooks(&self, provider: &Arc<dyn Provider>) -> Hooks {
        let mut hooks = self.pressure();
        if let (true, Some(deferred)) = (self.has_pairs, &self.parts.deferred) {
            hooks.push(MiddlewareHook(Arc::new(PairSummaries {
                deferred: Arc::clone(deferred),
                provider: Arc::clone(provider),
                clock: Arc::clone(&self.clock),
                tasks: self.tasks.clone(),
                cancel: self.cancel.clone(),
                report: self.report(provider, PAIR_SUMMARY),
            })));
        }
        let has_between = matches!(
            self.strategy,
            Strategy::Subgoal | Strategy::SubgoalByGain | Strategy::Focus
        );
        if has_between {
            hooks.push(BetweenTurns {
                context: self.clone(),
                provider: Arc::clone(provider),
            });
        }
        hooks
    }

    /// Returns the same hooks without those that call models in the background.
    pub fn pressure(&self) -> Hooks {
        let mut hooks = Hooks::new();
        if self.strategy == Strategy::None {
            return hooks;
        }
        if self.has_sidequest {
            hooks.push(MiddlewareHook(Arc::clone(&self.parts.sidequest) as _));
        }
        hooks.push(MiddlewareHook(Arc::new(Pressure {
            soft: self.soft,
            hard: self.hard,
            gauge: Arc::clone(&self.parts.gauge),
            deferred: self.parts.deferred.clone(),
        })));
        hooks
    }

    /// Returns the tools that the strategy needs.
    pub fn add_tools(&self, tools: &mut ToolSet) {
        if self.strategy == Strategy::Focus {
            tools.insert(erase(StartFocus(Arc::clone(&self.parts.focus))));
            tools.insert(erase(CompleteFocus(Arc::clone(&self.parts.focus))));
        }
    }

    /// Returns the store of the session.
    pub fn store(&self) -> Option<Arc<dyn Store>> {
        self.books.store.clone()
    }

    /// Restores the state of an earlier process from the conversation, and the pins.
    pub fn restore(&self, history: &[Arc<Message>], pins: &[String]) {
        *self.pins.lock().unwrap_or_else(PoisonError::into_inner) = pins.to_vec();
        let mut is_restored = self.is_restored.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_restored, true) {
            self.parts.focus.restore(history);
        }
    }

    /// Counts the tokens of a text with the counter of the current model.
    pub fn count(&self) -> Arc<dyn Fn(&str) -> u64 + Send + Sync> {
        let gauge = Arc::clone(&self.parts.gauge);
        Arc::new(move |text| gauge.text(text))
    }

    /// Records the usage of a model call outside the turn.
    pub fn booker(&self, cause: &'static str) -> Booker {
        let (books, clock) = (self.books.clone(), Arc::clone(&self.clock));
        Arc::new(move |provider, usage| books.book(provider, usage, cause, &*clock))
    }

    fn report(&self, provider: &Arc<dyn Provider>, cause: &'static str) -> UsageReport {
        let (book, provider) = (self.booker(cause), Arc::clone(provider));
        Arc::new(move |usage| book(&*provider, usage))
    }

    /// Returns the current subgoal, if one was detected.
    pub fn subgoal(&self) -> Option<String> {
        self.parts.subgoals.active()
    }

    /// Passes the subgoals on, if the strategy has any.
    pub fn observed(&self, take: impl FnOnce(Arc<Subgoals>)) {
        if matches!(self.strategy, Strategy::Subgoal | Strategy::SubgoalByGain) {
            take(Arc::clone(&self.parts.subgoals));
        }
    }

    /// Stops background work.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Creates the strategy that the settings choose.
fn strategy(context: &ContextSettings) -> Strategy {
    if context.auto_compact {
        context.strategy
    } else {
        Strategy::None
    }
}

/// Extracts subgoals and consolidates knowledge between turns.
struct BetweenTurns {
    context: ContextParts,
    provider: Arc<dyn Provider>,
}

impl Hook for BetweenTurns {
    fn name(&self) -> &str {
        "between turns"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for BetweenTurns {
    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        let context = &self.context;
        if context.strategy == Strategy::Focus {
            context.parts.focus.turn_ended();
            context.parts.focus.consolidate_in(&context.tasks);
            return Vec::new();
        }
        let (subgoals, provider) = (Arc::clone(&context.parts.subgoals), Arc::clone(&self.provider));
        let (clock, cancel) = (Arc::clone(&context.clock), context.cancel.clone());
        let (book, history) = (context.booker("subgoal"), end.history.to_vec());
        context.tasks.spawn(async move {
            if let Some(usage) = extract(&subgoals, &history, &*provider, clock, cancel).await {
                book(&*provider, usage);
            }
        });
        Vec::new()
    }
}
