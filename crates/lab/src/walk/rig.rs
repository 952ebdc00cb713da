//! Environment of a session with one strategy.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Message};
use windlass_core::compact::{
    Compactor, CompleteFocus, FocusState, Parts, Pressure, SidequestTurns, StartFocus, Strategy, Subgoals,
};
use windlass_core::hook::{Hooks, MiddlewareHook};
use windlass_core::model::Model;
use windlass_core::provider::Provider;
use windlass_core::tokens::Gauge;
use windlass_core::tool::{AnyTool, CallModel, Person, Progress, ToolContext, erase};
use windlass_core::turn::Limits;

use crate::log::{Log, Open, Then};
use crate::offline::{Offline, lines};
use crate::{Experiment, Summarizer};

/// The environment that the program assembles for a session, except for the model.
pub(super) struct Rig {
    pub(super) provider: Offline,
    pub(super) gauge: Arc<Gauge>,
    pub(super) compactor: Option<Arc<dyn Compactor>>,
    pub(super) hooks: Hooks,
    pub(super) subgoals: Arc<Subgoals>,
    pub(super) focus: Arc<FocusState>,
    pub(super) open: Arc<Open>,
    pub(super) log: Arc<Log>,
    pub(super) clock: Arc<Then>,
    pub(super) limits: Limits,
    summarizer: Summarizer,
}

impl Rig {
    pub(super) fn new(strategy: Strategy, setup: &Experiment) -> Self {
        let gauge = Arc::new(Gauge::new(setup.counters));
        gauge.meant_for(&setup.model);
        let open: Arc<Open> = Arc::default();
        let parts = Parts {
            standing: Arc::clone(&open) as _,
            gauge: Arc::clone(&gauge),
            ..Parts::default()
        };
        let mut hooks = Hooks::new();
        if strategy == Strategy::ModelEviction {
            hooks.push(MiddlewareHook(Arc::clone(&parts.sidequest) as Arc<SidequestTurns>));
        }
        if strategy != Strategy::None {
            hooks.push(MiddlewareHook(Arc::new(Pressure {
                gauge: Arc::clone(&gauge),
                ..Pressure::default()
            })));
        }
        Self {
            provider: Offline::new(setup.model.clone(), setup.summarizer, Arc::clone(&gauge)),
            hooks,
            subgoals: Arc::clone(&parts.subgoals),
            focus: Arc::clone(&parts.focus),
            open,
            log: Arc::default(),
            clock: Arc::default(),
            limits: Limits::default(),
            summarizer: setup.summarizer,
            gauge,
            compactor: strategy.compactor(parts),
        }
    }

    pub(super) fn model(&self) -> &Model {
        self.provider.model()
    }

    /// Returns the summary the agent itself would write about its work.
    pub(super) fn said(&self, done: &[Arc<Message>]) -> String {
        self.summarizer.summary(&lines(done))
    }

    /// Runs a focus tool.
    pub(super) async fn mark(&self, tool: &str, input: Value, call: &CallId) -> String {
        let state = Arc::clone(&self.focus);
        let tool: Arc<dyn AnyTool> = match tool {
            "start_focus" => erase(StartFocus(state)),
            _ => erase(CompleteFocus(state)),
        };
        let cx = ToolContext {
            call_id: call.clone(),
            cancel: CancellationToken::new(),
            execution: Arc::default(),
            progress: Progress::none(),
            person: Person::nobody(),
            model: CallModel::none(),
            confirmed: false,
            places: Arc::default(),
        };
        let prepared = match tool.prepare(&input.to_string()) {
            Ok(prepared) => prepared,
            Err(error) => return error.to_string(),
        };
        match prepared.run(cx).await {
            Ok(output) => output.content,
            Err(error) => error.to_string(),
        }
    }
}
