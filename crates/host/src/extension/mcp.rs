//! The MCP servers of a session.

mod approvals;
mod editor;
mod launch;
mod mention;
mod servers;
mod show;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use windlass_api::CommandSource;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_core::hook::Hooks;
use windlass_core::message::Part;
use windlass_core::tool::AnyTool;
use windlass_mcp::oauth::TokenFile;
use windlass_mcp::{
    Definitions, Environment, EraMemory, McpServer, McpServerConfig, McpTransport, ServerOrigin, ServerSet,
};
use windlass_service::{DefinedCommand, ExtensionCommand, ExtensionReply, TurnStart};

pub use self::approvals::{GIVES_UP, ServerApprovals};
pub use self::editor::{attach_servers, editor_servers};
pub use self::launch::ConfinedLauncher;
use self::mention::MentionHook;
pub use self::servers::{ConfiguredServers, expand_home};
use crate::extension::{Connected, Extension, ExtensionHost, ExtensionOffer};
use crate::factory::SessionSpec;

/// Sets of servers that sessions of the same folder share, so that a sub-agent does not start them again.
static SHARED: Mutex<Vec<(String, Weak<ServerSet>)>> = Mutex::new(Vec::new());

/// The set of servers that a session uses now. Cheap to clone.
#[derive(Clone)]
pub(super) struct CurrentServers(Arc<Mutex<Arc<ServerSet>>>);

impl CurrentServers {
    pub(super) fn get(&self) -> Arc<ServerSet> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, set: Arc<ServerSet>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = set;
    }
}

/// The MCP servers of a session.
pub struct McpServers {
    settings: Arc<Settings>,
    spec: SessionSpec,
    /// The configured servers, and those of the editor.
    configs: (Vec<McpServerConfig>, Vec<McpServerConfig>),
    current: CurrentServers,
    hooks: Hooks,
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
    pub fn new(settings: &Arc<Settings>, spec: &SessionSpec, host: &ExtensionHost) -> Result<Self, Problem> {
        if let Some(agent) = &spec.agent {
            editor::inherit_servers(&agent.row.family.parent, &spec.session);
        }
        let found = ConfiguredServers::read(settings, &spec.cwd)?;
        let configs = (found.servers, editor_servers(&spec.session));
        let current = CurrentServers(Arc::new(Mutex::new(shared_set(settings, spec, &configs)?)));
        let mut hooks = Hooks::new();
        hooks.push(MentionHook::new(current.clone(), host.clone()));
        let mut made = Self {
            settings: Arc::clone(settings),
            spec: spec.clone(),
            configs,
            current,
            hooks,
            tools: Vec::new(),
            offered: None,
            notices: found.warnings,
            is_connected: false,
            had_turn: false,
        };
        made.collect();
        Ok(made)
    }

    /// Returns the set of servers, which follows changes of the configuration.
    pub(super) fn current(&self) -> CurrentServers {
        self.current.clone()
    }

    fn set(&self) -> Arc<ServerSet> {
        self.current.get()
    }

    /// Starts the servers that may run.
    fn start(&mut self) {
        let approvals = ServerApprovals::of_user();
        for server in self.set().servers() {
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
        let configured = match ConfiguredServers::read(&self.settings, &self.spec.cwd) {
            Ok(found) => {
                if found.servers != self.configs.0 {
                    self.notices.extend(found.warnings);
                }
                found.servers
            }
            Err(problem) => {
                self.notices
                    .push(format!("{problem}\nkeeping the last valid MCP servers"));
                self.configs.0.clone()
            }
        };
        let configs = (configured, editor_servers(&self.spec.session));
        if configs == self.configs {
            return;
        }
        if let Ok(set) = shared_set(&self.settings, &self.spec, &configs) {
            self.current.replace(set);
            (self.configs, self.offered) = (configs, None);
            self.start();
        }
    }

    /// Brings the offered tools up to date. They stay the same objects while nothing changes.
    fn collect(&mut self) {
        let set = self.set();
        if set.servers().iter().all(|server| !server.config().enabled) {
            self.tools.clear();
            return;
        }
        let budget = self.settings.tools.mcp.tool_budget;
        let (_, starting) = set.counts();
        let state = format!(
            "{budget} {} {starting} {}",
            set.servers().len(),
            set.fingerprint()
        );
        if self.offered.as_deref() != Some(&state) {
            self.tools = set.offer(budget);
            self.offered = Some(state);
        }
    }

    fn server(&self, name: &str) -> Result<Arc<McpServer>, String> {
        let set = self.set();
        set.find(name).ok_or_else(|| {
            let names: Vec<String> = set
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

    /// Returns the prompts of the servers as commands.
    fn prompts(&self) -> Vec<DefinedCommand> {
        let mut commands = Vec::new();
        for server in self.set().servers() {
            let name = &server.config().name;
            for prompt in server.prompts() {
                let hint = |(argument, required): &(String, bool)| match required {
                    true => format!("<{argument}>"),
                    false => format!("[{argument}]"),
                };
                commands.push(DefinedCommand {
                    name: format!("{name}:{}", prompt.name),
                    hint: prompt.arguments.iter().map(hint).collect::<Vec<_>>().join(" "),
                    description: prompt.description,
                    body: String::new(),
                    source: match server.config().origin {
                        ServerOrigin::Project => CommandSource::Project,
                        _ => CommandSource::User,
                    },
                    file: format!("MCP server {name}"),
                    runs_in: Some("mcp"),
                });
            }
        }
        commands.retain(|command| is_typable(&command.name));
        commands
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

    fn connect(&mut self, _: &Connected) {
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
            let _ = tokio::time::timeout(wait, self.set().settled()).await;
        }
        self.had_turn = true;
        let mut notices = std::mem::take(&mut self.notices);
        for server in self.set().servers() {
            server.revive();
            notices.extend(server.take_notices());
        }
        self.collect();
        notices
    }

    fn offer(&self) -> ExtensionOffer {
        ExtensionOffer {
            tools: self.tools.clone(),
            hooks: match self.tools.is_empty() {
                true => Hooks::new(),
                false => self.hooks.clone(),
            },
            commands: self.prompts(),
            ..ExtensionOffer::default()
        }
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        let words: Vec<&str> = command.arguments.split_whitespace().collect();
        let done = |text: String| Ok(ExtensionReply::text(text));
        match words.as_slice() {
            [] | ["list"] => done(show::overview(&self.set())),
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
            // A prompt that was typed as a command.
            [typed, rest @ ..] if typed.starts_with('/') => {
                self.prompt(typed.trim_start_matches('/'), rest).await
            }
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
        self.current.replace(ServerSet::new(Vec::new(), nothing()));
    }
}

/// Returns true if a name can be typed as a command.
fn is_typable(name: &str) -> bool {
    name.chars()
        .all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | ':'))
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

/// Returns the set of these servers. Other sessions of the folder may use the configured ones already; those of an editor
/// belong to this session.
fn shared_set(
    settings: &Arc<Settings>,
    spec: &SessionSpec,
    (configured, of_editor): &(Vec<McpServerConfig>, Vec<McpServerConfig>),
) -> Result<Arc<ServerSet>, Problem> {
    let mut folder = spec.cwd.display().to_string();
    // Without servers, there is nothing that the settings could change.
    if !configured.is_empty() || !of_editor.is_empty() {
        folder = format!("{folder} {:?}", settings.security);
    }
    let base = found_or_made(format!("{folder} {configured:?}"), || {
        Ok(ServerSet::new(configured.clone(), around(settings, spec)?))
    })?;
    if of_editor.is_empty() {
        return Ok(base);
    }
    // Sub-agents have the servers of the session above, whose name is the same for all of them.
    let owner = editor::owner(&spec.session);
    found_or_made(format!("{folder} {configured:?} {owner} {of_editor:?}"), || {
        Ok(ServerSet::extending(&base, of_editor.clone()))
    })
}

/// Returns the set with this key, or makes it.
fn found_or_made(
    key: String,
    make: impl FnOnce() -> Result<Arc<ServerSet>, Problem>,
) -> Result<Arc<ServerSet>, Problem> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|(_, set)| set.strong_count() > 0);
    if let Some(set) = shared
        .iter()
        .find(|(known, _)| *known == key)
        .and_then(|(_, set)| set.upgrade())
    {
        return Ok(set);
    }
    let set = make()?;
    shared.push((key, Arc::downgrade(&set)));
    Ok(set)
}
