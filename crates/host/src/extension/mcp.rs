//! The MCP servers of a session.

mod approvals;
mod editor;
mod launch;
mod servers;
mod show;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_core::message::Part;
use windlass_core::permission::Asker;
use windlass_core::tool::AnyTool;
use windlass_mcp::oauth::TokenFile;
use windlass_mcp::{
    Definitions, Environment, EraMemory, McpServer, McpServerConfig, McpTransport, ServerSet,
};
use windlass_service::{ExtensionCommand, ExtensionReply, TurnStart};

pub use self::approvals::{GIVES_UP, ServerApprovals};
pub use self::editor::{attach_servers, editor_servers};
pub use self::launch::ConfinedLauncher;
pub use self::servers::{ConfiguredServers, expand_home};
use crate::extension::{Extension, ExtensionOffer};
use crate::factory::SessionSpec;

/// Sets of servers that sessions of the same folder share, so that a sub-agent does not start them again.
static SHARED: Mutex<Vec<(String, Weak<ServerSet>)>> = Mutex::new(Vec::new());

/// The MCP servers of a session.
pub struct McpServers {
    settings: Arc<Settings>,
    spec: SessionSpec,
    configs: Vec<McpServerConfig>,
    set: Arc<ServerSet>,
    tools: Vec<Arc<dyn AnyTool>>,
    /// The state that `tools` was made from.
    offered: Option<String>,
    notices: Vec<String>,
    is_connected: bool,
    had_turn: bool,
}

impl McpServers {
    /// Reads the configuration. No server is started before the session is open.
    ///
    /// # Errors
    /// If a file of the user has a mistake.
    pub fn new(settings: &Arc<Settings>, spec: &SessionSpec) -> Result<Self, Problem> {
        let found = ConfiguredServers::read(settings, &spec.cwd)?;
        let set = shared_set(settings, spec, &found.servers)?;
        let mut made = Self {
            settings: Arc::clone(settings),
            spec: spec.clone(),
            configs: found.servers,
            set,
            tools: Vec::new(),
            offered: None,
            notices: found.warnings,
            is_connected: false,
            had_turn: false,
        };
        made.collect();
        Ok(made)
    }

    /// Starts the servers that may run.
    fn start(&mut self) {
        let approvals = ServerApprovals::of_user();
        for server in self.set.servers() {
            if is_unconfined(server.config()) && !approvals.has(server.config()) {
                self.notices.push(format!(
                    "MCP server {}: not started, because it is configured to run without a sandbox: {GIVES_UP}. To \
                     start it, type /mcp approve {}",
                    server.config().name,
                    server.config().name
                ));
                continue;
            }
            server.start();
        }
    }

    /// Takes in a changed configuration, and servers of the editor.
    fn reread(&mut self) {
        match ConfiguredServers::read(&self.settings, &self.spec.cwd) {
            Ok(found) if found.servers != self.configs => {
                if let Ok(set) = shared_set(&self.settings, &self.spec, &found.servers) {
                    self.notices.extend(found.warnings);
                    (self.configs, self.set, self.offered) = (found.servers, set, None);
                    self.start();
                }
            }
            Ok(_) => {}
            Err(problem) => self
                .notices
                .push(format!("{problem}\nkeeping the last valid MCP servers")),
        }
        for config in editor_servers(&self.spec.session) {
            if let Some(server) = self.set.add(config) {
                self.offered = None;
                server.start();
            }
        }
    }

    /// Brings the offered tools up to date. They stay the same objects while nothing changes.
    fn collect(&mut self) {
        if self.set.servers().iter().all(|server| !server.config().enabled) {
            self.tools.clear();
            return;
        }
        let budget = self.settings.tools.mcp.tool_budget;
        let state = format!("{budget} {} {}", self.set.servers().len(), self.set.fingerprint());
        if self.offered.as_deref() != Some(&state) {
            self.tools = self.set.offer(budget);
            self.offered = Some(state);
        }
    }

    fn server(&self, name: &str) -> Result<Arc<McpServer>, String> {
        self.set.find(name).ok_or_else(|| {
            let names: Vec<String> = self
                .set
                .servers()
                .iter()
                .map(|server| server.config().name.clone())
                .collect();
            match names.is_empty() {
                true => "there are no MCP servers; `windlass mcp add` adds one".to_owned(),
                false => format!("there is no MCP server {name}; there are: {}", names.join(", ")),
            }
        })
    }

    async fn prompt(&self, target: &str, words: &[&str]) -> Result<ExtensionReply, String> {
        let (server, prompt) = target
            .split_once(':')
            .ok_or_else(|| "write /mcp prompt SERVER:PROMPT [ARGUMENTS]".to_owned())?;
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let text = self.server(server)?.prompt(prompt, &words).await;
        let text = text.map_err(|error| format!("MCP server {server}: {error}"))?;
        Ok(ExtensionReply {
            text: String::new(),
            submit: Some(vec![Part::text(text)]),
        })
    }
}

#[async_trait]
impl Extension for McpServers {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn connect(&mut self, _: &Arc<dyn Asker>) {
        self.is_connected = true;
        self.start();
    }

    async fn refresh(&mut self, _: &TurnStart, settings: &Settings) -> Vec<String> {
        if settings.tools.mcp != self.settings.tools.mcp {
            self.settings = Arc::new(settings.clone());
        }
        self.reread();
        let wait = self.settings.tools.mcp.startup_wait;
        if !self.had_turn && !wait.is_zero() {
            // A server that takes longer is found with `tool_search`.
            let _ = tokio::time::timeout(wait, self.set.settled()).await;
        }
        self.had_turn = true;
        let mut notices = std::mem::take(&mut self.notices);
        for server in self.set.servers() {
            server.revive();
            notices.extend(server.take_notices());
        }
        self.collect();
        notices
    }

    fn offer(&self) -> ExtensionOffer {
        ExtensionOffer {
            tools: self.tools.clone(),
            ..ExtensionOffer::default()
        }
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        let words: Vec<&str> = command.arguments.split_whitespace().collect();
        let done = |text: String| Ok(ExtensionReply::text(text));
        match words.as_slice() {
            [] | ["list"] => done(show::overview(&self.set)),
            ["restart", name] => {
                self.server(name)?.restart();
                done(format!("MCP server {name} is starting again."))
            }
            ["disable" | "stop", name] => {
                self.server(name)?.stop();
                done(format!("MCP server {name} is off for this session."))
            }
            ["enable" | "start", name] => {
                let server = self.server(name)?;
                if is_unconfined(server.config()) && !ServerApprovals::of_user().has(server.config()) {
                    return Err(format!(
                        "{name} runs without a sandbox: {GIVES_UP}. To start it, type /mcp approve {name}"
                    ));
                }
                server.start();
                done(format!("MCP server {name} is starting."))
            }
            ["approve", name] => {
                let server = self.server(name)?;
                ServerApprovals::of_user().add(server.config())?;
                server.start();
                done(format!(
                    "MCP server {name} is starting without a sandbox: {GIVES_UP}."
                ))
            }
            ["prompt", target, rest @ ..] => self.prompt(target, rest).await,
            ["log", name] | ["show", name] | [name] => done(show::server(&self.server(name)?.report())),
            _ => Err(
                "write /mcp, /mcp NAME, or /mcp restart|enable|disable|approve|log NAME, /mcp prompt \
                      SERVER:PROMPT [ARGUMENTS]"
                    .to_owned(),
            ),
        }
    }

    async fn close(&mut self) {
        self.tools.clear();
        self.set = ServerSet::new(Vec::new(), nothing());
    }
}

fn nothing() -> Environment {
    Environment {
        launcher: Arc::new(launch::NoLauncher),
        eras: EraMemory::default(),
        definitions: Definitions::default(),
        tokens: TokenFile::default(),
        cwd: Default::default(),
    }
}

/// Returns true if a server runs without a sandbox.
pub fn is_unconfined(config: &McpServerConfig) -> bool {
    matches!(&config.transport, McpTransport::Stdio(server) if !server.access.sandbox)
}

/// Returns the surroundings of the servers of a session.
fn around(settings: &Arc<Settings>, spec: &SessionSpec) -> Result<Environment, Problem> {
    server_environment(settings, &spec.cwd, spec.session.as_str())
}

/// Returns the surroundings of servers in a folder.
///
/// # Errors
/// If the user's folders are unknown.
pub fn server_environment(
    settings: &Arc<Settings>,
    cwd: &std::path::Path,
    session: &str,
) -> Result<Environment, Problem> {
    let folders = environment::folders()?;
    Ok(Environment {
        launcher: Arc::new(ConfinedLauncher::new(settings, cwd, session, &folders)),
        eras: EraMemory::new(folders.state.join("mcp-eras.json")),
        definitions: Definitions::new(folders.state.join("mcp-tools.json")),
        tokens: TokenFile::new(folders.server_tokens()),
        cwd: cwd.to_owned(),
    })
}

/// Returns the set of these servers, which other sessions of the folder may use already.
fn shared_set(
    settings: &Arc<Settings>,
    spec: &SessionSpec,
    configs: &[McpServerConfig],
) -> Result<Arc<ServerSet>, Problem> {
    let key = format!("{} {:?} {configs:?}", spec.cwd.display(), settings.security);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|(_, set)| set.strong_count() > 0);
    if let Some(set) = shared
        .iter()
        .find(|(known, _)| *known == key)
        .and_then(|(_, set)| set.upgrade())
    {
        return Ok(set);
    }
    let set = ServerSet::new(configs.to_vec(), around(settings, spec)?);
    shared.push((key, Arc::downgrade(&set)));
    Ok(set)
}
