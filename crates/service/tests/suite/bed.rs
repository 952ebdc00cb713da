//! A service over a real store, with a scripted model and two small tools.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::sync::Notify;
use windlass_api::{
    Begin, CallId, Client, Envelope, Event, EventStream, Label, Part, SessionId, SessionInfo, Submission,
};
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::compact::Summarize;
use windlass_core::dispatch::CallConfig;
use windlass_core::log::Store;
use windlass_core::permission::{Approver, Asker, Denial, NobodyToAsk, Proposal, Question};
use windlass_core::provider::Prefix;
use windlass_core::run::Config;
use windlass_core::script::{Scene, ScriptedProvider};
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolSet};
use windlass_service::{Options, Service, TurnPlan};
use windlass_testkit::{EnvKit, FakeEnv, FakeFactory};

/// A store in a folder, and the state that services over it share.
pub(crate) struct Bed {
    folder: TempDir,
    pub(crate) provider: Arc<ScriptedProvider>,
    /// Releases the tool `wait`.
    pub(crate) gate: Arc<Notify>,
    /// Texts that the tool `note` was called with.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
    /// Settings of the test environment.
    pub(crate) kit: Arc<EnvKit>,
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
        let tools = ToolSet::new()
            .with(Ask)
            .with(Wait(Arc::clone(&self.gate)))
            .with(Note(Arc::clone(&self.notes)));
        let (kit, provider) = (Arc::clone(&self.kit), Arc::clone(&self.provider));
        let factory = FakeFactory(move |_: &SessionInfo, asker| {
            let (tools, provider, shared) = (tools.clone(), Arc::clone(&provider), Arc::clone(&kit));
            let prefix = Arc::new(Prefix {
                system: "Work.".into(),
                tools: tools.specs(),
                ..Prefix::default()
            });
            Ok(FakeEnv::new(Arc::clone(&kit), move |policy| TurnPlan {
                config: Config {
                    prefix: Arc::clone(&prefix),
                    limits: shared.limits.lock().unwrap().clone(),
                    calls: CallConfig {
                        tools: tools.clone(),
                        policy,
                        ..calls()
                    },
                    ..Config::default()
                },
                provider: Arc::clone(&provider) as _,
                compactor: Some(Arc::new(Summarize {
                    keep_recent: 2,
                    ..Summarize::default()
                })),
                approver: Arc::new(Reached(Arc::clone(&asker))),
                outputs: None,
                notices: Vec::new(),
            }))
        });
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

fn calls() -> CallConfig {
    CallConfig {
        timeout: Duration::from_secs(60),
        max_result_chars: Some(10_000),
        retry_transient: false,
        ..CallConfig::default()
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
