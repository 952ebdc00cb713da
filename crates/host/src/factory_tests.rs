//! Several sessions of one process, in one folder and in two.

use std::fs;

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{Begin, Client, Commands, Event, EventStream, Label, Submission, UserReply, Waiting};
use windlass_core::clock::SystemClock;
use windlass_service::{Options, Service};
use windlass_sim::{Reply, Script};
use windlass_testkit::SimServer;

use super::*;
use windlass_config::trust::trust;

/// Variable that holds the root folder of a test that runs in a process of its own.
const ALONE_MARK: &str = "WINDLASS_TEST_ALONE_SESSIONS";

/// Two trusted projects, each with its model, its tool and its server.
struct Two {
    folders: [PathBuf; 2],
    sims: [SimServer; 2],
}

const NAMES: [&str; 2] = ["a", "b"];

impl Two {
    fn new(root: &Path, scripts: [Script; 2]) -> Self {
        let root = root.canonicalize().unwrap();
        let home = &environment::folders().unwrap();
        let two = Self {
            folders: NAMES.map(|name| root.join(name)),
            sims: scripts.map(SimServer::script),
        };
        let mut config = String::new();
        for (name, sim) in NAMES.iter().zip(&two.sims) {
            config.push_str(&format!(
                "[providers.{name}]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"sim-{name}\"\n\n",
                sim.url()
            ));
        }
        fs::create_dir_all(&home.config).unwrap();
        fs::write(home.config.join("config.toml"), config).unwrap();
        for (name, folder) in NAMES.iter().zip(&two.folders) {
            let own = folder.join(".windlass");
            fs::create_dir_all(&own).unwrap();
            let settings = format!("model = \"{name}/sim-{name}\"\n");
            fs::write(own.join("config.toml"), settings).unwrap();
            let tool =
                format!("tools:\n  - {{ name: only_{name}, description: x, category: read, cmd: pwd }}\n");
            fs::write(own.join("tools.yaml"), tool).unwrap();
            trust(home, &home.project(folder).unwrap()).unwrap();
        }
        two
    }

    fn models(&self, which: usize) -> Vec<String> {
        let requests = self.sims[which].requests();
        let models = requests.iter().map(|request| request.body["model"].as_str());
        models.map(|model| model.unwrap_or_default().to_owned()).collect()
    }
}

fn service(root: &Path, factory: &Arc<LocalFactory>) -> Service {
    Service::new(
        windlass_store::open(root.join("session.db"), windlass_core::clock::system()).unwrap(),
        Arc::clone(factory) as _,
        Arc::new(SystemClock::default()),
        windlass_store::owner(),
        Options::default(),
    )
}

/// Returns the environments of a run in this folder, whose own session has this id.
fn factory(folder: &Path, session: &str) -> Arc<LocalFactory> {
    let settings = Arc::new(environment::settings(&Given::default(), folder).unwrap());
    let models = Models::new(&settings, None);
    let spec = SessionSpec {
        require_done: false,
        ..SessionSpec::looking(folder, session)
    };
    Arc::new(LocalFactory::new(&settings, &models, spec, "owner"))
}

async fn begin(service: &Service, id: Option<&str>, folder: &Path) -> SessionId {
    let begin = Begin::New {
        id: id.map(SessionId::from),
        place: folder.display().to_string(),
        label: Label::default(),
        parent: None,
    };
    service.begin(begin).await.unwrap().id
}

async fn submit(service: &Service, session: &SessionId) -> EventStream {
    let submission = Submission::text(session.clone(), "go");
    service.submit(submission).await.unwrap()
}

/// Reads a turn to its end.
async fn ends(mut events: EventStream) {
    let mut last = None;
    while let Some(envelope) = events.next().await {
        last = Some(envelope.event);
    }
    assert!(matches!(last, Some(Event::Final { .. })), "{last:?}");
}

/// Runs a test in a process of its own, because the folders of a user come from the environment.
fn alone(name: &str, scripts: [Script; 2], test: impl AsyncFnOnce(&Two, &Path)) {
    if let Some(root) = std::env::var_os(ALONE_MARK) {
        windlass_providers::install_tls();
        let root = PathBuf::from(root);
        let two = Two::new(&root, scripts);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(test(&two, &root));
    }
    let root = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let run = std::process::Command::new(program)
        .args([&format!("factory::tests::{name}"), "--exact"])
        .env(ALONE_MARK, root.path())
        .env("HOME", root.path())
        .env("WINDLASS_HOME", root.path().join("home"))
        .output();
    let output = run.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// PROV-7, PROV-11, SES-15: a provider that is set up for a session is used from the next turn of that session,
/// and of no other: in the run's own session even if the service asks for its environment before it was prepared, in
/// a later session, and in a session of another folder.
#[test]
fn a_provider_is_set_up_for_its_session() {
    let fine = || Script::new().reply(Reply::text("fine").forever());
    alone("a_provider_is_set_up_for_its_session", [fine(), fine()], set_up);
}

async fn set_up(two: &Two, root: &Path) {
    let [folder, other] = &two.folders;
    let factory = factory(folder, "own");
    let service = service(root, &factory);
    let own = begin(&service, Some("own"), folder).await;
    factory.prepare(folder).unwrap();
    let later = begin(&service, None, folder).await;
    let elsewhere = begin(&service, None, other).await;
    for (session, provider) in [(&later, "b"), (&elsewhere, "a"), (&own, "b")] {
        ends(submit(&service, session).await).await;
        let said = factory.connect(session, provider, "").await.unwrap();
        assert!(said.contains("is used from the next turn"), "{said}");
        let before = [0, 1].map(|which| two.sims[which].count());
        ends(submit(&service, session).await).await;
        let turns = [0, 1].map(|which| two.sims[which].count() - before[which]);
        let expected = NAMES.map(|name| usize::from(name == provider));
        assert_eq!(turns, expected, "the turn of {session} after: {said}");
    }
    // Each first turn used the model of its folder, whatever the sessions before it had chosen.
    assert_eq!(two.models(0), ["sim-a"; 3]);
    assert_eq!(two.models(1), ["sim-b"; 3]);
    service.close().await;
}

/// SES-15: two sessions of one process work at the same time in two folders, each with its own model, tools and
/// settings; a model chosen in one is not the other's.
#[test]
fn two_sessions_at_once() {
    let write =
        |name: &str, content: &str| Reply::call("write_file", json!({"path": name, "content": content}));
    let ask = Reply::call("ask_user", json!({"question": "Continue?"}));
    let scripts = [
        Script::new()
            .reply(ask)
            .reply(write("made.txt", "by a\n"))
            .reply(Reply::text("fine").forever()),
        Script::new()
            .reply(write("made.txt", "by b\n"))
            .reply(Reply::text("fine").forever()),
    ];
    alone("two_sessions_at_once", scripts, both);
}

async fn both(two: &Two, root: &Path) {
    let [first, second] = &two.folders;
    let service = service(root, &factory(first, "none"));
    let (a, b) = (
        begin(&service, None, first).await,
        begin(&service, None, second).await,
    );

    // While the turn of the first session waits for an answer, the second runs a whole turn and changes its model.
    let mut waiting = submit(&service, &a).await;
    let call = loop {
        let event = waiting.next().await.expect("the turn asks").event;
        if let Event::Waiting(Waiting::Question { call_id, .. }) = event {
            break call_id;
        }
    };
    ends(submit(&service, &b).await).await;
    let reply = service.command(&b, "/model sim-9").await.unwrap();
    assert!(reply.text.contains("sim-9"), "{}", reply.text);
    let answer = UserReply::Text("yes".to_owned());
    assert!(service.reply(&a, &call, answer).await);
    ends(waiting).await;
    ends(submit(&service, &b).await).await;
    ends(submit(&service, &a).await).await;

    assert_eq!(two.models(0), ["sim-a"; 4]);
    assert_eq!(two.models(1), ["sim-b", "sim-b", "sim-9"]);
    for (place, (name, other)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        let folder = &two.folders[place];
        let made = fs::read_to_string(folder.join("made.txt")).unwrap();
        assert_eq!(made, format!("by {name}\n"));
        for request in two.sims[place].requests() {
            let body = request.body.to_string();
            let here = format!("working directory: {}", folder.display());
            assert!(body.contains(&here), "{body}");
            assert!(
                body.contains(&format!("only_{name}")) && !body.contains(&format!("only_{other}")),
                "{body}"
            );
        }
    }
    service.close().await;
}
