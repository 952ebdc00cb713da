//! The environment of a session with everything but the plan of a turn faked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{Offer, SessionInfo};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::hook::Hooks;
use windlass_core::model::Price;
use windlass_core::permission::{Asker, Mode, Policy};
use windlass_core::provider::Provider;
use windlass_core::tool::ToolSpec;
use windlass_core::turn::Limits;
use windlass_service::{
    ChooseError, Chosen, Defined, EffortSwitch, EnvFacts, Extensions, Goals, Granted, ModelChoice,
    ModelSwitch, NotReady, Permissions, SessionEnv, SessionFactory, SessionHost, Titles, ToolInfo, TurnPlan,
    TurnStart, UserCommand,
};

use crate::fake_checkpoints::FakeCheckpoints;

/// Settings and records that the environments of a test share.
pub struct EnvKit {
    /// Starts of the turns.
    pub starts: Mutex<Vec<TurnStart>>,
    /// Error of the next plan, if it is to fail.
    pub not_ready: Mutex<Option<NotReady>>,
    /// True if planning a turn never finishes.
    pub is_stuck: Mutex<bool>,
    /// The checkpoints, if they are on.
    pub checkpoints: Mutex<Option<Arc<FakeCheckpoints>>>,
    /// Commands that files define.
    pub defined: Mutex<Defined>,
    /// Active provider and model.
    pub active: Mutex<(String, String)>,
    /// Context window of every model, in tokens.
    pub window: Mutex<u64>,
    /// Model that writes titles.
    pub title_model: Mutex<Option<Arc<dyn Provider>>>,
    /// Goal settings.
    pub goals: Mutex<Goals>,
    /// Description of the environment for the model.
    pub surroundings: Mutex<Option<String>>,
    /// Limits of the turns, for plans that use them.
    pub limits: Mutex<Limits>,
    /// Hooks that follow the sessions.
    pub hooks: Mutex<Hooks>,
}

impl Default for EnvKit {
    fn default() -> Self {
        Self {
            starts: Mutex::default(),
            not_ready: Mutex::default(),
            is_stuck: Mutex::default(),
            checkpoints: Mutex::default(),
            defined: Mutex::default(),
            active: Mutex::new(("first".to_owned(), "first-1".to_owned())),
            window: Mutex::new(100_000),
            title_model: Mutex::default(),
            goals: Mutex::default(),
            surroundings: Mutex::default(),
            limits: Mutex::default(),
            hooks: Mutex::default(),
        }
    }
}

impl EnvKit {
    /// Turns checkpoints on.
    pub fn keep_checkpoints(&self) -> Arc<FakeCheckpoints> {
        let kept = Arc::new(FakeCheckpoints::default());
        *locked(&self.checkpoints) = Some(Arc::clone(&kept));
        kept
    }

    /// Records a turn, and creates a checkpoint for it if they are on.
    fn begin(&self, turn: &TurnStart) -> Result<(), NotReady> {
        if let Some(why) = locked(&self.not_ready).take() {
            return Err(why);
        }
        locked(&self.starts).push(turn.clone());
        if let Some(checkpoints) = &*locked(&self.checkpoints) {
            checkpoints.add(turn);
        }
        Ok(())
    }
}

/// Locks a value, even if another test thread panicked while it held the lock.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the environment of each session with a function.
pub struct FakeFactory<F>(pub F);

#[async_trait]
impl<F> SessionFactory for FakeFactory<F>
where
    F: Fn(&SessionInfo, Arc<dyn Asker>) -> Result<FakeEnv, String> + Send + Sync,
{
    async fn create(&self, session: &SessionInfo, host: SessionHost) -> Result<Box<dyn SessionEnv>, String> {
        Ok(Box::new(self.0(session, host.asker)?))
    }
}

/// Plans a turn with these permissions.
type Plan = Box<dyn FnMut(Policy) -> TurnPlan + Send + Sync>;

/// An environment whose turns run with the given plan. Its models `first`, `Second` and `broken` are names;
/// a command of the user consists of a tool's name and its text.
pub struct FakeEnv {
    kit: Arc<EnvKit>,
    mode: Mode,
    plan: Plan,
}

impl FakeEnv {
    /// An environment with the default mode.
    pub fn new(kit: Arc<EnvKit>, plan: impl FnMut(Policy) -> TurnPlan + Send + Sync + 'static) -> Self {
        Self {
            kit,
            mode: Mode::default(),
            plan: Box::new(plan),
        }
    }
}

#[async_trait]
impl SessionEnv for FakeEnv {
    async fn plan(&mut self, turn: &TurnStart) -> Result<TurnPlan, NotReady> {
        let is_stuck = *locked(&self.kit.is_stuck);
        if is_stuck {
            std::future::pending::<()>().await;
        }
        self.kit.begin(turn)?;
        let policy = self.policy();
        Ok((self.plan)(policy))
    }

    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>> {
        let kept = locked(&self.kit.checkpoints).clone();
        kept.map(|kept| kept as _)
    }

    fn models(&mut self) -> &mut dyn ModelSwitch {
        self
    }

    fn permissions(&mut self) -> &mut dyn Permissions {
        self
    }

    fn defined(&mut self) -> Defined {
        locked(&self.kit.defined).clone()
    }
}

#[async_trait]
impl EffortSwitch for FakeEnv {
    fn effort(&self) -> &'static str {
        "off"
    }

    async fn set_effort(&mut self, effort: &str) -> Result<(), ChooseError> {
        match effort {
            "off" => Ok(()),
            "high" => Err(ChooseError::Failed("it cannot reason".to_owned())),
            _ => Err(ChooseError::Unknown),
        }
    }
}

#[async_trait]
impl ModelSwitch for FakeEnv {
    fn list(&self) -> Vec<ModelChoice> {
        let choice = |name: &str| ModelChoice {
            provider: name.to_owned(),
            kind: "scripted".to_owned(),
            model: format!("{name}-1"),
        };
        ["first", "Second"].map(choice).into()
    }

    fn active(&self) -> Result<(String, String), String> {
        Ok(locked(&self.kit.active).clone())
    }

    fn price(&self, _: &str) -> Option<Price> {
        None
    }

    fn window(&self, _: &str) -> u64 {
        *locked(&self.kit.window)
    }

    fn offers(&self) -> Vec<Offer> {
        let offer = |name: &str, is_ready: bool| Offer {
            name: name.to_owned(),
            model: format!("{name}-1"),
            needs_key: true,
            is_ready,
            hint: format!("set {}_KEY", name.to_uppercase()),
        };
        vec![offer("first", true), offer("Second", false)]
    }

    async fn choose(&mut self, provider: Option<&str>, model: Option<&str>) -> Result<Chosen, ChooseError> {
        let mut active = locked(&self.kit.active);
        let provider = provider.unwrap_or(&active.0).to_owned();
        match provider.as_str() {
            "first" | "Second" => {}
            "broken" => return Err(ChooseError::Failed("no key".to_owned())),
            _ => return Err(ChooseError::Unknown),
        }
        let model = model.map_or_else(|| format!("{provider}-1"), str::to_owned);
        *active = (provider.clone(), model.clone());
        Ok(Chosen {
            provider,
            model,
            notices: Vec::new(),
        })
    }
}

#[async_trait]
impl Permissions for FakeEnv {
    fn tools(&mut self) -> Vec<ToolInfo> {
        let tool = |spec: ToolSpec| ToolInfo {
            name: spec.name,
            source: "built-in".to_owned(),
            description: spec.description,
        };
        let plan = (self.plan)(Policy::default());
        plan.config.calls.tools.specs().into_iter().map(tool).collect()
    }

    fn policy(&self) -> Policy {
        Policy {
            mode: self.mode,
            ..Policy::default()
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    fn granted(&self) -> Granted {
        Granted {
            session: vec!["bash in /project: make".to_owned()],
            always: vec!["bash in /project: ls".to_owned()],
        }
    }

    async fn user_command(&mut self, _: &TurnStart, command: &str) -> UserCommand {
        let (tool, text) = command.split_once(' ').unwrap_or((command, ""));
        let input = match tool {
            "note" => serde_json::json!({ "text": text }),
            _ => serde_json::json!({}),
        };
        let plan = (self.plan)(Policy::default());
        UserCommand {
            calls: plan.config.calls,
            hooks: Hooks::new(),
            outputs: plan.outputs,
            tool: tool.to_owned(),
            input: input.to_string(),
            notices: Vec::new(),
        }
    }

    async fn check_command(&mut self, turn: &TurnStart, command: &str, _: Duration) -> UserCommand {
        self.user_command(turn, command).await
    }
}

impl Extensions for FakeEnv {}

impl EnvFacts for FakeEnv {
    fn environment(&self) -> Option<String> {
        locked(&self.kit.surroundings).clone()
    }

    fn titles(&self) -> Option<Arc<dyn Titles>> {
        let provider = locked(&self.kit.title_model).clone()?;
        Some(Arc::new(TitleModel(provider)))
    }

    fn hooks(&self) -> Hooks {
        locked(&self.kit.hooks).clone()
    }

    fn goals(&self) -> Goals {
        locked(&self.kit.goals).clone()
    }
}

struct TitleModel(Arc<dyn Provider>);

#[async_trait]
impl Titles for TitleModel {
    async fn provider(&self) -> Option<Arc<dyn Provider>> {
        Some(Arc::clone(&self.0))
    }
}
