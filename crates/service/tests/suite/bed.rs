//! A service over a real store, with a scripted model and two small tools.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::sync::Notify;
use windlass_api::{
    Begin, CallId, Client, Envelope, Event, EventStream, Label, Offer, Part, SessionId, SessionInfo,
    Submission,
};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::compact::Summarize;
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::Hooks;
use windlass_core::log::Store;
use windlass_core::permission::{Approver, Asker, Denial, Mode, NobodyToAsk, Policy, Proposal, Question};
use windlass_core::provider::Prefix;
use windlass_core::run::Config;
use windlass_core::script::{Scene, ScriptedProvider};
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolSet};
use windlass_service::{
    ChooseError, Chosen, Defined, EnvFacts, Goals, Granted, ModelChoice, ModelSwitch, NotReady, Options,
    Permissions, Service, SessionEnv, SessionFactory, ToolInfo, TurnPlan, TurnStart, UserCommand,
};

use super::kit::Kit;

/// A store in a folder, and the state that services over it share.
pub(crate) struct Bed {
    folder: TempDir,
    pub(crate) provider: Arc<ScriptedProvider>,
    /// Releases the tool `wait`.
    pub(crate) gate: Arc<Notify>,
    /// Texts that the tool `note` was called with.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
    /// Settings of the test environment.
    pub(crate) kit: Arc<Kit>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Bed {
    pub(crate) fn new(scenes: impl IntoIterator<Item = Scene>) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            provider: Arc::new(ScriptedProvider::new(scenes)),
            gate: Arc::default(),
            notes: Arc::default(),
            kit: Arc::default(),
            clock: Arc::new(SystemClock::default()),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("windlass.db")
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        windlass_store::open(self.file(), Arc::new(SystemClock::default())).unwrap()
    }

    /// A second connection to the database: the store is blocked until its transaction is committed or rolled
    /// back.
    pub(crate) fn writer(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    pub(crate) fn service(&self) -> Service {
        self.service_of(windlass_store::owner(), Options::default())
    }

    pub(crate) fn service_of(&self, owner: String, options: Options) -> Service {
        let factory = TestFactory {
            provider: Arc::clone(&self.provider),
            gate: Arc::clone(&self.gate),
            notes: Arc::clone(&self.notes),
            kit: Arc::clone(&self.kit),
        };
        Service::new(
            self.store(),
            Arc::new(factory),
            Arc::clone(&self.clock),
            owner,
            options,
        )
    }
}

pub(crate) async fn new_session(service: &Service) -> SessionInfo {
    let begin = Begin::New {
        id: None,
        place: "/project".into(),
        label: Label::default(),
        parent: None,
    };
    service.begin(begin).await.unwrap()
}

pub(crate) fn say(session: &SessionId, text: &str) -> Submission {
    Submission::text(session.clone(), text)
}

/// Collects all events.
pub(crate) async fn all(events: EventStream) -> Vec<Envelope> {
    let all = events.collect();
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap()
}

/// Runs a turn and returns its answer.
pub(crate) async fn answer(service: &Service, session: &SessionId, text: &str) -> String {
    let events = all(service.submit(say(session, text)).await.unwrap()).await;
    match &events.last().unwrap().event {
        Event::Final { content, .. } => content.clone(),
        other => panic!("{other:?}"),
    }
}

struct TestFactory {
    provider: Arc<ScriptedProvider>,
    gate: Arc<Notify>,
    notes: Arc<Mutex<Vec<String>>>,
    kit: Arc<Kit>,
}

#[async_trait]
impl SessionFactory for TestFactory {
    async fn create(&self, _: &SessionInfo, asker: Arc<dyn Asker>) -> Result<Box<dyn SessionEnv>, String> {
        let tools = ToolSet::new()
            .with(Ask)
            .with(Wait(Arc::clone(&self.gate)))
            .with(Note(Arc::clone(&self.notes)));
        Ok(Box::new(TestEnv {
            asker,
            mode: Mode::default(),
            kit: Arc::clone(&self.kit),
            provider: Arc::clone(&self.provider),
            prefix: Arc::new(Prefix {
                system: "Work.".into(),
                tools: tools.specs(),
                ..Prefix::default()
            }),
            tools,
        }))
    }
}

struct TestEnv {
    asker: Arc<dyn Asker>,
    mode: Mode,
    kit: Arc<Kit>,
    provider: Arc<ScriptedProvider>,
    prefix: Arc<Prefix>,
    tools: ToolSet,
}

#[async_trait]
impl SessionEnv for TestEnv {
    async fn plan(&mut self, turn: &TurnStart) -> Result<TurnPlan, NotReady> {
        self.kit.prepare().await;
        self.kit.begin(turn)?;
        Ok(TurnPlan {
            config: Config {
                prefix: Arc::clone(&self.prefix),
                limits: self.kit.limits.lock().unwrap().clone(),
                calls: CallConfig {
                    tools: self.tools.clone(),
                    policy: self.policy(),
                    ..calls()
                },
                ..Config::default()
            },
            provider: Arc::clone(&self.provider) as _,
            compactor: Some(Arc::new(Summarize {
                keep_recent: 2,
                ..Summarize::default()
            })),
            approver: Arc::new(Reached(Arc::clone(&self.asker))),
            outputs: None,
            notices: Vec::new(),
        })
    }

    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>> {
        let kept = self.kit.checkpoints.lock().unwrap().clone();
        kept.map(|kept| kept as _)
    }

    fn models(&mut self) -> &mut dyn ModelSwitch {
        self
    }

    fn permissions(&mut self) -> &mut dyn Permissions {
        self
    }

    fn defined(&mut self) -> Defined {
        self.kit.defined.lock().unwrap().clone()
    }
}

fn calls() -> CallConfig {
    CallConfig {
        timeout: Duration::from_secs(60),
        max_result_chars: Some(10_000),
        retry_transient: false,
        ..CallConfig::default()
    }
}

#[async_trait]
impl ModelSwitch for TestEnv {
    fn list(&self) -> Vec<ModelChoice> {
        let choice = |name: &str| ModelChoice {
            provider: name.to_owned(),
            kind: "scripted".to_owned(),
            model: format!("{name}-1"),
        };
        ["first", "Second"].map(choice).into()
    }

    fn active(&self) -> Result<(String, String), String> {
        Ok(self.kit.active.lock().unwrap().clone())
    }

    fn price(&self, _: &str) -> Option<windlass_core::model::Price> {
        None
    }

    fn window(&self, _: &str) -> u64 {
        100_000
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
        let mut active = self.kit.active.lock().unwrap();
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
impl Permissions for TestEnv {
    fn tools(&mut self) -> Vec<ToolInfo> {
        let tool = |spec: windlass_core::tool::ToolSpec| ToolInfo {
            name: spec.name,
            source: "built-in".to_owned(),
            description: spec.description,
        };
        self.tools.specs().into_iter().map(tool).collect()
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

    /// The command consists of the tool's name and its text.
    async fn user_command(&mut self, _: &TurnStart, command: &str) -> UserCommand {
        let (tool, text) = command.split_once(' ').unwrap_or((command, ""));
        let input = match tool {
            "note" => serde_json::json!({ "text": text }),
            _ => serde_json::json!({}),
        };
        UserCommand {
            calls: CallConfig {
                tools: self.tools.clone(),
                ..calls()
            },
            hooks: Hooks::new(),
            outputs: None,
            tool: tool.to_owned(),
            input: input.to_string(),
            notices: Vec::new(),
        }
    }
}

impl EnvFacts for TestEnv {
    fn environment(&self) -> Option<String> {
        self.kit.surroundings.lock().unwrap().clone()
    }

    fn titles(&self) -> Option<Arc<dyn windlass_service::Titles>> {
        self.kit.titles()
    }

    fn hooks(&self) -> Hooks {
        self.kit.hooks.lock().unwrap().clone()
    }

    fn goals(&self) -> Goals {
        self.kit.goals.lock().unwrap().clone()
    }
}

/// Passes questions to the person, and denies permission requests.
struct Reached(Arc<dyn Asker>);

#[async_trait]
impl Approver for Reached {
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        NobodyToAsk.approve(proposal).await
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        self.0.answer(call, question).await
    }
}

/// Waits.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Wait(Arc<Notify>);

impl Tool for Wait {
    type Input = Nothing;
    const NAME: &'static str = "wait";

    fn category(&self, _: &Nothing) -> Category {
        Category::Read
    }

    async fn run(&self, _: Nothing, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            () = self.0.notified() => Ok(ToolOutput::text("waited")),
            () = cx.cancel.cancelled() => Err(ToolError::Canceled(String::new())),
        }
    }
}

/// Asks the user for a colour.
struct Ask;

impl Tool for Ask {
    type Input = Nothing;
    const NAME: &'static str = "ask";

    fn category(&self, _: &Nothing) -> Category {
        Category::Read
    }

    async fn run(&self, _: Nothing, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let question = Question {
            text: "Which colour?".to_owned(),
            options: Vec::new(),
        };
        let answer = cx.person.ask(&question).await;
        Ok(ToolOutput::text(answer.unwrap_or_default()))
    }
}

/// Notes a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

struct Note(Arc<Mutex<Vec<String>>>);

impl Tool for Note {
    type Input = Text;
    const NAME: &'static str = "note";

    fn category(&self, _: &Text) -> Category {
        Category::Write
    }

    async fn run(&self, input: Text, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap().push(input.text);
        Ok(ToolOutput::text("noted"))
    }
}

/// Returns the texts of all text parts.
pub(crate) fn texts(envelopes: &[Envelope]) -> Vec<String> {
    let text = |envelope: &Envelope| match &envelope.event {
        Event::Message { message } => message.parts.iter().find_map(|part| match part {
            Part::Text(text) => Some(text.text.clone()),
            Part::Context(fragment) => Some(fragment.text.clone()),
            _ => None,
        }),
        _ => None,
    };
    envelopes.iter().filter_map(text).collect()
}
