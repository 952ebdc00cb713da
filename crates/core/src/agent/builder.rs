//! Configuration of an agent.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::{Agent, Shared};
use crate::clock::Clock;
use crate::compact::{Compactor, Parts, Pressure, Strategy, Summarize};
use crate::dispatch::Execution;
use crate::hook::{Hook, IncompleteWorkHook, MiddlewareHook, PermissionRuleHook};
use crate::id::SessionId;
use crate::message::Message;
use crate::middleware::Middleware;
use crate::model::{Model, ModelRegistry};
use crate::permission::{Approver, NobodyToAsk, PermissionHook, Policy};
use crate::provider::{Prefix, Provider, ProviderEvent, Request, ToolChoice};
use crate::run::{Config, IncompleteWork};
use crate::tool::{ExecutionContext, Outputs, Tool, ToolSet, ToolSpec};
use crate::turn::{Limits, OnMaxIterations};

/// Configuration of compaction.
#[derive(Debug, Clone, Copy)]
pub struct CompactionConfig {
    /// Share of the model's context window that starts a compaction.
    pub threshold: f64,
    /// Number of newest messages that stay unchanged.
    pub keep_recent: usize,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            threshold: Pressure::default().hard,
            keep_recent: Summarize::default().keep_recent,
        }
    }
}

/// Builds an [`Agent`]. Everything but the model has a default.
pub struct AgentBuilder {
    provider: Arc<dyn Provider>,
    config: Config,
    system: String,
    approver: Option<Arc<dyn Approver>>,
    compactor: Option<Arc<dyn Compactor>>,
    outputs: Option<Arc<dyn Outputs>>,
    compaction: Option<CompactionConfig>,
    tracks_usage: bool,
    clock: Arc<dyn Clock>,
    history: Vec<Arc<Message>>,
}

impl AgentBuilder {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            config: Config::default(),
            system: String::new(),
            approver: None,
            compactor: None,
            outputs: None,
            compaction: Some(CompactionConfig::default()),
            tracks_usage: true,
            clock: crate::clock::system(),
            history: Vec::new(),
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool<T: Tool>(mut self, tool: T) -> Self {
        self.config.calls.tools = std::mem::take(&mut self.config.calls.tools).with(tool);
        self
    }

    /// Uses these tools instead of those added so far.
    #[must_use]
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.config.calls.tools = tools;
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// Sets the iteration limit of a turn. Default 200.
    #[must_use]
    pub fn max_iterations(mut self, limit: u32) -> Self {
        self.config.limits.max_iterations = limit;
        self
    }

    /// Sets the behavior at the iteration limit.
    #[must_use]
    pub fn on_max_iterations(mut self, choice: OnMaxIterations) -> Self {
        self.config.limits.on_max_iterations = choice;
        self
    }

    /// Sets all limits at once.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets whether the model may, must or must not call tools.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.config.tool_choice = choice;
        self
    }

    /// Sets the maximum number of tokens of a reply.
    #[must_use]
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.config.max_output = Some(tokens);
        self
    }

    /// Configures compaction; `None` turns it off.
    #[must_use]
    pub fn compaction(mut self, config: Option<CompactionConfig>) -> Self {
        self.compaction = config;
        self
    }

    /// Replaces the default compactor, which summarizes.
    #[must_use]
    pub fn compactor(mut self, compactor: impl Compactor + 'static) -> Self {
        self.compactor = Some(Arc::new(compactor));
        self
    }

    /// Sets the maximum number of characters of a tool's output in the context; `None` for no limit.
    #[must_use]
    pub fn output_cap(mut self, characters: Option<usize>) -> Self {
        self.config.calls.max_result_chars = characters;
        self
    }

    /// Stores the output beyond the limit. Without a store, that part is lost.
    #[must_use]
    pub fn outputs(mut self, outputs: Arc<dyn Outputs>) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// Sets whether a read-only call is retried once after a transient error. On by default.
    #[must_use]
    pub fn retry_transient(mut self, on: bool) -> Self {
        self.config.calls.retry_transient = on;
        self
    }

    /// Sets which calls of one reply may overlap.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> Self {
        self.config.calls.execution_mode = execution;
        self
    }

    /// Sets the folder and environment that tools run in.
    #[must_use]
    pub fn execution_context(mut self, context: ExecutionContext) -> Self {
        self.config.calls.execution = Arc::new(context);
        self
    }

    /// Sets the rules and the mode that decide about calls.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.config.calls.policy = policy;
        self
    }

    /// Looks the model's limits and prices up here instead of asking the provider.
    #[must_use]
    pub fn model_registry(mut self, registry: &dyn ModelRegistry) -> Self {
        if let Some(model) = registry.lookup(&self.provider.model().id) {
            self.provider = Arc::new(Described {
                provider: self.provider,
                model,
            });
        }
        self
    }

    /// Sets whether [`Agent::usage`] counts. On by default.
    #[must_use]
    pub fn usage_tracking(mut self, on: bool) -> Self {
        self.tracks_usage = on;
        self
    }

    /// Adds a hook that judges calls. It can deny a call, or answer a permission request of the rules; it
    /// cannot lift a denial.
    #[must_use]
    pub fn permission_hook(mut self, hook: impl PermissionHook + 'static) -> Self {
        self.config.hooks.push(PermissionRuleHook(Arc::new(hook)));
        self
    }

    /// Sets the approver that asks a person. Without one, every permission request is denied.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Adds a check that runs before an answer is accepted.
    #[must_use]
    pub fn incomplete_work(mut self, hook: impl IncompleteWork + 'static) -> Self {
        self.config.hooks.push(IncompleteWorkHook(Arc::new(hook)));
        self
    }

    /// Adds a middleware around every iteration, after those added before.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.config.hooks.push(MiddlewareHook(Arc::new(middleware)));
        self
    }

    /// Adds a hook after those added before.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.config.hooks.push(hook);
        self
    }

    /// Replaces the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Continues an earlier conversation.
    #[must_use]
    pub fn history(mut self, history: Vec<Arc<Message>>) -> Self {
        self.history = history;
        self
    }

    /// Builds the agent.
    pub fn build(mut self) -> Agent {
        if let Some(config) = self.compaction {
            let parts = Parts {
                keep_recent: config.keep_recent,
                ..Parts::default()
            };
            let pressure = Pressure {
                hard: config.threshold,
                gauge: Arc::clone(&parts.gauge),
                ..Pressure::default()
            };
            if self.compactor.is_none() {
                self.compactor = Strategy::Summarize.compactor(parts);
            }
            self.config.hooks.push(MiddlewareHook(Arc::new(pressure)));
        } else {
            self.compactor = None;
        }
        let session = self
            .history
            .last()
            .map_or_else(SessionId::generate, |message| message.session_id.clone());
        let prefix = Prefix {
            system: self.system,
            tools: self.config.calls.tools.specs(),
            ..Prefix::default()
        };
        self.config.prefix = Arc::new(prefix);
        self.config.calls.policy.attended |= self.approver.is_some();
        Agent {
            shared: Arc::new(Shared {
                provider: self.provider,
                config: self.config,
                approver: self.approver.unwrap_or_else(|| Arc::new(NobodyToAsk)),
                compactor: self.compactor,
                outputs: self.outputs,
                clock: self.clock,
                session,
                conversation: Mutex::new(self.history),
                spent: self.tracks_usage.then(std::sync::Mutex::default),
                tasks: TaskTracker::new(),
            }),
        }
    }
}

/// A provider whose model is described by a registry.
struct Described {
    provider: Arc<dyn Provider>,
    model: Model,
}

#[async_trait]
impl Provider for Described {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn model(&self) -> &Model {
        &self.model
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        self.provider.stream(request)
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.provider.convert_tools(tools)
    }
}
