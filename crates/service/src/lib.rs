//! Runs sessions. Each live session is a task that owns its state; idle ones exist only in the store.
//!
//! [`Service`] is the [`Client`] that front ends use, and carries out their [`Commands`]. It is given a
//! [`Store`], which holds the log, and a [`SessionFactory`], which creates the environment of each session: a
//! model, tools, rules. It knows no provider, no tool and no database by name.
//!
//! An input is stored before it is acted on, and every state event is stored before the next step. The end of
//! a turn is on disk before it is reported. A killed process leaves a record that
//! [`windlass_core::log::recover`] completes when the session is opened again.
//!
//! Deliberately absent: any access to a session except through its id, and any state that is not in the log.

mod actor;
mod agents;
mod cluster;
mod commands;
pub mod context_report;
mod dormant;
mod environment;
mod feed;
mod fork;
pub mod format;
mod goal;
mod handle;
mod inputs;
mod keyed;
mod orphans;
pub mod past;
mod pins;
mod queries;
mod queue;
mod recorder;
mod replies;
mod sink;
mod title;
mod turn;
mod why;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{
    Begin, CallId, Client, ClientError, CommandInfo, CommandReply, Commands, EventStream, Follow, Presence,
    SessionId, SessionInfo, Submission, UserName, UserReply, WaitOn, command_line,
};
use windlass_core::clock::Clock;
use windlass_core::hook::{Hook, SessionOpening};
use windlass_core::log::{LogError, NewSession, Opened, Store};

use self::actor::{SessionActor, SessionRequest};
pub use self::agents::{
    AgentCatalog, AgentModel, AgentTools, AgentType, MAX_TURNS, agent_line, agent_lines, goal_lines,
};
use self::commands::Then;
use self::dormant::Dormant;
pub use self::environment::{
    AgentCopies, AutonomyLimits, ChooseError, Chosen, Defined, DefinedCommand, EffortSwitch, EnvFacts,
    ExtensionCommand, ExtensionReply, Extensions, FolderFiles, Goals, Granted, MergedCopy, ModelChoice,
    ModelSwitch, NotReady, Permissions, ScheduledJobs, SessionEnv, SessionFactory, SessionHost,
    SupervisorLimits, SupervisorModel, Titles, ToolInfo, TurnPlan, TurnStart, UserCommand,
};
use self::handle::SessionHandle;
use self::keyed::Routed;
use self::queue::Input;
pub use self::recorder::ExchangeRecorder;
use self::sink::Sink;

/// Maximum number of requests that wait for a session's task. The task takes them immediately, so the queue
/// stays short.
const REQUESTS: usize = 64;

/// Options of the service.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Time an idle session stays in memory.
    pub idle: Duration,
    /// Maximum number of inputs queued for a busy session.
    pub queue: usize,
    /// Number of live events a slow reader may be behind before it misses some.
    pub buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(300),
            queue: 8,
            buffer: 64,
        }
    }
}

/// Runs sessions in this process. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) factory: Arc<dyn SessionFactory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    /// Name of this process as the owner of sessions.
    pub(crate) owner: String,
    /// Session tasks, and their background work.
    pub(crate) tasks: TaskTracker,
    /// Calls that were abandoned. Nothing waits for them.
    pub(crate) strays: TaskTracker,
    /// Cancels work that nothing waits for.
    pub(crate) closing: CancellationToken,
    /// Sessions that are or were live here.
    live: Mutex<HashMap<SessionId, LiveSession>>,
    /// Feeds of sessions that are only watched.
    pub(crate) dormant: Dormant,
    /// Allows opening one session at a time, so that none is opened twice.
    opening: tokio::sync::Mutex<()>,
    /// Hook of every turn of this process.
    pub(crate) guard: OnceLock<Arc<dyn Hook>>,
}

/// A live session, seen from outside.
#[derive(Clone)]
struct LiveSession {
    requests: mpsc::Sender<SessionRequest>,
    sink: Arc<Sink>,
    handle: SessionHandle,
}

impl Service {
    /// Creates a service over a store. `owner` names this process to others that share the store.
    pub fn new(
        store: Arc<dyn Store>,
        factory: Arc<dyn SessionFactory>,
        clock: Arc<dyn Clock>,
        owner: String,
        options: Options,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                factory,
                clock,
                options,
                owner,
                tasks: TaskTracker::new(),
                strays: TaskTracker::new(),
                closing: CancellationToken::new(),
                live: Mutex::default(),
                dormant: Dormant::default(),
                opening: tokio::sync::Mutex::default(),
                guard: OnceLock::new(),
            }),
        }
    }

    /// Ends every live session: running turns are canceled and recorded, and leases are released.
    pub async fn close(&self) {
        self.inner.closing.cancel();
        let sessions: Vec<LiveSession> = self.lock().values().cloned().collect();
        for live in sessions {
            let _ = live.requests.send(SessionRequest::Close).await;
            live.handle.stop();
        }
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        let sessions: Vec<LiveSession> = self.lock().drain().map(|(_, live)| live).collect();
        for mut env in sessions.iter().filter_map(|live| live.handle.parked()) {
            env.close().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, LiveSession>> {
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session, if it is live here.
    fn known(&self, session: &SessionId) -> Option<LiveSession> {
        let live = self.lock().get(session).cloned();
        live.filter(|live| !live.requests.is_closed())
    }

    /// Returns the live session; opens it if it is not live.
    async fn open(&self, session: &SessionId) -> Result<LiveSession, ClientError> {
        if let Some(live) = self.known(session) {
            return Ok(live);
        }
        let _opening = self.inner.opening.lock().await;
        // Another caller may have been faster.
        if let Some(live) = self.known(session) {
            return Ok(live);
        }
        let opened = self.inner.store.open(session, &self.inner.owner).await;
        self.enliven(opened.map_err(refused)?, SessionOpening::Resumed)
            .await
    }

    async fn enliven(&self, opened: Opened, opening: SessionOpening) -> Result<LiveSession, ClientError> {
        let session = opened.info.id.clone();
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let before = self.lock().get(&session).map(|live| live.handle.clone());
        let handle = before.unwrap_or_default();
        agents::open(&self.inner, &opened.info, &handle.family).await;
        let (last, is_taken_over) = (opened.info.last_seq, opened.dropped.is_some());
        let feed = self.inner.dormant.wake(&session, last, self.inner.options.buffer);
        if self.inner.guard.get().is_some() {
            feed.hold_back();
        }
        let sink = Sink::new(
            Arc::clone(&self.inner.store),
            Arc::clone(&self.inner.clock),
            opened.lease.clone(),
            feed,
            last,
        );
        let live = LiveSession {
            requests,
            sink: Arc::new(sink),
            handle,
        };
        let actor = SessionActor::begin(
            Arc::clone(&self.inner),
            opened,
            Arc::clone(&live.sink),
            live.handle.clone(),
        )
        .await?;
        let events = is_taken_over.then(|| live.sink.feed().reader());
        self.inner.tasks.spawn(actor.run(opening, inbox));
        self.lock().insert(session.clone(), live.clone());
        if let Some(events) = events {
            agents::taken_over(self, &live, events);
        }
        self.inner.dormant.remove(&session);
        // The service may have been closed before this session was registered.
        if self.inner.closing.is_cancelled() {
            let _ = live.requests.send(SessionRequest::Close).await;
            live.handle.stop();
        }
        Ok(live)
    }

    async fn request<T>(
        &self,
        session: &SessionId,
        request: impl FnOnce(oneshot::Sender<T>) -> SessionRequest,
    ) -> Result<T, ClientError> {
        let live = self.open(session).await?;
        let (answer, answered) = oneshot::channel();
        let gone = || ClientError::Closed(session.clone());
        live.requests.send(request(answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

#[async_trait]
impl Client for Service {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        let now = self.inner.clock.now();
        let mut opening = SessionOpening::New;
        let (user, begin) = self.owner_of(begin).await?;
        let opened = match begin {
            Begin::As { begin, .. } => return self.begin(*begin).await,
            Begin::Instead { of, begin } => {
                let info = self.begin(*begin).await?;
                if info.id != of {
                    self.leave(&of);
                }
                return Ok(info);
            }
            Begin::New {
                id,
                place,
                label,
                parent,
            } => {
                let new = NewSession {
                    id,
                    parent,
                    label,
                    place,
                    time: now,
                    user,
                };
                self.inner.store.create(new, &self.inner.owner).await
            }
            Begin::Keyed { key, place } => {
                match keyed::route(&self.inner, &key, (&user, place), now).await? {
                    Routed::New(opened) => Ok(*opened),
                    Routed::Known(session) => return self.begin(Begin::Resume(session)).await,
                }
            }
            Begin::Resume(session) => return self.resume(&session).await,
            Begin::Fork { of, after, id, place } => {
                opening = SessionOpening::Forked;
                let new = NewSession {
                    id,
                    place: place.unwrap_or_default(),
                    time: now,
                    user,
                    ..NewSession::default()
                };
                fork::fork(&self.inner, &of, after, new).await
            }
        }
        .map_err(refused)?;
        let info = opened.info.clone();
        self.enliven(opened, opening).await?;
        Ok(info)
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let session = submission.session.clone();
        let live = self.open(&session).await?;
        // Created before the input is accepted, so that no event of its turn is missed.
        let reader = live.sink.feed().reader();
        let input = Input::new(submission, live.handle.stops.count(), self.inner.clock.now())?;
        let waits = self
            .request(&session, |answer| SessionRequest::Submit(input, answer))
            .await??;
        Ok(reader.turn(waits))
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        let live = self.lock().get(session).cloned();
        live.is_some_and(|live| live.handle.stop())
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool {
        let live = self.lock().get(session).cloned();
        live.is_some_and(|live| live.handle.replies.give(call, reply))
    }

    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        let Some(live) = self.known(session) else {
            return self.follow_dormant(session, after).await;
        };
        let store = Arc::clone(&self.inner.store);
        Ok(live.sink.feed().follow(session.clone(), after, store))
    }

    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError> {
        let live = self.open(session).await?;
        let reader = live.sink.feed().reader();
        self.request(session, SessionRequest::Summarize).await??;
        Ok(reader.turn(None))
    }
}

#[async_trait]
impl Commands for Service {
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo> {
        let asked = self.request(session, SessionRequest::Catalog);
        asked.await.unwrap_or_else(|_| commands::built_in())
    }

    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String> {
        let line = line.to_owned();
        let asked = self.request(session, |answer| SessionRequest::Complete(line, answer));
        asked.await.unwrap_or_default()
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        if command_line(line).is_some_and(|typed| typed.name.eq_ignore_ascii_case("why")) {
            // The session's task may be waiting for the same lock.
            let chain = self.why(session).await;
            if chain.iter().any(|wait| wait.on == WaitOn::Lock) {
                return Ok(CommandReply {
                    text: why::lines(&chain),
                    follow: Follow::Nothing,
                });
            }
        }
        // Created before the command runs, so that no event of the work that it starts is missed.
        let reader = self.open(session).await?.sink.feed().reader();
        let line = line.to_owned();
        let asked = self.request(session, |answer| SessionRequest::Command(line, answer));
        let said = asked.await??;
        let follow = match said.then {
            Then::Nothing => Follow::Nothing,
            Then::Submit(parts) => Follow::Submit(parts),
            Then::Session(info) => Follow::Session(info),
            Then::Summarize => Follow::Watch(self.summarize(session).await?),
            Then::Shell(command) => Follow::Watch(self.shell(session, command).await?),
            Then::Edit { command, text } => Follow::Edit { command, text },
            Then::Pursue => Follow::Watch(reader.work()),
            Then::Verify => {
                self.request(session, SessionRequest::Verify).await??;
                Follow::Watch(reader.turn(None))
            }
            Then::Leave => Follow::Leave,
        };
        Ok(CommandReply {
            text: said.text,
            follow,
        })
    }
}

impl Service {
    pub(crate) fn of(inner: &Arc<Inner>) -> Self {
        Self {
            inner: Arc::clone(inner),
        }
    }

    /// Runs a command of the user, and returns its events.
    async fn shell(&self, session: &SessionId, command: String) -> Result<EventStream, ClientError> {
        let live = self.open(session).await?;
        let reader = live.sink.feed().reader();
        self.request(session, |answer| SessionRequest::Shell(command, answer))
            .await??;
        Ok(reader.turn(None))
    }

    /// DIST-7: takes the user off a request. A session of another user that it names does not exist for this one.
    async fn owner_of(&self, begin: Begin) -> Result<(UserName, Begin), ClientError> {
        let Begin::As { user, begin } = begin else {
            return Ok((UserName::default(), begin));
        };
        let named = match &*begin {
            Begin::Resume(session) | Begin::Fork { of: session, .. } => Some(session),
            Begin::New { parent, .. } => parent.as_ref(),
            Begin::As { .. } | Begin::Keyed { .. } | Begin::Instead { .. } => None,
        };
        if let Some(session) = named
            && self.info(session).await?.is_none_or(|info| info.user != user)
        {
            return Err(ClientError::Unknown(session.clone()));
        }
        Ok((user, *begin))
    }

    async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, ClientError> {
        self.inner.store.get(session).await.map_err(refused)
    }

    /// Opens a session, unless it is already live in this process.
    async fn resume(&self, session: &SessionId) -> Result<SessionInfo, ClientError> {
        let _opening = self.inner.opening.lock().await;
        if self.known(session).is_some() {
            let info = self.info(session).await?;
            return info.ok_or_else(|| ClientError::Unknown(session.clone()));
        }
        let opened = self.inner.store.open(session, &self.inner.owner).await;
        let opened = opened.map_err(refused)?;
        let info = opened.info.clone();
        self.enliven(opened, SessionOpening::Resumed).await?;
        Ok(info)
    }

    /// The front end leaves a session. The session ends when nothing is left to do in it, and other processes
    /// can open it.
    pub fn leave(&self, session: &SessionId) {
        if let Some(live) = self.known(session) {
            // A session with a full queue is not idle. Waiting is not possible: the caller may be the session
            // itself.
            let _ = live.requests.try_send(SessionRequest::Leave);
        }
    }

    /// Drops all state of a deleted session.
    pub fn forget(&self, session: &SessionId) {
        self.lock().remove(session);
    }
}

/// Converts an error of the store for a front end.
pub(crate) fn refused(error: LogError) -> ClientError {
    match error {
        LogError::Unknown(session) => ClientError::Unknown(session),
        LogError::Busy { session, .. } => ClientError::Busy(session),
        other => ClientError::Store(other.to_string()),
    }
}
