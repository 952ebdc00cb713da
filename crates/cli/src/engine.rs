//! The parts of a run: a store, models, a service and one started session, and their shutdown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_api::{Client, ClientError, Connections, SessionId, SessionInfo};
use windlass_core::clock::SystemClock;
use windlass_core::log::SharedRecorder;
use windlass_host::account::Account;
use windlass_sandbox::process;
use windlass_service::{ExchangeRecorder, Options, Service};

use crate::observe::{RunObserver, Wanted};
use crate::session_choice::{self, NewSession, SessionChoice, SessionStore};
use windlass_config::environment::Given;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind, environment};
use windlass_host::factory::{LocalFactory, SessionSpec};
use windlass_host::model_preference::ModelPreference;
use windlass_host::models::Models;
use windlass_host::watch::{Observer, Watch};

/// Maximum time for child processes to end before Windlass exits anyway.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(3);

/// Maximum number of live events buffered for a front end that is drawing: a second of a fast model.
pub(crate) const BUFFER: usize = 16_384;

/// The models of a run, and what observes it.
pub(crate) struct ModelRuntime {
    pub(crate) models: Models,
    pub(crate) watch: Watch,
}

impl ModelRuntime {
    /// Prepares the models without connecting. Restores the last choice of the channel, unless the session is
    /// not saved.
    pub(crate) async fn new(
        settings: &Arc<Settings>,
        keeper: &SessionStore,
        which: &SessionChoice,
        remembered: Option<ModelPreference>,
        wanted: Wanted<'_>,
    ) -> Result<Self, Problem> {
        let recorder = match which {
            SessionChoice::Ephemeral => None,
            _ => recorder(settings, keeper),
        };
        let shared = recorder.clone().map(|recorder| recorder as SharedRecorder);
        let (observer, shared) = RunObserver::start(settings, &keeper.store, wanted, shared)?;
        let remembered = remembered.filter(|_| *which != SessionChoice::Ephemeral);
        let models = Models::new(settings, remembered).recorded(shared);
        models.restore().await;
        let observer = observer.map(|observer| observer as Arc<dyn Observer>);
        let watch = Watch { recorder, observer };
        Ok(Self { models, watch })
    }
}

/// OBS-2: creates the recorder of requests and replies, unless recording is off.
fn recorder(settings: &Settings, keeper: &SessionStore) -> Option<Arc<ExchangeRecorder>> {
    let session = &settings.agent.session;
    let limit = session.record_max_mb.saturating_mul(1 << 20);
    session
        .record
        .then(|| ExchangeRecorder::new(Arc::clone(&keeper.store) as _, limit))
}

/// The session a run works in, and its options.
pub(crate) struct Plan {
    pub(crate) cwd: PathBuf,
    pub(crate) which: SessionChoice,
    /// True if the session is copied first.
    pub(crate) fork: bool,
    pub(crate) require_done: bool,
    /// True if a user can answer requests.
    pub(crate) interactive: bool,
    /// Settings from the command line.
    pub(crate) given: Given,
    /// Observes the run.
    pub(crate) watch: Watch,
    /// Id and name of a new session.
    pub(crate) new: NewSession,
}

/// A service with a started session.
pub(crate) struct Engine {
    pub(crate) backend: Arc<Service>,
    /// Sets up providers for the sessions.
    pub(crate) connections: Arc<dyn Connections>,
    /// The session.
    pub(crate) session: SessionInfo,
    /// The resumed session, as it was before.
    pub(crate) past: Option<SessionInfo>,
    keeper: SessionStore,
    watch: Watch,
}

impl Engine {
    pub(crate) async fn start(
        settings: &Arc<Settings>,
        models: &Models,
        plan: Plan,
        keeper: SessionStore,
    ) -> Result<Self, Problem> {
        let (begin, session, past) =
            session_choice::begin(&*keeper.store, (&plan.which, &plan.new), plan.fork, &plan.cwd).await?;
        // A session that is resumed works in its own folder, wherever it is resumed from.
        let place = match &past {
            Some(info) if !plan.fork => PathBuf::from(&info.place),
            _ => plan.cwd.clone(),
        };
        let watch = plan.watch.clone();
        let owner = windlass_store::owner();
        let (service, factory) = service(settings, models, plan, (&session, owner), &keeper);
        // The store is opened and the session recorded while the environment is created.
        let (begun, prepared) = tokio::join!(service.begin(begin), async { factory.prepare(&place) });
        if let Err(problem) = prepared {
            keeper.ready().await?;
            if past.is_none() {
                session_choice::drop_unused(&*keeper.store, &session).await;
            }
            return Err(problem);
        }
        let session = match begun {
            Ok(session) => session,
            Err(error) => {
                // If the store could not be opened, its own error explains why.
                keeper.ready().await?;
                return Err(not_begun(error));
            }
        };
        service.mark_orphans();
        Ok(Self {
            backend: Arc::new(service),
            connections: factory,
            session,
            past,
            keeper,
            watch,
        })
    }

    /// Ends every session of this engine. Other engines in this process, and their processes, go on.
    pub(crate) async fn close(&self) {
        self.backend.close().await;
        self.watch.close().await;
    }

    /// Ends every session and process. Deletes those of the given sessions that were never used.
    pub(crate) async fn stop(self, unused: &[&SessionId]) {
        self.close().await;
        for session in unused {
            session_choice::drop_unused(&*self.keeper.store, session).await;
        }
        process::settle(LAST_CALL).await;
    }
}

/// Creates a service over the store, and the factory of its sessions. `session` is the one that the run is
/// about, `owner` names this process in the store.
pub(crate) fn service(
    settings: &Arc<Settings>,
    models: &Models,
    plan: Plan,
    (session, owner): (&SessionId, String),
    keeper: &SessionStore,
) -> (Service, Arc<LocalFactory>) {
    let spec = SessionSpec {
        cwd: plan.cwd,
        session: session.clone(),
        require_done: plan.require_done,
        interactive: plan.interactive,
        given: plan.given,
        watch: plan.watch,
        store: Some(Arc::clone(&keeper.store) as _),
        prefixes: Arc::default(),
        indexes: Arc::default(),
        memory: Arc::default(),
        agent: None,
        account: Account::default(),
    };
    let factory = Arc::new(LocalFactory::new(settings, models, spec));
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
    (service, factory)
}

/// Converts the error of a session that could not be used, with its exit code.
pub(crate) fn not_begun(error: ClientError) -> Problem {
    let kind = match &error {
        ClientError::Busy(_) | ClientError::QueueFull(_) | ClientError::CommandBusy { .. } => {
            ProblemKind::Busy
        }
        ClientError::Empty | ClientError::Unknown(_) | ClientError::CommandUsage(_) => ProblemKind::Usage,
        ClientError::Closed(_) | ClientError::Setup(_) | ClientError::Command(_) => ProblemKind::Failed,
        ClientError::Store(_) => ProblemKind::Store,
    };
    Problem::new(kind, error.to_string())
}

/// Returns a folder whose path is text, as that of a session must be.
fn named(folder: PathBuf) -> Result<PathBuf, Problem> {
    if folder.to_str().is_some() {
        return Ok(folder);
    }
    Err(Problem::usage(format!(
        "{}: a session cannot work in this folder, because its path is not UTF-8 text; rename the folder",
        folder.display()
    )))
}

/// Returns the folder to work in.
pub(crate) fn working_directory(given: Option<&Path>) -> Result<PathBuf, Problem> {
    let here = environment::current_dir()
        .map_err(|error| Problem::usage(format!("the current folder cannot be used: {error}")))?;
    let Some(given) = given else { return named(here) };
    let path = here.join(given);
    match std::fs::canonicalize(&path) {
        Ok(path) if path.is_dir() => named(path),
        Ok(_) => Err(Problem::usage(format!(
            "--cd {}: this is not a folder",
            given.display()
        ))),
        Err(error) => Err(Problem::usage(format!("--cd {}: {error}", given.display()))),
    }
}
