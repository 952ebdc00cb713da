//! Descriptions of servers, and the port that starts them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use windlass_sandbox::process::{Duplex, Tree};

/// Default time for a server to start and answer, in seconds. A first `npx` or `uvx` downloads the server.
const STARTUP: u64 = 60;
/// Default time for a call, in seconds.
const CALL: u64 = 300;
/// Default number of requests to the model that a server may send in a turn.
const SAMPLING_REQUESTS: usize = 5;
/// Default number of tokens of a reply for a server.
const SAMPLING_TOKENS: u64 = 4_096;

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Name of the server.
    pub name: String,
    /// Way to reach the server.
    pub transport: McpTransport,
    /// Source of the configuration.
    pub origin: ServerOrigin,
    /// False if the server is configured and not used.
    pub enabled: bool,
    /// Timeouts.
    pub limits: ServerLimits,
    /// Selection of the server's tools.
    pub tools: ToolFilter,
    /// Revision of the protocol to begin with.
    pub era: EraChoice,
    /// True if the server may ask for the folder of the workspace.
    pub roots: bool,
    /// Limits of the server's requests to the model; `None` if it may not send any.
    pub sampling: Option<SamplingLimits>,
}

impl McpServerConfig {
    /// A server with default limits.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            origin: ServerOrigin::User,
            enabled: true,
            limits: ServerLimits::default(),
            tools: ToolFilter::default(),
            era: EraChoice::Auto,
            roots: false,
            sampling: None,
        }
    }

    /// Describes the server on one line: its command or its address. Values of variables and headers are left out.
    pub fn line(&self) -> String {
        match &self.transport {
            McpTransport::Stdio(stdio) => {
                let words = std::iter::once(&stdio.command).chain(&stdio.args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            McpTransport::Http(http) => http.url.clone(),
        }
    }
}

/// Way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process that is talked to over its standard streams.
    Stdio(StdioServer),
    /// A server behind a URL.
    Http(HttpEndpoint),
}

/// A server that is a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StdioServer {
    /// Program: a name in the search path, or a path.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment variables beyond the few that every server gets.
    pub env: BTreeMap<String, String>,
    /// Working directory; the session's if `None`.
    pub cwd: Option<PathBuf>,
    /// Access to the machine.
    pub access: ProcessAccess,
}

/// Access of a server's process to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessAccess {
    /// True if it may use the network.
    pub network: bool,
    /// Kinds of devices, such as `audio`.
    pub devices: Vec<String>,
    /// False if it runs without a sandbox.
    pub sandbox: bool,
    /// Folders of the plugin that brings the server: the first is read, and the second also written.
    pub plugin: Option<(PathBuf, PathBuf)>,
}

impl Default for ProcessAccess {
    fn default() -> Self {
        Self {
            network: true,
            devices: Vec::new(),
            sandbox: true,
            plugin: None,
        }
    }
}

/// A server behind a URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpEndpoint {
    /// Address.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// True for the transport of 2024-11-05: events on one connection, requests on others.
    pub sse: bool,
}

/// Source of a server's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The user's own files.
    User,
    /// The project's files, which the user trusts.
    Project,
    /// A plugin that the user enabled.
    Plugin,
    /// The editor that the session belongs to.
    Editor,
}

impl ServerOrigin {
    /// Returns the source as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin => "plugin",
            Self::Editor => "editor",
        }
    }
}

/// Timeouts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Time to start and to list the tools.
    pub startup: Duration,
    /// Time for a call.
    pub call: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            startup: Duration::from_secs(STARTUP),
            call: Duration::from_secs(CALL),
        }
    }
}

/// Limits of a server's requests to the session's model. Each request also asks the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingLimits {
    /// Requests in a turn.
    pub requests: usize,
    /// Tokens of a reply.
    pub tokens: u64,
}

impl Default for SamplingLimits {
    fn default() -> Self {
        Self {
            requests: SAMPLING_REQUESTS,
            tokens: SAMPLING_TOKENS,
        }
    }
}

/// Selection of a server's tools, by the server's own names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// The only tools that are offered; all if empty.
    pub only: Vec<String>,
    /// Tools that are not offered.
    pub without: Vec<String>,
}

impl ToolFilter {
    /// Returns true if the tool is offered.
    pub fn lets_through(&self, tool: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        (self.only.is_empty() || names(&self.only)) && !names(&self.without)
    }
}

/// Revision of the protocol to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// The one that worked the last time; otherwise the handshake for processes, and the stateless revision over
    /// HTTP.
    #[default]
    Auto,
    /// The stateless revision of 2026-07-28.
    Modern,
    /// The handshake of revisions up to 2025-11-25.
    Legacy,
}

/// Starts the processes of servers, each with the access that its configuration gives it.
pub trait Launcher: Send + Sync {
    /// Starts a process. Must not wait for it, and must confine it unless its configuration turns that off. Called
    /// on a thread that may block.
    ///
    /// # Errors
    /// If there is no such program, or it cannot be started or confined.
    fn launch(&self, name: &str, server: &StdioServer) -> io::Result<(Tree, Duplex)>;
}

/// Reason why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The process could not be started.
    #[error("it cannot be started: {0}")]
    Start(String),
    /// A phase took too long.
    #[error("{phase} took longer than {} s", limit.as_secs_f32())]
    Timeout {
        /// The phase.
        phase: &'static str,
        /// Its limit.
        limit: Duration,
    },
    /// The server ended or closed the connection.
    #[error("{0}")]
    Ended(String),
    /// The server broke the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The server wants the user to log in.
    #[error("it asks for a login; run: windlass mcp login {0}")]
    NeedsLogin(String),
    /// The server wants rights that the login did not give.
    #[error(
        "it asks for more rights; run: windlass mcp login {server}{}",
        options(scopes)
    )]
    NeedsRights {
        /// Name of the server.
        server: String,
        /// The scopes that it names.
        scopes: Vec<String>,
    },
    /// The server answered a request with an error.
    #[error("{0}")]
    Refused(String),
    /// The server is not running.
    #[error("{0}")]
    NotRunning(String),
    /// The call was canceled.
    #[error("canceled")]
    Canceled,
}

/// Returns scopes as options of a command. Other signs than those of a scope are left out.
fn options(scopes: &[String]) -> String {
    let is_plain = |sign: &char| sign.is_ascii_alphanumeric() || "_-.:/".contains(*sign);
    let option = |scope: &String| format!(" --scope {}", scope.chars().filter(is_plain).collect::<String>());
    scopes.iter().map(option).collect()
}
