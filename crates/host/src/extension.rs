//! Extensions of a session's environment: subsystems that add tools, hooks, a part of the system prompt or a
//! command, each in its own crate.

pub mod code;
mod hooks;
pub mod mcp;
pub mod skills;
mod voice;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use windlass_api::SessionInputs;
use windlass_checkpoint::Tracker;
use windlass_codeindex::CodeIndex;
use windlass_config::settings::Settings;
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::Hooks;
use windlass_core::permission::{Approver, Asker};
use windlass_core::tool::{AnyTool, Outputs};
use windlass_sandbox::Workspace;
use windlass_service::{DefinedCommand, ExtensionCommand, ExtensionReply, TurnStart};

use windlass_config::Problem;

pub use self::hooks::{HookSources, UserHooks};
use crate::factory::SessionSpec;
use crate::memory::MemoryExtension;
use crate::sandbox_access::SandboxAccess;
use crate::web_search::WebSearch;

/// A subsystem that takes part in a session.
#[async_trait]
pub trait Extension: Send + Sync {
    /// Name of its slash command, without the slash.
    fn name(&self) -> &'static str;

    /// Receives the connections to the session, once it is open.
    fn connect(&mut self, _connected: &Connected) {}

    /// Compares its sources with the loaded state and returns notices for the user. Called before every turn and
    /// every command of the user; slow work belongs in a task, and its result in a later turn.
    async fn refresh(&mut self, _turn: &TurnStart, _settings: &Settings) -> Vec<String> {
        Vec::new()
    }

    /// Returns the contribution to the next turn.
    fn offer(&self) -> ExtensionOffer;

    /// Runs its slash command.
    ///
    /// # Errors
    /// Fails with a message for the user.
    async fn command(&mut self, _command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        Err(format!("/{} has no subcommands here", self.name()))
    }

    /// Stops its background work. Called when the session's environment is closed.
    async fn close(&mut self) {}
}

/// Connections of extensions to the session.
pub struct Connected {
    /// The person who answers questions.
    pub asker: Arc<dyn Asker>,
    /// Takes inputs for the session.
    pub inputs: Arc<dyn SessionInputs>,
}

/// Contribution of an extension to a turn.
#[derive(Clone, Default)]
pub struct ExtensionOffer {
    /// Tools, in a fixed order: they are part of the prompt.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Hooks for turns, calls, compactions and the session.
    pub hooks: Hooks,
    /// Environment variables for the commands of later calls.
    pub env: BTreeMap<String, String>,
    /// Text at the end of the system prompt. Providers cache it, so it should not change within a session.
    pub system: Option<String>,
    /// Slash commands beside its own.
    pub commands: Vec<DefinedCommand>,
    /// Work that begins when the model replies, because it would only delay the request.
    pub ahead: Vec<Arc<dyn Fn() + Send + Sync>>,
}

/// Parts of a session's environment that extensions use.
#[derive(Clone)]
pub struct ExtensionHost {
    /// The folders that the file tools use.
    pub workspace: Workspace,
    /// The access that the settings give to files and commands.
    pub access: Arc<SandboxAccess>,
    calls: Arc<Mutex<Option<TurnCalls>>>,
}

/// Everything that a call of the current turn needs.
#[derive(Clone)]
pub struct TurnCalls {
    /// Tools, permissions and limits.
    pub config: CallConfig,
    /// The hooks, in order.
    pub hooks: Hooks,
    /// Asks a person.
    pub approver: Arc<dyn Approver>,
    /// Stores long outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
}

impl ExtensionHost {
    /// Creates the parts for a session in this workspace.
    pub fn new(workspace: &Workspace, access: Arc<SandboxAccess>) -> Self {
        Self {
            workspace: workspace.clone(),
            access,
            calls: Arc::default(),
        }
    }

    /// Returns the calls of the current or the next turn; `None` before the session is ready.
    pub fn calls(&self) -> Option<TurnCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The extensions of a session, in order.
pub struct ExtensionSet {
    list: Vec<Box<dyn Extension>>,
    host: ExtensionHost,
    /// The code index, if there is one.
    index: Option<CodeIndex>,
}

impl ExtensionSet {
    /// Creates the extensions that the settings ask for.
    ///
    /// # Errors
    /// Fails if a file of the user has an error.
    pub fn new(settings: &Arc<Settings>, spec: &SessionSpec, host: ExtensionHost) -> Result<Self, Problem> {
        let servers = mcp::McpServers::new(settings, spec, &host)?;
        let voice = voice::VoiceExtension::new(servers.current(), host.clone());
        let mut list: Vec<Box<dyn Extension>> = vec![
            Box::new(skills::SkillsExtension::new(settings, spec, &host)?),
            Box::new(WebSearch::new(settings)),
            Box::new(UserHooks::new(settings, spec)?),
            // Before the servers, so that speech ends before its server does.
            Box::new(voice),
            Box::new(servers),
        ];
        let mut index = None;
        if let Some(code) = code::CodeExtension::new(settings, spec, &host)? {
            index = Some(code.index().clone());
            list.push(Box::new(code));
        }
        if let Some(memory) = MemoryExtension::new(settings, spec) {
            list.push(Box::new(memory));
        }
        Ok(Self { list, host, index })
    }

    /// Lets the code index follow what calls change.
    pub(crate) fn follow(&self, tracker: &Tracker) {
        if let Some(index) = &self.index {
            tracker.observe(Arc::new(code::ChangedFiles(index.clone())));
        }
    }

    /// Sets the calls that extensions can make.
    pub(crate) fn set_calls(&self, calls: TurnCalls) {
        *self.host.calls.lock().unwrap_or_else(PoisonError::into_inner) = Some(calls);
    }

    pub(crate) fn connect(&mut self, connected: &Connected) {
        for extension in &mut self.list {
            extension.connect(connected);
        }
    }

    pub(crate) async fn refresh(&mut self, turn: &TurnStart, settings: &Settings) -> Vec<String> {
        let mut notices = Vec::new();
        for extension in &mut self.list {
            notices.extend(extension.refresh(turn, settings).await);
        }
        notices
    }

    /// Returns the contributions of all extensions as one.
    pub(crate) fn offer(&self) -> ExtensionOffer {
        let mut all = ExtensionOffer::default();
        for extension in &self.list {
            let ExtensionOffer {
                tools,
                hooks,
                env,
                system,
                commands,
                ahead,
            } = extension.offer();
            all.ahead.extend(ahead);
            all.commands.extend(commands);
            all.env.extend(env);
            all.tools.extend(tools);
            all.hooks.extend(&hooks);
            if let Some(text) = system {
                all.system.get_or_insert_default().push_str(&text);
            }
        }
        all
    }

    pub(crate) async fn command(
        &mut self,
        command: &ExtensionCommand<'_>,
    ) -> Option<Result<ExtensionReply, String>> {
        let extension = self
            .list
            .iter_mut()
            .find(|extension| extension.name() == command.name)?;
        Some(extension.command(command).await)
    }

    pub(crate) async fn close(&mut self) {
        for extension in &mut self.list {
            extension.close().await;
        }
    }
}

/// The calls have the tools, and a tool of an extension may have the calls: without this, neither would be dropped, nor
/// the temporary folder and the store that they use.
impl Drop for ExtensionSet {
    fn drop(&mut self) {
        *self.host.calls.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
