//! The loop.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::compact::{Compactor, compact};
use crate::context::Context;
use crate::dispatch::{Calling, Dispatch, dispatch};
use crate::event::{Event, EventSink, SinkError};
use crate::message::Message;
use crate::middleware::{Middleware, Verdict, run_pipeline};
use crate::provider::{Prefix, Provider, ToolChoice};
use crate::reply::reply;
use crate::turn::{Action, Turn, TurnInput, TurnReport};

/// Everything a turn needs from outside, as small ports.
pub struct Deps<'a> {
    /// The model.
    pub provider: &'a dyn Provider,
    /// System prompt and tools, fixed for the turn.
    pub prefix: Arc<Prefix>,
    /// Whether the model may or must call tools.
    pub tool_choice: ToolChoice,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
    /// How calls are admitted and run.
    pub dispatch: Dispatch<'a>,
    /// Steps around every iteration, in order.
    pub middleware: &'a [Arc<dyn Middleware>],
    /// Has a say before an answer is accepted.
    pub incomplete: Option<&'a dyn IncompleteWork>,
    /// Makes the history smaller; `None` when compaction is off.
    pub compactor: Option<&'a dyn Compactor>,
    /// What the user says meanwhile.
    pub inbox: &'a dyn Inbox,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Stops the turn.
    pub cancel: CancellationToken,
}

/// Knows whether an answer comes too early. Must not have effects.
#[async_trait]
pub trait IncompleteWork: Send + Sync {
    /// A prompt that sends the model back to work, or `None` to accept the answer.
    async fn prompt(&self, answer: &str) -> Option<String>;
}

/// Messages the user sends while a turn runs. Taking must not wait for new ones.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// All pending messages, oldest first.
    async fn take(&self) -> Vec<Message>;
}

/// An inbox nobody writes to.
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
/// Holds no state between calls and owns no session, storage or terminal. Every state event is
/// recorded before the next action, so what is acted on is what the record says.
pub async fn run(input: TurnInput, deps: &Deps<'_>) -> TurnReport {
    let limit = input.limits.context_prep_timeout;
    let mut turn = Turn::new(input);
    let mut context = Context::default();
    loop {
        if let Err(error) = record(deps, turn.news()).await {
            turn.abort(&error);
        }
        match turn.advance() {
            Action::Listen => turn.heard(deps.inbox.take().await),
            Action::Consult(stage) => {
                let view = turn.view(deps.provider.model(), &deps.prefix);
                let verdict = within(deps, limit, run_pipeline(deps.middleware, stage, view)).await;
                turn.consulted(verdict.unwrap_or_else(Verdict::proceed));
            }
            Action::Ask(ask) => turn.answered(reply(deps, &mut context, turn.history(), ask).await),
            Action::Call(calls) => turn.settled(dispatch(&calling(deps), calls).await),
            Action::Shrink(shrink) => {
                let smaller = compact(deps, turn.history(), shrink, limit).await;
                turn.shrunk(smaller);
            }
            Action::Review(answer) => turn.reviewed(review(deps, &answer).await),
            Action::Done(outcome) => {
                let mut report = turn.report(outcome);
                report.context.context_max_tokens = deps.provider.model().context_window;
                report.context.repairs = context.repairs();
                return report;
            }
        }
    }
}

fn calling<'a>(deps: &'a Deps<'a>) -> Calling<'a> {
    Calling {
        dispatch: &deps.dispatch,
        clock: Arc::clone(&deps.clock),
        events: Arc::clone(&deps.events),
        cancel: deps.cancel.clone(),
    }
}

/// CTX-12: what comes of `work`, unless it takes too long.
async fn within<T>(deps: &Deps<'_>, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = deps.clock.sleep(limit) => None,
    }
}

async fn record(deps: &Deps<'_>, news: Vec<Event>) -> Result<(), SinkError> {
    for event in news {
        deps.events.record(event).await?;
    }
    Ok(())
}

async fn review(deps: &Deps<'_>, answer: &str) -> Option<String> {
    deps.incomplete?.prompt(answer).await
}
