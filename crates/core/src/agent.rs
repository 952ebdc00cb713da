//! The loop as a library: build an [`Agent`], give it an input, read its events or its answer.

mod builder;
mod stream;

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::builder::{AgentBuilder, CompactionConfig};
pub use self::stream::RunStream;
use self::stream::{ChannelSink, channel};
use crate::clock::Clock;
use crate::compact::Compactor;
use crate::event::{Event, FailureKind};
use crate::id::SessionId;
use crate::message::{FinishReason, Message, Part, Role};
use crate::model::Usage;
use crate::permission::Approver;
use crate::provider::Provider;
use crate::run::{Config, EmptyInbox, Ports, run_with_hooks};
use crate::tool::Outputs;
use crate::turn::TurnInput;

/// A model, tools and a conversation.
///
/// Each run is one turn, and the conversation continues from run to run. One turn runs at a time: a second
/// run waits for the first.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Arc<dyn Provider>,
    config: Config,
    approver: Arc<dyn Approver>,
    compactor: Option<Arc<dyn Compactor>>,
    outputs: Option<Arc<dyn Outputs>>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    conversation: Mutex<Vec<Arc<Message>>>,
    /// `None` when usage tracking is off.
    spent: Option<std::sync::Mutex<UsageSummary>>,
    tasks: TaskTracker,
}

/// Usage of an agent so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageSummary {
    /// Tokens of all model calls.
    pub usage: Usage,
    /// US dollars, for calls whose prices are known.
    pub cost_usd: f64,
    /// Turns run.
    pub turns: u64,
}

/// Reason a run produced no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The run was canceled.
    #[error("canceled")]
    Canceled,
    /// The run failed.
    #[error("{message}")]
    Failed {
        /// Reason, for programs.
        reason: FailureKind,
        /// Reason, for people.
        message: String,
        /// The finish reason.
        finish: FinishReason,
    },
}

impl Agent {
    /// Starts building an agent around a model.
    pub fn builder(provider: impl Into<Arc<dyn Provider>>) -> AgentBuilder {
        AgentBuilder::new(provider.into())
    }

    /// Runs one turn and returns its answer: [`Agent::run_stream`] read to its first `final`.
    ///
    /// # Errors
    /// Fails if the turn was canceled or failed.
    pub async fn run(&self, input: impl Into<String>) -> Result<String, RunError> {
        let mut stream = self.run_stream(input);
        while let Some(event) = stream.next().await {
            match event {
                Event::Final { content, .. } => return Ok(content),
                Event::Canceled { .. } => return Err(RunError::Canceled),
                Event::Failed {
                    reason,
                    message,
                    finish,
                    ..
                } => {
                    return Err(RunError::Failed {
                        reason,
                        message,
                        finish,
                    });
                }
                _ => {}
            }
        }
        // The task ends without a terminal event only when the runtime is shutting down.
        Err(RunError::Canceled)
    }

    /// Runs one turn and streams its events. Dropping the stream cancels the turn.
    ///
    /// Must be called inside a Tokio runtime.
    pub fn run_stream(&self, input: impl Into<String>) -> RunStream {
        let cancel = CancellationToken::new();
        let (sink, receiver) = channel();
        let shared = Arc::clone(&self.shared);
        let input = vec![Part::text(input.into())];
        tokio::spawn(shared.turn(input, sink, cancel.clone()));
        RunStream::new(receiver, cancel)
    }

    /// Returns the conversation so far.
    pub async fn history(&self) -> Vec<Arc<Message>> {
        self.shared.conversation.lock().await.clone()
    }

    /// Returns the usage so far; zero if usage tracking is off.
    pub fn usage(&self) -> UsageSummary {
        let spent = self.shared.spent.as_ref();
        spent.map_or_else(UsageSummary::default, |spent| {
            *spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        })
    }
}

impl Shared {
    async fn turn(self: Arc<Self>, input: Vec<Part>, sink: ChannelSink, cancel: CancellationToken) {
        let mut conversation = self.conversation.lock().await;
        let message = Message::new(&self.session, Role::User, input, self.clock.now());
        let events: Arc<ChannelSink> = Arc::new(sink);
        events.send(Event::Message {
            message: Arc::new(message.clone()),
        });
        conversation.push(Arc::new(message));
        let input = TurnInput {
            session: self.session.clone(),
            history: conversation.clone(),
            limits: self.config.limits.clone(),
            price: self.provider.model().price,
            provider: self.provider.name().to_owned(),
            model: self.provider.model().id.clone(),
        };
        let ports = self.ports(Arc::clone(&events), cancel);
        // The terminal event is held back until the conversation is updated, so that a caller who has seen it
        // finds the turn's messages there.
        let report = run_with_hooks(input, &self.config, &ports).await;
        report.facts.into_iter().for_each(|fact| events.send(fact));
        events.send(report.outcome.event());
        *conversation = report.history;
        if let Some(spent) = &self.spent {
            let mut spent = spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            spent.usage.add(&report.usage);
            spent.cost_usd += report.cost_usd.unwrap_or_default();
            spent.turns += 1;
        }
        drop(conversation);
        events.release();
    }

    fn ports(&self, events: Arc<ChannelSink>, cancel: CancellationToken) -> Ports {
        Ports {
            provider: Arc::clone(&self.provider),
            compactor: self.compactor.clone(),
            approver: Arc::clone(&self.approver),
            outputs: self.outputs.clone(),
            inbox: Arc::new(EmptyInbox),
            clock: Arc::clone(&self.clock),
            events,
            cancel,
            tasks: self.tasks.clone(),
        }
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
