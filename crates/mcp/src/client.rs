//! The connection to one server.

#![allow(
    deprecated,
    reason = "roots, completions and log messages are for servers of earlier revisions"
)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationCapability, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, Root, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext,
    RunningService,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_core::id::SessionId;
use windlass_core::tool::{CallModel, Person, Progress};
use windlass_sandbox::process::{Duplex, Tree};

use crate::config::{EraChoice, McpError, McpServerConfig, McpTransport, SamplingLimits, StdioServer};
use crate::content;
use crate::meter::Meter;
use crate::repair::Readable;
use crate::set::Environment;

/// Lines of the log that are kept.
const LOG_LINES: usize = 200;
/// Longest kept line of the log.
const LOG_LINE: usize = 500;
/// Bytes of a line of messages that are read at once.
const MESSAGE_LINE: u64 = 64_000;
/// Time to learn how a process ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// State that the connection shares with the server's other parts.
#[derive(Default)]
pub(crate) struct Hub {
    calls: Mutex<Vec<(u64, CallLink)>>,
    next: AtomicU64,
    log: Mutex<VecDeque<String>>,
    /// Tools that were left out of the list that is being read, each with the reason.
    left_out: Mutex<Vec<String>>,
    /// The turn that asked the model last, and the number of its requests.
    sampled: Mutex<(CallModel, usize)>,
    /// True once the server said that its lists changed.
    pub(crate) has_changed: AtomicBool,
}

impl Hub {
    /// Registers a running call, which receives progress and answers questions until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>, link: CallLink) -> ActiveCall {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls).push((id, link));
        ActiveCall {
            hub: Arc::clone(self),
            id,
        }
    }

    pub(crate) fn note(&self, text: &str) {
        let mut log = lock(&self.log);
        if log.len() >= LOG_LINES {
            log.pop_front();
        }
        log.push_back(content::line(text, LOG_LINE));
    }

    pub(crate) fn leave_out(&self, text: String) {
        let mut left_out = lock(&self.left_out);
        if left_out.len() < LOG_LINES {
            left_out.push(text);
        }
    }

    /// Takes the tools that were left out.
    pub(crate) fn left_out(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.left_out))
    }

    pub(crate) fn log(&self) -> Vec<String> {
        lock(&self.log).iter().cloned().collect()
    }

    /// Counts a request to the model, and returns false if the turn has used up its number.
    pub(crate) fn admits(&self, model: &CallModel, limit: usize) -> bool {
        let mut sampled = lock(&self.sampled);
        if !sampled.0.is_of_turn(model) {
            *sampled = (model.clone(), 0);
        }
        let is_free = sampled.1 < limit;
        sampled.1 += usize::from(is_free);
        is_free
    }

    /// Returns the connections of the latest call.
    pub(crate) fn link(&self) -> Option<CallLink> {
        lock(&self.calls).last().map(|(_, link)| link.clone())
    }
}

/// Connections of a running call, for what its server asks meanwhile.
#[derive(Clone)]
pub(crate) struct CallLink {
    pub(crate) progress: Progress,
    pub(crate) person: Person,
    pub(crate) model: CallModel,
    pub(crate) session: Option<SessionId>,
    pub(crate) cancel: CancellationToken,
}

/// A running call.
pub(crate) struct ActiveCall {
    hub: Arc<Hub>,
    id: u64,
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        lock(&self.hub.calls).retain(|(id, _)| *id != self.id);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers what a server asks.
pub(crate) struct Handler {
    server: String,
    pub(crate) hub: Arc<Hub>,
    /// Address of the workspace, if the server may know it.
    root: Option<String>,
    /// Limits of its requests to the model, if it may send any.
    sampling: Option<SamplingLimits>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        if self.root.is_some() {
            capabilities.roots = Some(Default::default());
        }
        if self.sampling.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let client = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.root.iter().map(|uri| Root::new(uri.clone())).collect();
        Ok(ListRootsResult::new(roots))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = crate::sampling::sample(&self.server, self.sampling, request, &self.hub).await;
        match &asked {
            Ok(answered) => self.hub.note(&format!("asked the model {}", answered.model)),
            Err(error) => self
                .hub
                .note(&format!("asked the model, and got none: {}", error.message)),
        }
        asked
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let person = self.hub.link().map(|link| link.person);
        self.hub.note("asked for input");
        Ok(crate::elicit::elicit(&self.server, request, person).await)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = content::line(params.message.as_deref().unwrap_or_default(), LOG_LINE);
        let total = params.total.map(|total| format!("/{total}")).unwrap_or_default();
        let text = format!("{}{total} {message}\n", params.progress);
        if let Some((_, link)) = lock(&self.hub.calls).last() {
            link.progress.send(&text);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let data = match params.data.as_str() {
            Some(text) => text.to_owned(),
            None => params.data.to_string(),
        };
        self.hub.note(&data);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hub.has_changed.store(true, Ordering::Relaxed);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hub.has_changed.store(true, Ordering::Relaxed);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hub.has_changed.store(true, Ordering::Relaxed);
    }
}

/// An open connection. Dropping it ends the server's process.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) meter: Meter,
    /// Fires when the process has ended; never for a server behind a URL.
    pub(crate) ended: CancellationToken,
    /// The text about the end of the process.
    last_words: Arc<Mutex<Option<String>>>,
    _stop: DropGuard,
}

impl Connection {
    /// A connection with a server behind a URL.
    pub(crate) fn remote(
        service: RunningService<RoleClient, Handler>,
        meter: Meter,
        stop: DropGuard,
    ) -> Self {
        Self {
            service,
            meter,
            ended: CancellationToken::new(),
            last_words: Arc::default(),
            _stop: stop,
        }
    }

    /// Returns how the process ended, if it does within a moment.
    pub(crate) async fn end(&self) -> Option<String> {
        let _ = tokio::time::timeout(LAST_WORDS, self.ended.cancelled()).await;
        if self.meter.is_exceeded() {
            return Some("it was stopped because it sent too much".to_owned());
        }
        lock(&self.last_words).clone()
    }
}

/// Failure to connect.
pub(crate) enum Failure {
    /// The server answered the first request with an error: it may speak another revision.
    Rejected(McpError),
    /// Anything else.
    Broken(McpError),
}

impl Failure {
    fn into_error(self) -> McpError {
        match self {
            Self::Rejected(error) | Self::Broken(error) => error,
        }
    }
}

/// Connects with a server. The caller limits the time.
pub(crate) async fn connect(
    config: &McpServerConfig,
    hub: &Arc<Hub>,
    around: &Environment,
) -> Result<Connection, McpError> {
    let remembered = around.eras.is_modern(config);
    let is_process = matches!(config.transport, McpTransport::Stdio(_));
    let first = match config.era {
        EraChoice::Modern => true,
        EraChoice::Legacy => false,
        // Older processes hang or end when they are asked for the stateless revision.
        EraChoice::Auto => remembered.unwrap_or(!is_process),
    };
    let failure = match attempt(config, hub, around, first).await {
        Ok(connection) => {
            around.eras.remember(config, first);
            return Ok(connection);
        }
        Err(failure) => failure,
    };
    let may_retry = match &failure {
        Failure::Rejected(_) => true,
        Failure::Broken(error) if wants_person(error) => false,
        Failure::Broken(_) => remembered.is_some() || !is_process,
    };
    if config.era != EraChoice::Auto || !may_retry {
        return Err(failure.into_error());
    }
    match attempt(config, hub, around, !first).await {
        Ok(connection) => {
            around.eras.remember(config, !first);
            Ok(connection)
        }
        Err(Failure::Broken(error)) if wants_person(&error) => Err(error),
        Err(_) => match &config.transport {
            McpTransport::Stdio(_) => Err(failure.into_error()),
            // A server that knows no revision of streamable HTTP may still offer the transport before it.
            McpTransport::Http(server) => {
                let old = crate::http::open_old(config, server, handler(config, hub, around)).await;
                old.map_err(|_| failure.into_error())
            }
        },
    }
}

/// Returns true if another attempt is of no use before the user did something.
fn wants_person(error: &McpError) -> bool {
    matches!(
        error,
        McpError::NeedsLogin(_) | McpError::NeedsRights { .. } | McpError::Start(_)
    )
}

fn handler(config: &McpServerConfig, hub: &Arc<Hub>, around: &Environment) -> Handler {
    Handler {
        server: config.name.clone(),
        hub: Arc::clone(hub),
        root: config.roots.then(|| format!("file://{}", around.cwd.display())),
        sampling: config.sampling,
    }
}

async fn attempt(
    config: &McpServerConfig,
    hub: &Arc<Hub>,
    around: &Environment,
    is_modern: bool,
) -> Result<Connection, Failure> {
    let handler = handler(config, hub, around);
    let mode = match is_modern {
        true => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        false => ClientLifecycleMode::Initialize,
    };
    match &config.transport {
        McpTransport::Stdio(server) => process(config, server, hub, around, (handler, mode)).await,
        McpTransport::Http(server) if server.sse => crate::http::open_old(config, server, handler).await,
        McpTransport::Http(server) => crate::http::open(config, server, around, (handler, mode)).await,
    }
}

async fn process(
    config: &McpServerConfig,
    server: &StdioServer,
    hub: &Arc<Hub>,
    around: &Environment,
    (handler, mode): (Handler, ClientLifecycleMode),
) -> Result<Connection, Failure> {
    let (launcher, name, server) = (Arc::clone(&around.launcher), config.name.clone(), server.clone());
    let runtime = tokio::runtime::Handle::current();
    // Entering a sandbox takes a moment, and must not hold up other work.
    let launched = tokio::task::spawn_blocking(move || {
        let _inside = runtime.enter();
        launcher.launch(&name, &server)
    });
    let started = |error: String| Failure::Broken(McpError::Start(error));
    let (tree, duplex) = launched
        .await
        .map_err(|error| started(error.to_string()))?
        .map_err(|error| started(error.to_string()))?;
    let Duplex {
        input,
        output,
        messages,
    } = duplex;
    let (meter, ended, stop) = (
        Meter::default(),
        CancellationToken::new(),
        CancellationToken::new(),
    );
    let last_words = Arc::new(Mutex::new(None));
    tokio::spawn(collect(messages, Arc::clone(hub)));
    tokio::spawn(watch(
        tree,
        stop.clone(),
        ended.clone(),
        Arc::clone(&last_words),
        Arc::clone(hub),
    ));
    let guard = stop.drop_guard();
    let reader = Readable::new(meter.limit(output), Arc::clone(hub));
    match handler.serve_with_lifecycle((reader, input), mode).await {
        Ok(service) => Ok(Connection {
            service,
            meter,
            ended,
            last_words,
            _stop: guard,
        }),
        Err(error) => {
            let _ = tokio::time::timeout(LAST_WORDS, ended.cancelled()).await;
            let words = lock(&last_words).clone();
            Err(refused(config, error, words))
        }
    }
}

/// Waits for the process, or ends it.
async fn watch(
    mut tree: Tree,
    stop: CancellationToken,
    ended: CancellationToken,
    words: Arc<Mutex<Option<String>>>,
    hub: Arc<Hub>,
) {
    tokio::select! {
        status = tree.wait() => {
            let how = match status {
                Ok(status) => match status.code() {
                    Some(code) => format!("it ended with exit code {code}"),
                    None => "a signal ended it".to_owned(),
                },
                Err(error) => format!("it ended: {error}"),
            };
            let said = hub.log().pop().map(|line| format!(": {line}")).unwrap_or_default();
            *lock(&words) = Some(format!("{how}{said}"));
        }
        () = stop.cancelled() => drop(tree.kill()),
    }
    ended.cancel();
}

/// Keeps what a process writes to its standard error.
async fn collect(messages: tokio::net::unix::pipe::Receiver, hub: Arc<Hub>) {
    let mut reader = BufReader::new(messages);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader)
            .take(MESSAGE_LINE)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    hub.note(&text);
                }
            }
        }
    }
}

pub(crate) fn refused(
    config: &McpServerConfig,
    error: ClientInitializeError,
    words: Option<String>,
) -> Failure {
    if let ClientInitializeError::TransportError { error, .. } = &error
        && let Some(wanted) = crate::http::wanted_login_of(&config.name, error.error.as_ref())
    {
        return Failure::Broken(wanted);
    }
    if error.auth_challenge().is_some() || error.is_authorization_required() {
        return Failure::Broken(McpError::NeedsLogin(config.name.clone()));
    }
    match error {
        ClientInitializeError::JsonRpcError(data) => {
            let text = content::line(&data.message, LOG_LINE);
            Failure::Rejected(McpError::Protocol(format!("it refused to start: {text}")))
        }
        other => Failure::Broken(match (words, &other) {
            (Some(words), _) => McpError::Ended(words),
            (None, ClientInitializeError::TransportError { error, .. }) => {
                McpError::Protocol(crate::http::reason(error.error.as_ref()))
            }
            (None, other) => McpError::Protocol(crate::http::chain(other)),
        }),
    }
}
