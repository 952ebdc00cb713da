//! The loop.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::compact::{CompactionPorts, Compactor, compact};
use crate::context::Context;
use crate::dispatch::{CallConfig, Calls, dispatch};
use crate::event::{Event, EventSink, FailureKind, SinkError};
use crate::hook::{Hooks, TurnAction, TurnEnd};
use crate::message::{Message, Part, Role};
use crate::permission::Approver;
use crate::provider::{Prefix, Provider, ToolChoice};
use crate::reply::reply;
use crate::tool::{CallModel, Outputs};
use crate::turn::{Action, Limits, Turn, TurnInput, TurnReport};

/// The settings of a turn. They do not change while it runs.
#[derive(Clone, Default)]
pub struct Config {
    /// System prompt and tool list.
    pub prefix: Arc<Prefix>,
    /// Rule for calling tools: free, required or forbidden.
    pub tool_choice: ToolChoice,
    /// Maximum number of tokens of a reply.
    pub max_output: Option<u64>,
    /// Limits of the turn.
    pub limits: Limits,
    /// Tools, permissions and limits of calls.
    pub calls: CallConfig,
    /// The hooks, in order.
    pub hooks: Hooks,
}

/// The connections of a turn to the outside.
#[derive(Clone)]
pub struct Ports {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// Compacts the history; `None` if compaction is off.
    pub compactor: Option<Arc<dyn Compactor>>,
    /// Asks a person for approval.
    pub approver: Arc<dyn Approver>,
    /// Stores the whole of a result that is too long; `None` if the rest is discarded.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Messages that the user sends meanwhile.
    pub inbox: Arc<dyn Inbox>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Receiver of the events.
    pub events: Arc<dyn EventSink>,
    /// Stops the turn.
    pub cancel: CancellationToken,
    /// Holds abandoned calls, so that a program can wait for them to end before it exits.
    pub tasks: TaskTracker,
}

/// Checks whether an answer comes too early. Must not have effects.
#[async_trait]
pub trait IncompleteWork: Send + Sync {
    /// Returns a prompt that sends the model back to work, or `None` to accept the answer.
    async fn prompt(&self, answer: &str) -> Option<String>;
}

/// Messages that the user sends while a turn runs. Taking them must not wait for new ones.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Takes all pending messages, oldest first.
    async fn take(&self) -> Vec<Message>;
}

/// An inbox that is always empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyInbox;

#[async_trait]
impl Inbox for EmptyInbox {
    async fn take(&self) -> Vec<Message> {
        Vec::new()
    }
}

/// Runs one turn: from the pending input until the model has nothing left to do.
///
/// Holds no state between calls and owns no session, storage or terminal. Every state event is recorded
/// before the next action, so the record is never behind.
pub async fn run(input: TurnInput, config: &Config, ports: &Ports) -> TurnReport {
    let limit = config.limits.context_prep_timeout;
    let mut turn = Turn::new(input);
    let mut context = Context::default();
    let model = CallModel::new(Arc::clone(&ports.provider));
    loop {
        if let Err(error) = record(ports, turn.news()).await {
            turn.abort(&error);
        }
        match turn.advance() {
            Action::Listen => turn.heard(ports.inbox.take().await),
            Action::Consult(stage) => {
                let view = turn.view(ports.provider.model(), &config.prefix);
                let (verdict, warnings) = config.hooks.iteration(&*ports.clock, stage, view, limit).await;
                warn(&*ports.events, warnings).await;
                turn.consulted(verdict);
            }
            Action::Ask(ask) => {
                let answer = reply(config, ports, &mut context, turn.history(), ask).await;
                turn.billed_to(ports.provider.name(), ports.provider.model());
                turn.answered(answer);
            }
            Action::Call(calls) => {
                turn.settled(dispatch(&Calls::new(config, ports, &model), calls).await);
            }
            Action::Shrink(shrink) => {
                let smaller = compact(
                    &CompactionPorts::new(config, ports),
                    turn.history(),
                    shrink,
                    limit,
                )
                .await;
                turn.shrunk(smaller);
            }
            Action::Review(answer) => {
                let (prompt, warnings) = config
                    .hooks
                    .before_answer(&*ports.clock, &ports.cancel, &answer)
                    .await;
                warn(&*ports.events, warnings).await;
                turn.reviewed(prompt);
            }
            Action::Done(outcome) => {
                let mut report = turn.report(outcome);
                report.context.context_max_tokens = ports.provider.model().context_window;
                report.context.repairs = context.repairs();
                return report;
            }
        }
    }
}

/// Runs one turn with its hooks around it: [`TurnHook::before_turn`] may add fragments or stop the turn, and
/// [`TurnHook::turn_ended`] leaves facts in the report.
///
/// [`TurnHook::before_turn`]: crate::hook::TurnHook::before_turn
/// [`TurnHook::turn_ended`]: crate::hook::TurnHook::turn_ended
pub async fn run_with_hooks(mut input: TurnInput, config: &Config, ports: &Ports) -> TurnReport {
    let (action, warnings) = config
        .hooks
        .before_turn(&*ports.clock, &ports.cancel, &input.history)
        .await;
    let mut news: Vec<Event> = warnings
        .into_iter()
        .map(|message| Event::Warning { message })
        .collect();
    let mut report = match action {
        TurnAction::Stop(reason) => {
            let _ = record(ports, news).await;
            Turn::new(input).stopped(FailureKind::Stopped, reason)
        }
        TurnAction::Start(fragments) => {
            if !fragments.is_empty() {
                let parts = fragments.into_iter().map(Part::Context).collect();
                let message = Message::new(&input.session, Role::User, parts, ports.clock.now());
                let message = Arc::new(message);
                input.history.push(Arc::clone(&message));
                news.push(Event::Message { message });
            }
            match record(ports, news).await {
                Ok(()) => run(input, config, ports).await,
                Err(error) => Turn::new(input).stopped(FailureKind::Log, error.to_string()),
            }
        }
    };
    let end = TurnEnd {
        history: &report.history,
        outcome: &report.outcome,
    };
    report.facts = config.hooks.turn_ended(&*ports.clock, &end).await;
    report
}

/// Reports hooks that did not answer. The turn finds a broken record at its next step.
pub(crate) async fn warn(events: &dyn EventSink, warnings: Vec<String>) {
    for message in warnings {
        let _ = events.record(Event::Warning { message }).await;
    }
}

async fn record(ports: &Ports, news: Vec<Event>) -> Result<(), SinkError> {
    for event in news {
        ports.events.record(event).await?;
    }
    Ok(())
}
