//! The environment of the crowd's sessions: the one that `windlass exec` gives a session without settings.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use windlass_api::{Offer, SessionInfo};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::compact::{Pressure, Summarize};
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::{Hooks, MiddlewareHook};
use windlass_core::model::Price;
use windlass_core::permission::{Asker, Mode, NobodyToAsk, Policy};
use windlass_core::provider::{Prefix, Prefixes, Provider};
use windlass_core::run::Config;
use windlass_core::tool::{ExecutionContext, Outputs, ToolSet};
use windlass_service::{
    ChooseError, Chosen, Defined, EnvFacts, Granted, ModelChoice, ModelSwitch, NotReady, Permissions,
    SessionEnv, SessionFactory, ToolInfo, TurnPlan, TurnStart, UserCommand,
};
use windlass_tools::builtin;

use crate::parts;

/// Length of the system prompt of Windlass.
const SYSTEM: usize = 1_400;

/// Creates environments that share what the sessions of one run share: the connection to the model, and an
/// equal prefix.
pub(super) struct CrowdFactory {
    provider: Arc<dyn Provider>,
    prefixes: Prefixes,
    helper: PathBuf,
    outputs: PathBuf,
}

impl CrowdFactory {
    pub(super) fn new(port: u16, helper: PathBuf, outputs: PathBuf) -> Result<Self> {
        Ok(Self {
            provider: Arc::new(parts::provider(port)?),
            prefixes: Prefixes::default(),
            helper,
            outputs,
        })
    }

    fn make(&self, session: &SessionInfo) -> Result<CrowdEnv> {
        let config = parts::tools(&self.helper, self.outputs.join(session.id.as_str()))?;
        let tools = builtin(&config);
        Ok(CrowdEnv {
            provider: Arc::clone(&self.provider),
            prefix: self.prefixes.share(Prefix {
                system: "Work. ".repeat(SYSTEM / 6),
                tools: tools.specs(),
                ..Prefix::default()
            }),
            tools,
            execution: Arc::new(parts::execution(session.id.as_str())?),
            outputs: config.outputs.map(|outputs| outputs as _),
        })
    }
}

#[async_trait]
impl SessionFactory for CrowdFactory {
    async fn create(&self, session: &SessionInfo, _: Arc<dyn Asker>) -> Result<Box<dyn SessionEnv>, String> {
        let env = self.make(session).map_err(|error| error.to_string())?;
        Ok(Box::new(env))
    }
}

struct CrowdEnv {
    provider: Arc<dyn Provider>,
    prefix: Arc<Prefix>,
    tools: ToolSet,
    execution: Arc<ExecutionContext>,
    outputs: Option<Arc<dyn Outputs>>,
}

impl CrowdEnv {
    fn calls(&self) -> CallConfig {
        CallConfig {
            tools: self.tools.clone(),
            execution: Arc::clone(&self.execution),
            ..CallConfig::default()
        }
    }
}

impl EnvFacts for CrowdEnv {}

#[async_trait]
impl SessionEnv for CrowdEnv {
    async fn plan(&mut self, _: &TurnStart) -> Result<TurnPlan, NotReady> {
        Ok(TurnPlan {
            config: Config {
                prefix: Arc::clone(&self.prefix),
                calls: self.calls(),
                hooks: Hooks::new().with(MiddlewareHook(Arc::new(Pressure::default()))),
                ..Config::default()
            },
            provider: Arc::clone(&self.provider),
            compactor: Some(Arc::new(Summarize::default())),
            approver: Arc::new(NobodyToAsk),
            outputs: self.outputs.clone(),
            notices: Vec::new(),
        })
    }

    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>> {
        None
    }

    fn models(&mut self) -> &mut dyn ModelSwitch {
        self
    }

    fn permissions(&mut self) -> &mut dyn Permissions {
        self
    }

    fn defined(&mut self) -> Defined {
        Defined::default()
    }
}

#[async_trait]
impl ModelSwitch for CrowdEnv {
    fn list(&self) -> Vec<ModelChoice> {
        Vec::new()
    }

    fn active(&self) -> Result<(String, String), String> {
        Ok((self.provider.name().to_owned(), self.provider.model().id.clone()))
    }

    fn price(&self, _: &str) -> Option<Price> {
        None
    }

    fn window(&self, _: &str) -> u64 {
        self.provider.model().context_window
    }

    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    async fn choose(&mut self, _: Option<&str>, _: Option<&str>) -> Result<Chosen, ChooseError> {
        Err(ChooseError::Unknown)
    }
}

#[async_trait]
impl Permissions for CrowdEnv {
    fn tools(&mut self) -> Vec<ToolInfo> {
        Vec::new()
    }

    fn policy(&self) -> Policy {
        Policy::default()
    }

    fn set_mode(&mut self, _: Mode) {}

    fn granted(&self) -> Granted {
        Granted::default()
    }

    async fn user_command(&mut self, _: &TurnStart, command: &str) -> UserCommand {
        UserCommand {
            calls: self.calls(),
            hooks: Hooks::new(),
            outputs: self.outputs.clone(),
            tool: "bash".to_owned(),
            input: serde_json::json!({ "command": command }).to_string(),
            notices: Vec::new(),
        }
    }
}
