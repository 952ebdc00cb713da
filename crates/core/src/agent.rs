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
use crate::dispatch::{Dispatch, Execution};
use crate::event::{Event, FailureKind};
use crate::id::SessionId;
use crate::message::{FinishReason, Message, Part, Role};
use crate::middleware::Middleware;
use crate::model::Usage;
use crate::permission::{Approver, PermissionHook, Policy};
use crate::provider::{Prefix, Provider, ToolChoice};
use crate::run::{Deps, EmptyInbox, IncompleteWork, run};
use crate::tool::{ExecutionContext, Outputs, ToolSet};
use crate::turn::{Limits, TurnInput};

/// A model, tools and a conversation.
///
/// Each run is one turn; the conversation goes on from run to run. One turn runs at a time: a second
/// run waits for the first.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Arc<dyn Provider>,
    tools: ToolSet,
    prefix: Arc<Prefix>,
    choices: Choices,
    guards: Guards,
    clock: Arc<dyn Clock>,
    session: SessionId,
    conversation: Mutex<Vec<Arc<Message>>>,
    spent: std::sync::Mutex<UsageSummary>,
    tasks: TaskTracker,
}

/// Plain settings of an agent.
#[derive(Clone, Default)]
struct Choices {
    limits: Limits,
    tool_choice: ToolChoice,
    max_output: Option<u64>,
    max_result_chars: Option<usize>,
    retry_transient: bool,
    execution_mode: Execution,
    execution: Arc<ExecutionContext>,
    policy: Policy,
    track_usage: bool,
}

/// What has a say in a run.
struct Guards {
    hook: Option<Arc<dyn PermissionHook>>,
    approver: Arc<dyn Approver>,
    incomplete: Option<Arc<dyn IncompleteWork>>,
    compactor: Option<Arc<dyn Compactor>>,
    middleware: Vec<Arc<dyn Middleware>>,
    outputs: Option<Arc<dyn Outputs>>,
}

/// What an agent used so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageSummary {
    /// Tokens of all model calls.
    pub usage: Usage,
    /// US dollars, for calls whose prices are known.
    pub cost_usd: f64,
    /// Turns run.
    pub turns: u64,
}

/// Why a run gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It was canceled.
    #[error("canceled")]
    Canceled,
    /// It failed.
    #[error("{message}")]
    Failed {
        /// Why, for programs.
        reason: FailureKind,
        /// Why, for people.
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
    /// When the turn was canceled or failed.
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

    /// The conversation so far.
    pub async fn history(&self) -> Vec<Arc<Message>> {
        self.shared.conversation.lock().await.clone()
    }

    /// What the agent used so far; stays zero when usage tracking is off.
    pub fn usage(&self) -> UsageSummary {
        *self
            .shared
            .spent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
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
            limits: self.choices.limits.clone(),
            price: self.provider.model().price,
            provider: self.provider.name().to_owned(),
            model: self.provider.model().id.clone(),
        };
        let deps = self.deps(Arc::clone(&events), cancel);
        // The terminal event is held back until the conversation is in place, so that whoever has
        // seen it finds the turn's messages there.
        let report = run(input, &deps).await;
        *conversation = report.history;
        if self.choices.track_usage {
            let mut spent = self
                .spent
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            spent.usage.add(&report.usage);
            spent.cost_usd += report.cost_usd.unwrap_or_default();
            spent.turns += 1;
        }
        drop(conversation);
        events.release();
    }

    fn deps(&self, events: Arc<ChannelSink>, cancel: CancellationToken) -> Deps<'_> {
        Deps {
            provider: &*self.provider,
            prefix: Arc::clone(&self.prefix),
            tool_choice: self.choices.tool_choice.clone(),
            max_output: self.choices.max_output,
            dispatch: Dispatch {
                tools: &self.tools,
                hook: self.guards.hook.as_deref(),
                policy: &self.choices.policy,
                approver: Arc::clone(&self.guards.approver),
                execution: Arc::clone(&self.choices.execution),
                execution_mode: self.choices.execution_mode,
                timeout: std::time::Duration::from_secs(120),
                max_result_chars: self.choices.max_result_chars,
                outputs: self.guards.outputs.clone(),
                retry_transient: self.choices.retry_transient,
                tasks: self.tasks.clone(),
            },
            middleware: &self.guards.middleware,
            incomplete: self.guards.incomplete.as_deref(),
            compactor: self.guards.compactor.as_deref(),
            inbox: &EmptyInbox,
            clock: Arc::clone(&self.clock),
            events,
            cancel,
        }
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
