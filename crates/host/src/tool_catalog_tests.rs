//! Tools that are added, changed, broken and removed between turns.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use windlass_api::{Begin, Client, Event, Label, Part, SessionId, SessionInfo, Submission};
use windlass_core::clock::SystemClock;
use windlass_core::dispatch::CallConfig;
use windlass_core::model::Model;
use windlass_core::permission::NobodyToAsk;
use windlass_core::provider::{Provider, ProviderEvent, Request};
use windlass_core::run::Config;
use windlass_core::script::{Scene, ScriptedProvider};
use windlass_core::tool::ToolSpec;
use windlass_service::{Options, Service, TurnPlan};
use windlass_testkit::{FakeEnv, FakeFactory};
use windlass_tools::builtin;

use windlass_sandbox::{Workspace, child_environment};

use super::*;
use windlass_config::trust::trust;

const TOOL: &str = "tools:\n  - {name: one, description: x, category: read, cmd: sh, args: [run.sh]}\n";

/// Records the prefix of every request.
struct ExchangeRecorder {
    script: ScriptedProvider,
    prefixes: Mutex<Vec<Arc<Prefix>>>,
}

#[async_trait]
impl Provider for ExchangeRecorder {
    fn name(&self) -> &str {
        self.script.name()
    }

    fn model(&self) -> &Model {
        self.script.model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        self.prefixes.lock().unwrap().push(Arc::clone(&request.prefix));
        self.script.stream(request)
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.script.convert_tools(tools)
    }
}

/// A session in a project, with a home folder for the user.
struct Bed {
    root: tempfile::TempDir,
    folders: Folders,
    provider: Arc<ExchangeRecorder>,
    client: Service,
}

impl Bed {
    /// The files exist when the session starts, and the project is trusted.
    fn new(files: &[(&str, &str)]) -> Self {
        let script = ScriptedProvider::new((0..9).map(|_| Scene::text("fine")));
        Self::with_script(files, script)
    }

    fn with_script(files: &[(&str, &str)], script: ScriptedProvider) -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home").display().to_string();
        let folders = Folders::resolve(&|name| (name == "WINDLASS_HOME").then(|| home.clone())).unwrap();
        let repo = root.path().join("repo");
        for folder in [folders.config.clone(), repo.join(".windlass"), repo.join(".git")] {
            fs::create_dir_all(folder).unwrap();
        }
        for (name, text) in files {
            fs::write(root.path().join(name), text).unwrap();
        }
        if let Some(project) = folders.project(&repo) {
            trust(&folders, &project).unwrap();
        }
        let config = ToolsConfig {
            workspace: Workspace::new(&repo, None),
            ..ToolsConfig::default()
        };
        let execution = ExecutionContext {
            cwd: repo.clone(),
            env: child_environment(std::env::vars(), &repo, "s"),
            session: None,
        };
        let files = ToolFiles::new(folders.clone(), &repo);
        let mut catalog = ToolCatalog::new(builtin(&config), config, files, Arc::new(execution)).unwrap();
        catalog.set_system_prompt("Work.".to_owned());
        let provider = Arc::new(ExchangeRecorder {
            script,
            prefixes: Mutex::default(),
        });
        let model = Arc::clone(&provider);
        let env = FakeEnv::new(Arc::default(), move |_| {
            let (offer, notices) = catalog.refresh();
            TurnPlan {
                config: Config {
                    prefix: offer.prefix,
                    calls: CallConfig {
                        tools: offer.tools,
                        execution: offer.execution,
                        timeout: Duration::from_secs(10),
                        max_result_chars: Some(1_000),
                        ..CallConfig::default()
                    },
                    ..Config::default()
                },
                provider: Arc::clone(&model) as _,
                compactor: None,
                approver: Arc::new(NobodyToAsk),
                outputs: None,
                notices,
            }
        });
        let env = Mutex::new(Some(env));
        let factory = FakeFactory(move |_: &SessionInfo, _| Ok(env.lock().unwrap().take().unwrap()));
        let store =
            windlass_store::open(root.path().join("session.db"), Arc::new(SystemClock::default())).unwrap();
        let client = Service::new(
            store,
            Arc::new(factory),
            Arc::new(SystemClock::default()),
            windlass_store::owner(),
            Options::default(),
        );
        Self {
            root,
            folders,
            provider,
            client,
        }
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.root.path().join(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.root.path().join(name)).unwrap();
    }

    fn trust(&self) {
        let project = self.folders.project(&self.root.path().join("repo")).unwrap();
        trust(&self.folders, &project).unwrap();
    }

    /// Runs a turn. Returns the declared tools that were offered, and the warnings.
    async fn turn(&self) -> (Vec<String>, Vec<String>) {
        let session = SessionId::from("s");
        let begin = Begin::New {
            id: Some(session.clone()),
            place: "/project".to_owned(),
            label: Label::default(),
            parent: None,
        };
        // The first turn creates the session, later ones open it.
        let _ = self.client.begin(begin).await;
        let submission = Submission {
            session,
            parts: vec![Part::text("go")],
            on_busy: Default::default(),
            id: None,
        };
        let mut events = self.client.submit(submission).await.unwrap();
        let mut warnings = Vec::new();
        while let Some(envelope) = events.next().await {
            match envelope.event {
                Event::Warning { message } => warnings.push(message),
                Event::Failed { message, .. } => panic!("{message}"),
                _ => {}
            }
        }
        let prefix = self.prefix();
        assert_eq!(prefix.system, "Work.");
        let own = builtin(&ToolsConfig::default()).specs().len();
        let names = prefix.tools.iter().skip(own).map(|spec| spec.name.clone());
        (names.collect(), warnings)
    }

    /// Returns the last prefix that was sent.
    fn prefix(&self) -> Arc<Prefix> {
        Arc::clone(self.provider.prefixes.lock().unwrap().last().unwrap())
    }
}

/// TOOL-5 (S6.7): a turn keeps the tools it started with; a broken file keeps the last good ones and is
/// reported once.
#[tokio::test]
async fn the_users_tools_are_reloaded_between_turns() {
    let file = "home/config/tools.yaml";
    let bed = Bed::new(&[]);
    assert_eq!(bed.turn().await, (vec![], vec![]));
    let first = bed.prefix();
    bed.turn().await;
    assert!(Arc::ptr_eq(&first, &bed.prefix()), "nothing changed");

    bed.put(file, TOOL);
    assert_eq!(bed.turn().await, (vec!["one".to_owned()], vec![]));
    let second = bed.prefix();
    bed.put(file, &TOOL.replace("run.sh", "other.sh"));
    bed.turn().await;
    assert!(Arc::ptr_eq(&second, &bed.prefix()), "the model sees the same");

    bed.put(file, &TOOL.replace("category", "categry"));
    let (names, warnings) = bed.turn().await;
    assert_eq!(names, ["one"]);
    assert!(
        warnings.len() == 1 && warnings[0].contains("tools.yaml:2: unknown key `one.categry`"),
        "{warnings:?}"
    );
    assert!(
        warnings[0].contains("keeping the last valid tools"),
        "{warnings:?}"
    );
    assert_eq!(bed.turn().await, (vec!["one".to_owned()], vec![]), "told once");
    assert!(Arc::ptr_eq(&second, &bed.prefix()));

    bed.remove(file);
    assert_eq!(bed.turn().await, (vec![], vec![]));
}

/// SAFE-6, TOOL-5: a trusted project's tools are offered until one of its files changes; the user's are not
/// affected.
#[tokio::test]
async fn a_changed_project_is_inert_from_the_next_turn_on() {
    let both = || vec!["mine".to_owned(), "one".to_owned()];
    let mine = || vec!["mine".to_owned()];
    let bed = Bed::new(&[
        ("home/config/tools.yaml", &TOOL.replace("one", "mine")),
        ("repo/.windlass/tools.yaml", TOOL),
        ("repo/run.sh", "echo 1\n"),
    ]);
    assert_eq!(bed.turn().await, (both(), vec![]));

    bed.put("repo/run.sh", "echo 2\n");
    let (names, warnings) = bed.turn().await;
    assert_eq!(names, mine());
    assert!(
        warnings.len() == 1 && warnings[0].contains("it changed since this folder was trusted"),
        "{warnings:?}"
    );
    assert_eq!(bed.turn().await, (mine(), vec![]), "told once");
    bed.trust();
    assert_eq!(bed.turn().await, (both(), vec![]));

    // A trusted but broken file declares nothing: the earlier tools belonged to other content.
    bed.put("repo/.windlass/tools.yaml", "tools: 5\n");
    bed.trust();
    let (names, warnings) = bed.turn().await;
    assert_eq!(names, mine());
    assert!(
        warnings.len() == 1 && warnings[0].contains("tools.yaml:1"),
        "{warnings:?}"
    );

    bed.remove("repo/.windlass/tools.yaml");
    assert_eq!(bed.turn().await, (mine(), vec![]));
}

/// SAFE-6, TOOL-5: a project tool with the name of a user's tool is reported in the first turn, and the
/// user's tool wins.
#[tokio::test]
async fn the_users_names_are_the_users() {
    let bed = Bed::new(&[
        ("home/config/tools.yaml", TOOL),
        ("repo/.windlass/tools.yaml", TOOL),
    ]);
    let (names, warnings) = bed.turn().await;
    assert_eq!(names, ["one"]);
    assert!(
        warnings.len() == 1 && warnings[0].contains("is the name of one of the user's own tools"),
        "{warnings:?}"
    );
    assert_eq!(bed.turn().await.1, [""; 0], "told once");
}

/// TOOL-8: a turn keeps its working folder; `set_working_directory` takes effect with the next turn, also for
/// rules.
#[tokio::test]
async fn the_working_directory_changes_between_turns() {
    let bash = |id: &str| Scene::call(id, "bash", json!({ "command": "pwd" }));
    let script = ScriptedProvider::new([
        Scene::call("c1", "set_working_directory", json!({ "path": ".windlass" })),
        bash("c2"),
        Scene::text("moved"),
        bash("c3"),
        Scene::text("there"),
    ]);
    let bed = Bed::with_script(&[], script);
    let repo = fs::canonicalize(bed.root.path().join("repo")).unwrap();
    bed.turn().await;
    bed.turn().await;
    let seen = bed.provider.script.seen();
    let says = |request: usize, path: &Path| seen[request].ends_with(&format!(": {}", path.display()));
    assert!(says(2, &repo), "{}", seen[2]);
    assert!(says(4, &repo.join(".windlass")), "{}", seen[4]);
}
