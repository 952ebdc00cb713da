//! What a run works with: a store, models, a service, and one session that has begun; and how it all ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_api::{Client, ClientError, SessionId, SessionInfo};
use windlass_core::clock::SystemClock;
use windlass_core::log::SharedRecorder;
use windlass_sandbox::process;
use windlass_service::{ExchangeRecorder, Options, Service};

use crate::session_choice::{self, SessionChoice, SessionStore};
use windlass_config::environment::Given;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::factory::{LocalFactory, SessionSpec};
use windlass_host::model_preference::ModelPreference;
use windlass_host::models::Models;

/// How long child processes may take to die before we exit all the same.
const LAST_CALL: Duration = Duration::from_secs(3);

/// How many live events may wait for a front end that draws: a second of a fast model.
const BUFFER: usize = 16_384;

/// The models of a run, and what keeps what goes over the wire.
pub(crate) struct ModelRuntime {
    pub(crate) roster: Models,
    pub(crate) recorder: Option<Arc<ExchangeRecorder>>,
}

impl ModelRuntime {
    /// Nothing is connected yet. What the channel was told to use last is restored, unless nothing is kept.
    pub(crate) async fn new(
        settings: &Arc<Settings>,
        keeper: &SessionStore,
        which: &SessionChoice,
        remembered: Option<ModelPreference>,
    ) -> Self {
        let recorder = match which {
            SessionChoice::Ephemeral => None,
            _ => recorder(settings, keeper),
        };
        let tape = recorder.clone().map(|recorder| recorder as SharedRecorder);
        let remembered = remembered.filter(|_| *which != SessionChoice::Ephemeral);
        let roster = Models::new(settings, remembered).recorded(tape);
        roster.restore().await;
        Self { roster, recorder }
    }
}

/// OBS-2: keeps what goes over the wire, unless that is off.
fn recorder(settings: &Settings, keeper: &SessionStore) -> Option<Arc<ExchangeRecorder>> {
    let session = &settings.agent.session;
    let limit = session.record_max_mb.saturating_mul(1 << 20);
    session
        .record
        .then(|| ExchangeRecorder::new(Arc::clone(&keeper.store) as _, limit))
}

/// SessionChoice session a run works in, and how.
pub(crate) struct Plan {
    pub(crate) cwd: PathBuf,
    pub(crate) which: SessionChoice,
    /// Whether that session is copied first.
    pub(crate) fork: bool,
    pub(crate) require_done: bool,
    /// Whether somebody answers questions.
    pub(crate) interactive: bool,
    /// What the command line says of settings.
    pub(crate) given: Given,
    /// Keeps what goes over the wire.
    pub(crate) recorder: Option<Arc<ExchangeRecorder>>,
}

/// A service with a session that has begun.
pub(crate) struct Engine {
    pub(crate) backend: Arc<Service>,
    /// The session.
    pub(crate) session: SessionInfo,
    /// The one that is gone on with, as it was before.
    pub(crate) past: Option<SessionInfo>,
    keeper: SessionStore,
    recorder: Option<Arc<ExchangeRecorder>>,
}

impl Engine {
    pub(crate) async fn start(
        settings: &Arc<Settings>,
        roster: &Models,
        plan: Plan,
        keeper: SessionStore,
    ) -> Result<Self, Problem> {
        let (begin, session, past) =
            session_choice::begin(&*keeper.store, &plan.which, plan.fork, &plan.cwd).await?;
        let purpose = SessionSpec {
            cwd: plan.cwd,
            session: session.clone(),
            require_done: plan.require_done,
            interactive: plan.interactive,
            given: plan.given,
            recorder: plan.recorder.clone(),
            store: Some(Arc::clone(&keeper.store) as _),
            prefixes: Arc::default(),
        };
        let workshop = Arc::new(LocalFactory::new(settings, roster, purpose));
        let service = Service::new(
            Arc::clone(&keeper.store) as _,
            Arc::clone(&workshop) as _,
            Arc::new(SystemClock::default()),
            windlass_store::owner(),
            Options {
                buffer: BUFFER,
                ..Options::default()
            },
        );
        // While the bench is made, the store is opened and the session written down.
        let (begun, prepared) = tokio::join!(service.begin(begin), async { workshop.prepare() });
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
                // A store that could not be opened knows why.
                keeper.ready().await?;
                return Err(not_begun(error));
            }
        };
        Ok(Self {
            backend: Arc::new(service),
            session,
            past,
            keeper,
            recorder: plan.recorder,
        })
    }

    /// Ends every session and process. Of these sessions, those go in which nothing happened.
    pub(crate) async fn stop(self, unused: &[&SessionId]) {
        self.backend.close().await;
        if let Some(recorder) = &self.recorder {
            recorder.close().await;
        }
        for session in unused {
            session_choice::drop_unused(&*self.keeper.store, session).await;
        }
        process::settle(LAST_CALL).await;
    }
}

/// What a session that could not be used says, with its exit code.
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

/// The folder to work in.
pub(crate) fn working_directory(given: Option<&Path>) -> Result<PathBuf, Problem> {
    let here = std::env::current_dir()
        .map_err(|error| Problem::usage(format!("the current folder cannot be used: {error}")))?;
    let Some(given) = given else { return Ok(here) };
    let path = here.join(given);
    match std::fs::canonicalize(&path) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(Problem::usage(format!(
            "--cd {}: this is not a folder",
            given.display()
        ))),
        Err(error) => Err(Problem::usage(format!("--cd {}: {error}", given.display()))),
    }
}
