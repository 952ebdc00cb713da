//! A server: its state, its tools, and calls to it.

mod requests;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, PaginatedRequestParams, RequestParamsMeta};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client::{CallLink, Connection, Hub, connect, lock};
use crate::config::{McpError, McpServerConfig};
use crate::content;
use crate::http::IDEMPOTENCY_META;
use crate::set::Environment;
use crate::tool::McpTool;

/// Pages of a list that are read.
const MAX_PAGES: usize = 50;
/// Entries of a list that are kept.
const MAX_ENTRIES: usize = 2_000;
/// Restarts without a successful call in between.
const MAX_RESTARTS: u8 = 3;
/// Time to list resources and prompts, which nothing waits for.
const LIST_LIMIT: Duration = Duration::from_secs(15);

/// State of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Not started: the user has not agreed to it yet, or turned it off.
    Off,
    /// Starting.
    Starting,
    /// Ready for calls.
    Ready,
    /// Ended or failed, with the reason.
    Failed(McpError),
}

/// A resource that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    /// Address of the resource.
    pub uri: String,
    /// Name for people.
    pub name: String,
    /// Description.
    pub description: String,
}

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInfo {
    /// Name of the prompt.
    pub name: String,
    /// Description.
    pub description: String,
    /// Names of its arguments, in order, and true for those that are required.
    pub arguments: Vec<(String, bool)>,
}

/// A server, described for the user.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// Name of the server.
    pub name: String,
    /// Source of the configuration.
    pub origin: &'static str,
    /// Command or address.
    pub line: String,
    /// State.
    pub phase: Phase,
    /// Negotiated revision of the protocol, and the server's name for itself.
    pub about: String,
    /// Names of the tools, as the model sees them.
    pub tools: Vec<String>,
    /// Tools that are not offered, each with the reason.
    pub left_out: Vec<String>,
    /// Addresses of the resources.
    pub resources: Vec<String>,
    /// Names of the prompts.
    pub prompts: Vec<String>,
    /// The last error.
    pub last_error: Option<String>,
    /// The last lines of its log.
    pub log: Vec<String>,
}

/// A server that runs, or should.
pub struct McpServer {
    config: McpServerConfig,
    around: Arc<Environment>,
    hub: Arc<Hub>,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

struct State {
    phase: Phase,
    connection: Option<Arc<Connection>>,
    lists: Lists,
    about: String,
    last_error: Option<String>,
    restarts: u8,
    notices: Vec<String>,
    /// Counts starts, so that an old one does not overwrite the state of a newer one.
    round: u64,
}

#[derive(Clone, Default)]
struct Lists {
    tools: Vec<Arc<McpTool>>,
    /// The server's own names of all its tools, also of those that the model does not get.
    names: Vec<String>,
    left_out: Vec<String>,
    resources: Vec<ResourceInfo>,
    prompts: Vec<PromptInfo>,
}

impl McpServer {
    pub(crate) fn new(config: McpServerConfig, around: Arc<Environment>) -> Arc<Self> {
        Arc::new(Self {
            config,
            around,
            hub: Arc::default(),
            state: Mutex::new(State {
                phase: Phase::Off,
                connection: None,
                lists: Lists::default(),
                about: String::new(),
                last_error: None,
                restarts: 0,
                notices: Vec::new(),
                round: 0,
            }),
            changes: watch::Sender::new(0),
        })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &McpServerConfig {
        &self.config
    }

    /// Returns the state.
    pub fn phase(&self) -> Phase {
        lock(&self.state).phase.clone()
    }

    pub(crate) fn tools(&self) -> Vec<Arc<McpTool>> {
        lock(&self.state).lists.tools.clone()
    }

    /// Returns the prompts.
    pub fn prompts(&self) -> Vec<PromptInfo> {
        lock(&self.state).lists.prompts.clone()
    }

    /// Returns the resources.
    pub fn resources(&self) -> Vec<ResourceInfo> {
        lock(&self.state).lists.resources.clone()
    }

    /// Takes the notices for the user.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).notices)
    }

    /// Describes the server.
    pub fn report(&self) -> ServerReport {
        let log = self.hub.log();
        let state = lock(&self.state);
        let lists = &state.lists;
        ServerReport {
            name: self.config.name.clone(),
            origin: self.config.origin.word(),
            line: content::line(&self.config.line(), 200),
            phase: state.phase.clone(),
            about: state.about.clone(),
            tools: lists.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            left_out: lists.left_out.clone(),
            resources: lists
                .resources
                .iter()
                .map(|resource| resource.uri.clone())
                .collect(),
            prompts: lists.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
            last_error: state.last_error.clone(),
            log,
        }
    }

    /// Starts the server in the background, unless it runs. Must be called inside a Tokio runtime.
    pub fn start(self: &Arc<Self>) {
        let round = {
            let mut state = lock(&self.state);
            if !self.config.enabled || matches!(state.phase, Phase::Starting | Phase::Ready) {
                return;
            }
            state.phase = Phase::Starting;
            state.round += 1;
            state.round
        };
        self.tell();
        let this = Arc::clone(self);
        tokio::spawn(async move { this.open(round).await });
    }

    /// Ends the server and starts it again. The user asked for it, so earlier restarts do not count.
    pub fn restart(self: &Arc<Self>) {
        self.stop();
        lock(&self.state).restarts = 0;
        self.start();
    }

    /// Ends the server.
    pub fn stop(&self) {
        let connection = {
            let mut state = lock(&self.state);
            state.phase = Phase::Off;
            state.round += 1;
            state.connection.take()
        };
        drop(connection);
        self.tell();
    }

    /// Starts the server again if it ended, a few times at most, and brings its lists up to date. Called between
    /// turns.
    pub fn revive(self: &Arc<Self>) {
        let may_start = {
            let mut state = lock(&self.state);
            let has_ended = matches!(state.phase, Phase::Failed(McpError::Ended(_)));
            let may = has_ended && state.restarts < MAX_RESTARTS;
            state.restarts += u8::from(may);
            may
        };
        if may_start {
            self.start();
        } else if self.hub.has_changed.swap(false, Ordering::Relaxed) {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.relist().await });
        }
    }

    /// Waits until the server is ready or has failed.
    pub async fn settled(&self) -> Phase {
        let mut changes = self.changes.subscribe();
        loop {
            let phase = self.phase();
            if phase != Phase::Starting || changes.changed().await.is_err() {
                return phase;
            }
        }
    }

    async fn open(self: Arc<Self>, round: u64) {
        let limit = self.config.limits.startup;
        let opened = tokio::time::timeout(limit, async {
            let connection = connect(&self.config, &self.hub, &self.around).await?;
            let lists = self.list(&connection).await?;
            Ok((connection, lists))
        });
        let opened = opened.await.unwrap_or(Err(McpError::Timeout {
            phase: "starting",
            limit,
        }));
        match opened {
            Ok((connection, lists)) => self.opened(round, Arc::new(connection), lists),
            Err(error) => self.failed(round, error),
        }
    }

    fn opened(self: &Arc<Self>, round: u64, connection: Arc<Connection>, lists: Lists) {
        let ended = connection.ended.clone();
        {
            let mut state = lock(&self.state);
            if state.round != round {
                return;
            }
            state.about = about(&connection);
            if !lists.left_out.is_empty() {
                let text = format!("MCP server {}: {}", self.config.name, lists.left_out.join("; "));
                state.notices.push(text);
            }
            state.lists = lists;
            state.phase = Phase::Ready;
            state.last_error = None;
            state.connection = Some(Arc::clone(&connection));
        }
        self.tell();
        let (this, connection) = (Arc::clone(self), Arc::downgrade(&connection));
        tokio::spawn(async move {
            ended.cancelled().await;
            if let Some(connection) = connection.upgrade() {
                let words = connection.end().await.unwrap_or_else(|| "it ended".to_owned());
                drop(connection);
                this.failed(round, McpError::Ended(words));
            }
        });
    }

    fn failed(&self, round: u64, error: McpError) {
        let connection = {
            let mut state = lock(&self.state);
            if state.round != round || matches!(state.phase, Phase::Failed(_)) {
                return;
            }
            // A server that is started again and fails in the same way is no news.
            let before = state.last_error.replace(error.to_string());
            if before != state.last_error {
                let text = format!("MCP server {}: {error}", self.config.name);
                state.notices.push(content::line(&text, 500));
            }
            state.phase = Phase::Failed(error);
            state.connection.take()
        };
        drop(connection);
        self.tell();
    }

    async fn list(self: &Arc<Self>, connection: &Connection) -> Result<Lists, McpError> {
        let mut lists = Lists::default();
        let capabilities = connection
            .service
            .peer()
            .peer_info()
            .map(|info| info.capabilities.clone());
        let capabilities = capabilities.unwrap_or_default();
        if capabilities.tools.is_some() {
            self.list_tools(connection, &mut lists).await?;
        }
        let peer = connection.service.peer();
        let listed = tokio::time::timeout(LIST_LIMIT, async {
            if capabilities.resources.is_some()
                && let Ok(list) = peer.list_resources(None).await
            {
                let resource = |resource: rmcp::model::Resource| ResourceInfo {
                    uri: content::line(&resource.uri, 1_000),
                    name: content::line(&resource.name, 200),
                    description: content::line(resource.description.as_deref().unwrap_or_default(), 300),
                };
                lists.resources = list
                    .resources
                    .into_iter()
                    .take(MAX_ENTRIES)
                    .map(resource)
                    .collect();
            }
            if capabilities.prompts.is_some()
                && let Ok(list) = peer.list_prompts(None).await
            {
                lists.prompts = list
                    .prompts
                    .into_iter()
                    .take(MAX_ENTRIES)
                    .map(prompt_info)
                    .collect();
            }
        });
        if listed.await.is_err() {
            self.hub.note("listing resources and prompts took too long");
        }
        Ok(lists)
    }

    async fn list_tools(
        self: &Arc<Self>,
        connection: &Connection,
        lists: &mut Lists,
    ) -> Result<(), McpError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor.take();
            let page = connection.service.peer().list_tools(Some(params)).await;
            let page = self.settle(connection, page).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MAX_ENTRIES {
                break;
            }
        }
        let left_out = &mut lists.left_out;
        left_out.extend(self.hub.left_out().into_iter().take(5));
        if tools.len() > MAX_ENTRIES {
            left_out.push(format!("only the first {MAX_ENTRIES} of its tools are used"));
            tools.truncate(MAX_ENTRIES);
        }
        lists.names = tools.iter().map(|tool| tool.name.to_string()).collect();
        tools.retain(|tool| self.config.tools.lets_through(&tool.name));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let names = crate::naming::tool_names(&self.config.name, &names);
        for (tool, name) in tools.into_iter().zip(names) {
            match McpTool::new(self, name, &tool) {
                Ok(tool) => lists.tools.push(Arc::new(tool)),
                Err(why) if left_out.len() < 5 => {
                    left_out.push(format!(
                        "the tool {} is left out: {why}",
                        content::line(&tool.name, 80)
                    ));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Lists again after the server said that something changed.
    async fn relist(self: Arc<Self>) {
        let Some(connection) = self.connection() else {
            return;
        };
        connection.meter.reset();
        let listed = tokio::time::timeout(self.config.limits.startup, self.list(&connection)).await;
        if let Ok(Ok(lists)) = listed {
            lock(&self.state).lists = lists;
            self.tell();
        }
    }

    fn connection(&self) -> Option<Arc<Connection>> {
        lock(&self.state).connection.clone()
    }

    /// Returns the connection, once the server is ready.
    async fn ready(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        self.revive();
        match self.settled().await {
            Phase::Ready => self
                .connection()
                .ok_or_else(|| McpError::NotRunning("it is not running".to_owned())),
            Phase::Failed(error) => Err(McpError::NotRunning(format!("it is not running: {error}"))),
            Phase::Off | Phase::Starting => Err(McpError::NotRunning(
                "it is turned off; the user can start it with /mcp enable".to_owned(),
            )),
        }
    }

    /// Calls a tool. The key tells the server that a request which it gets again is the same call.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        key: String,
        link: CallLink,
    ) -> Result<CallToolResult, McpError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        params
            .meta_or_default()
            .insert(IDEMPOTENCY_META.to_owned(), key.into());
        let cancel = link.cancel.clone();
        let work = async {
            let connection = self.ready().await?;
            let _active = self.hub.begin(link);
            connection.meter.reset();
            let called = connection.service.call_tool(params).await;
            self.settle(&connection, called).await
        };
        let result = self.limited(work, &cancel).await?;
        lock(&self.state).restarts = 0;
        Ok(result)
    }

    /// Turns a failure of a request into its result. A server that ended during the request is the result.
    async fn settle<T>(
        &self,
        connection: &Connection,
        result: Result<T, ServiceError>,
    ) -> Result<T, McpError> {
        if let Err(ServiceError::TransportSend(error)) = &result
            && let Some(wanted) = crate::http::wanted_login_of(&self.config.name, error.error.as_ref())
        {
            return Err(wanted);
        }
        match result {
            Ok(value) => Ok(value),
            Err(error @ (ServiceError::TransportClosed | ServiceError::TransportSend(_))) => {
                match connection.end().await {
                    Some(words) => Err(McpError::Ended(format!(
                        "the server stopped during the call: {words}"
                    ))),
                    None => Err(McpError::Ended(format!(
                        "the connection failed during the call: {}",
                        match &error {
                            ServiceError::TransportSend(error) => crate::http::reason(error.error.as_ref()),
                            other => crate::http::chain(other),
                        }
                    ))),
                }
            }
            Err(error) => Err(refused(&error)),
        }
    }

    async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, McpError>>,
        cancel: &CancellationToken,
    ) -> Result<T, McpError> {
        let limit = self.config.limits.call;
        tokio::select! {
            biased;
            // Dropping the request tells the server that it is canceled.
            () = cancel.cancelled() => Err(McpError::Canceled),
            done = tokio::time::timeout(limit, work) => {
                done.unwrap_or(Err(McpError::Timeout { phase: "the call", limit }))
            }
        }
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

fn about(connection: &Connection) -> String {
    let Some(info) = connection.service.peer().peer_info() else {
        return String::new();
    };
    let value = serde_json::to_value(&*info).unwrap_or_default();
    let text = |path: &str| {
        value
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let line = format!(
        "{} {} (protocol {})",
        text("/serverInfo/name"),
        text("/serverInfo/version"),
        text("/protocolVersion")
    );
    content::line(&line, 200)
}

fn refused(error: &ServiceError) -> McpError {
    match error {
        ServiceError::McpError(data) => McpError::Refused(format!(
            "the server refused: {}",
            content::plain(&data.message, 2_000)
        )),
        other => McpError::Protocol(content::line(&other.to_string(), 500)),
    }
}

fn prompt_info(prompt: rmcp::model::Prompt) -> PromptInfo {
    let arguments = prompt.arguments.unwrap_or_default().into_iter().take(50);
    PromptInfo {
        name: content::line(&prompt.name, 100),
        description: content::line(prompt.description.as_deref().unwrap_or_default(), 300),
        arguments: arguments
            .map(|argument| (argument.name, argument.required == Some(true)))
            .collect(),
    }
}

/// Definitions that were in use, so that a changed one is noticed.
impl McpServer {
    /// Returns true if a tool was used with another definition before.
    pub(crate) fn has_changed(&self, tool: &str, digest: &str) -> bool {
        self.around
            .definitions
            .has_changed(&self.config.name, tool, digest)
    }

    /// Records that a person approved the current definition of a tool.
    pub(crate) fn accept(&self, tool: &str, digest: &str) {
        self.around.definitions.accept(&self.config.name, tool, digest);
    }
}
