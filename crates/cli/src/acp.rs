//! `windlass acp`: an agent for editors, over standard input and output.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass_acp::{Host, NotAdmitted};
use windlass_api::SessionId;
use windlass_config::Problem;
use windlass_config::environment::{self, Given};
use windlass_core::clock::SystemClock;
use windlass_core::log::{LogError, Store};
use windlass_host::account::Account;
use windlass_host::connect::choose;
use windlass_host::extension::mcp::attach_servers;
use windlass_host::factory::{LocalFactory, SessionSpec};
use windlass_host::watch::Watch;
use windlass_sandbox::process;
use windlass_service::{Options, Service, SessionFactory};

use crate::engine::{BUFFER, LAST_CALL, ModelRuntime, working_directory};
use crate::exit::Exit;
use crate::observe::Wanted;
use crate::session_choice::{self, SessionChoice, SessionStore};
use crate::session_folder;
use crate::signals::Signals;
use windlass_args::AcpOptions;

/// Message for an editor whose user has not set up a model. Editors show it on one line.
const NO_MODEL: &str = "no model is set up: run `windlass connect` in a terminal, or start the editor with a key such as \
                        ANTHROPIC_API_KEY in its environment";

/// Time to wait for a session that is being closed, in steps.
const STEP: Duration = Duration::from_millis(20);
const STEPS: u32 = 150;

/// Sessions for a client that opens them in folders of its choice.
pub(crate) struct Sessions {
    pub(crate) service: Service,
    pub(crate) factory: Arc<LocalFactory>,
    pub(crate) store: Arc<dyn Store>,
    watch: Watch,
}

impl Sessions {
    /// Prepares sessions. `given` are the settings of the command line.
    pub(crate) async fn begin(given: &Given) -> Result<Self, Problem> {
        let keeper = SessionStore::begin(&SessionChoice::New)?;
        let cwd = working_directory(None)?;
        let settings = Arc::new(environment::settings(given, &cwd)?);
        let (which, wanted) = (SessionChoice::New, Wanted::default());
        let ModelRuntime { models, watch } =
            ModelRuntime::new(&settings, &keeper, &which, None, wanted).await?;
        let spec = SessionSpec {
            // No session works here, so each one reads the settings of its folder as they are then.
            cwd: PathBuf::from("/"),
            // Every session is one of many: none is the session that the run is about.
            session: SessionId::from(""),
            require_done: false,
            // The client's user is asked.
            interactive: true,
            given: given.clone(),
            watch: watch.clone(),
            store: Some(Arc::clone(&keeper.store) as _),
            prefixes: Arc::default(),
            indexes: Arc::default(),
            memory: Arc::default(),
            agent: None,
            account: Account::default(),
        };
        let owner = windlass_store::owner();
        let factory = Arc::new(LocalFactory::new(&settings, &models, spec, &owner));
        let service = Service::new(
            Arc::clone(&keeper.store) as _,
            Arc::clone(&factory) as _,
            Arc::new(SystemClock::default()),
            owner,
            Options {
                buffer: BUFFER,
                ..Options::default()
            },
        );
        Ok(Self {
            service,
            factory,
            store: keeper.store,
            watch,
        })
    }

    /// Ends all sessions, and waits for their processes.
    pub(crate) async fn end(self) {
        self.service.close().await;
        self.watch.close().await;
        process::settle(LAST_CALL).await;
    }
}

/// Serves one editor until it closes its end.
pub(crate) async fn acp(options: &AcpOptions) -> Result<Exit, Problem> {
    let signals = Signals::begin();
    let given = options.settings.given_with(options.flags());
    let sessions = Sessions::begin(&given).await?;
    let host = Arc::new(EditorHost {
        service: sessions.service.clone(),
        store: Arc::clone(&sessions.store),
        factory: Arc::clone(&sessions.factory),
        given,
    });
    let stop = CancellationToken::new();
    let _on_signal = stop_on_signal(signals.ready(), stop.clone());
    let backend = Arc::new(sessions.service.clone());
    windlass_acp::serve(backend, host, std::io::stdin(), std::io::stdout(), stop).await;
    sessions.end().await;
    Ok(Exit::Ok)
}

/// Returns the folder to work in, if a session may work there.
pub(crate) fn admit(given: &Given, place: &Path) -> Result<PathBuf, NotAdmitted> {
    let refuse = |problem: Problem| NotAdmitted::Place(problem.message);
    let real = std::fs::canonicalize(place);
    let real = real.map_err(|error| NotAdmitted::Place(format!("{}: {error}", place.display())))?;
    if !real.is_dir() {
        return Err(NotAdmitted::Place(format!("{} is not a folder", place.display())));
    }
    let settings = environment::settings(given, &real).map_err(refuse)?;
    session_folder::check(&settings, &real, false).map_err(refuse)?;
    match choose(&settings, &environment::var) {
        Err(problem) if problem.kind.is_of_provider() => Err(NotAdmitted::NoModel(NO_MODEL.to_owned())),
        // Any other problem is reported by the turn, and commands can fix it.
        _ => Ok(real),
    }
}

pub(crate) fn stop_on_signal(signals: Signals, stop: CancellationToken) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        signals.interrupted().await;
        stop.cancel();
    }))
}

/// Everything around the editor's sessions.
struct EditorHost {
    service: Service,
    store: Arc<dyn Store>,
    factory: Arc<LocalFactory>,
    /// Settings from the command line.
    given: Given,
}

#[async_trait]
impl Host for EditorHost {
    fn attach(&self, session: &SessionId, servers: &[serde_json::Value]) -> Vec<String> {
        attach_servers(session, servers)
    }

    fn admit(&self, place: &Path) -> Result<PathBuf, NotAdmitted> {
        admit(&self.given, place)
    }

    fn ready(&self) -> Result<(), String> {
        let cwd = working_directory(None).map_err(|problem| problem.message)?;
        let settings = environment::settings(&self.given, &cwd).map_err(|problem| problem.message)?;
        match choose(&settings, &environment::var) {
            Ok(_) => Ok(()),
            Err(problem) if problem.kind.is_of_provider() => Err(NO_MODEL.to_owned()),
            Err(problem) => Err(problem.message),
        }
    }

    fn leave(&self, session: &SessionId) {
        self.service.leave(session);
    }

    async fn delete(&self, session: &SessionId) -> Result<(), String> {
        self.service.leave(session);
        for step in 0..STEPS {
            match self.store.delete(session).await {
                Ok(()) | Err(LogError::Unknown(_)) => break,
                Err(LogError::Busy { .. }) if step + 1 < STEPS => tokio::time::sleep(STEP).await,
                Err(error) => return Err(session_choice::problem(error).message),
            }
        }
        self.service.forget(session);
        self.factory.forget(session).await;
        Ok(())
    }
}
