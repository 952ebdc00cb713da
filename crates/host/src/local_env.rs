//! The environment of a session on this machine, refreshed before every turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use windlass_api::FolderFacts;
use windlass_checkpoint::{CheckpointLimits, Tracker};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::Hooks;
use windlass_core::id::SessionId;
use windlass_core::log::UserName;
use windlass_core::permission::{Approver, Asker, Granting, Mode, Policy};
use windlass_core::provider::Provider;
use windlass_core::run::Config;
use windlass_core::tool::{AnyTool, Category, Outputs, ToolSet};
use windlass_core::turn::Limits;
use windlass_service::{
    Defined, EnvFacts, ExtensionCommand, ExtensionReply, Extensions, FolderFiles, Goals, Granted,
    ModelSwitch, NotReady, Permissions, ScheduledJobs, SessionEnv, SupervisorModel, Titles, ToolInfo,
    TurnPlan, TurnStart, UserCommand,
};

use windlass_sandbox::Workspace;
use windlass_users::{AuditHook, AuditedApprover, AuditedSession, BudgetHook};

use crate::agent_role::{AgentRole, allowed_tools};
use crate::command_files::CommandFiles;
use crate::compress::{CompressionLimits, OutputCompressor};
use crate::context_parts::ContextParts;
use crate::extension::{Connected, ExtensionHost, ExtensionSet, TurnCalls};
use crate::factory::{SessionSpec, SessionTools, SharedMode, policy, session_tools};
use crate::grants::{GrantFile, NobodyNow, grant_line};
use crate::instructions::Instructions;
use crate::models::Models;
use crate::open_work::OpenWork;
use crate::prompt::{AGENT_PROMPT, REQUIRE_DONE, SYSTEM_PROMPT};
use crate::sandbox_ahead::SandboxAhead;
use crate::scheduled_jobs::UserJobs;
use crate::session_diff::{self, branch};
use crate::settings_reload::SettingsReload;
use crate::tool_catalog::{ToolCatalog, ToolOffer, source};
use crate::watch::Watch;
use crate::{autonomy, folder_files::LocalFolder};
use windlass_config::folders::{Folders, with_project_cache_async};
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind, environment};

/// The tool that runs commands.
const BASH: &str = "bash";
/// GOAL-1: heading of the goal in the system prompt.
const CURRENT_GOAL: &str = "{current_goal}";
/// Maximum length of the goal in the system prompt, in characters.
const TOLD_GOAL: usize = 2_000;

/// The environment of a session on this machine.
pub struct LocalEnv {
    session: SessionId,
    models: Models,
    tracker: Option<Tracker>,
    extensions: ExtensionSet,
    catalog: ToolCatalog,
    context: ContextParts,
    calls: CallConfig,
    approvals: Approvals,
    incomplete: Arc<OpenWork>,
    reading: Reading,
    watch: Watch,
    role: AgentRole,
}

/// Approvals of the user.
struct Approvals {
    approver: Arc<dyn Approver>,
    /// Stores lasting grants, if a person can be asked.
    grants: Option<GrantFile>,
    /// The user.
    user: UserName,
    /// The session in the audit log, if it is recorded.
    audited: Option<AuditedSession>,
}

/// CFG-2: sources that are reread before every turn.
struct Reading {
    settings: SettingsReload,
    instructions: Instructions,
    commands: CommandFiles,
    files: Arc<dyn FolderFiles>,
    /// The system prompt without instructions, and without the goal.
    system: String,
    /// The goal in the system prompt; `None` if it is not included.
    goal: Option<String>,
    /// Text of the extensions at the end of the system prompt.
    extensions: String,
    require_done: bool,
    /// True if the user set the mode; reloading the settings does not change it.
    has_mode: bool,
}

impl Reading {
    /// Returns the current system prompt.
    fn system_prompt(&self) -> String {
        let rest = format!("{}{}", self.instructions.text(), self.extensions);
        match &self.goal {
            Some(goal) => format!("{}{rest}", self.system.replace(CURRENT_GOAL, goal)),
            None => format!("{}{rest}", self.system),
        }
    }
}

/// Reads the instructions of a session. Truncated ones are named in a notice.
fn read_instructions(
    folders: &Folders,
    spec: &SessionSpec,
    workspace: &Workspace,
    catalog: &mut ToolCatalog,
) -> Result<Instructions, Problem> {
    let instructions = Instructions::sharing(folders, &spec.cwd, &workspace.files())
        .map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", spec.cwd.display())))?;
    let mut instructions = match &spec.agent {
        Some(_) => instructions.of_agent(),
        None => instructions,
    };
    let (_, cut) = instructions.refresh();
    catalog.notify(cut);
    Ok(instructions)
}

impl LocalEnv {
    /// Assembles the parts of a session.
    pub fn new(settings: &Arc<Settings>, models: Models, spec: &SessionSpec) -> Result<Self, Problem> {
        let SessionTools {
            mut catalog,
            todos,
            workspace,
            access,
            context,
        } = session_tools(settings, spec)?;
        let folders = environment::folders()?;
        let instructions = read_instructions(&folders, spec, &workspace, &mut catalog)?;
        let system = match &spec.agent {
            Some(agent) => format!("{AGENT_PROMPT}\n\n{}", agent.kind.prompt),
            None => system_prompt(settings, spec.require_done),
        };
        let mut again = SettingsReload::new(
            spec.given.clone(),
            folders.clone(),
            &spec.cwd,
            Arc::clone(settings),
        );
        if let Some(agent) = &spec.agent {
            again = again.fixed();
            catalog.restrict(allowed_tools(settings, agent));
        }
        let extensions = ExtensionSet::new(settings, spec, ExtensionHost::new(&workspace, access))?;
        let offer = extensions.offer();
        catalog.set_extensions(offer.tools);
        let reading = Reading {
            goal: told_goal(settings, None),
            extensions: offer.system.unwrap_or_default(),
            settings: again,
            instructions,
            commands: CommandFiles::new(folders.clone(), &spec.cwd),
            files: LocalFolder::of(&workspace, &spec.cwd),
            system,
            require_done: spec.require_done,
            has_mode: false,
        };
        catalog.set_system_prompt(reading.system_prompt());
        let grants = || GrantFile::of_user(&folders, &spec.account.user);
        Ok(Self {
            session: spec.session.clone(),
            models: models.limited(spec.account.budget(settings, spec.store.as_ref())?),
            tracker: tracker(settings, &workspace, spec, &extensions)?,
            extensions,
            context,
            calls: CallConfig {
                execution: catalog.execution(),
                policy: Policy {
                    attended: spec.interactive,
                    ..policy(settings)
                },
                ..call_limits(settings)
            },
            approvals: Approvals {
                // The asker is known once the session is.
                approver: Arc::new(NobodyNow(grants())),
                grants: spec.interactive.then(grants),
                user: spec.account.user.clone(),
                audited: spec.account.audited(settings, spec.store.as_ref(), &spec.session),
            },
            catalog,
            incomplete: Arc::new(OpenWork {
                todos,
                require_done: spec.require_done,
                // A person in front of the list sees it, and is asked instead of the model.
                is_attended: spec.interactive,
            }),
            reading,
            watch: spec.watch.clone(),
            role: AgentRole::new(settings.security.mode, spec.agent.clone()),
        })
    }

    /// Returns the checkpoints of the session, if they are on.
    pub fn tracker(&self) -> Option<Tracker> {
        self.tracker.clone()
    }

    /// Returns the mode of the session, for the sub-agents below it.
    pub fn shared_mode(&self) -> SharedMode {
        self.role.shared_mode()
    }

    /// Connects the session with the service: the person who answers permission requests, and further tools.
    pub fn connect(&mut self, connected: Connected, tools: Vec<Arc<dyn AnyTool>>) {
        self.extensions.connect(&connected);
        self.ask(connected.asker);
        self.catalog.add(tools);
    }

    /// Adds warnings for the user, shown before the next turn.
    pub fn notify(&mut self, warnings: Vec<String>) {
        self.catalog.notify(warnings);
    }

    /// Connects the person who answers permission requests.
    fn ask(&mut self, asker: Arc<dyn Asker>) {
        if let Some(grants) = self.approvals.grants.take() {
            let approver: Arc<dyn Approver> = Arc::new(Granting::new(asker, Box::new(grants)));
            self.approvals.approver = match &self.approvals.audited {
                Some(session) => Arc::new(AuditedApprover::new(approver, session.clone())),
                None => approver,
            };
        }
    }

    /// CTX-10: returns the compressor of long outputs; `None` unless the settings enable it.
    async fn compressor(
        &self,
        settings: &Settings,
        provider: &Arc<dyn Provider>,
    ) -> Option<OutputCompressor> {
        let wanted = Some(&settings.context.taco).filter(|taco| taco.enabled)?;
        let provider = match &wanted.provider {
            Some(name) => self.models.other(name).await?,
            None => Arc::clone(provider),
        };
        let tool = |name: &String| match name.as_str() {
            "shell" => "bash".to_owned(),
            "web_scrape" => "fetch".to_owned(),
            "read" => "read_file".to_owned(),
            other => other.to_owned(),
        };
        Some(OutputCompressor {
            limits: CompressionLimits {
                threshold: wanted.threshold,
                target: wanted.target,
                tools: wanted.tools.iter().map(tool).collect(),
                time: settings.context.prep_timeout,
            },
            provider,
            outputs: self.outputs()?,
            session: self.session.clone(),
            clock: windlass_config::environment::clock(),
            count: self.context.count(),
            book: self.context.booker("taco"),
        })
    }

    /// Returns the model. The sandbox is prepared while it answers, if there are commands to run.
    fn provider(&self, provider: &Arc<dyn Provider>) -> Arc<dyn Provider> {
        let has_commands = !self.role.is_agent() || self.catalog.tools().get(BASH).is_some();
        Arc::new(SandboxAhead {
            provider: Arc::clone(provider),
            sandbox: has_commands.then(|| self.catalog.sandbox()),
            work: self.extensions.offer().ahead,
        })
    }

    /// The store of long outputs.
    fn outputs(&self) -> Option<Arc<dyn Outputs>> {
        self.catalog.outputs().map(|store| store as _)
    }

    /// Returns a call of the tool that runs commands.
    fn command(&self, tools: TurnTools, input: String) -> UserCommand {
        UserCommand {
            input,
            calls: tools.calls,
            hooks: tools.hooks,
            outputs: self.outputs(),
            tool: BASH.to_owned(),
            notices: tools.notices,
        }
    }

    /// Prepares the tools of a turn, and the hooks that follow their calls.
    async fn turn_tools(&mut self, turn: &TurnStart) -> TurnTools {
        with_project_cache_async(self.refreshed_tools(turn)).await
    }

    async fn refreshed_tools(&mut self, turn: &TurnStart) -> TurnTools {
        let mut notices = self.reread(turn.goal.as_deref());
        notices.extend(self.refresh_extensions(turn).await);
        let (offer, more) = self.catalog.refresh();
        notices.extend(more);
        let mut hooks = Hooks::new();
        if let (Some(tracker), Some(message)) = (&self.tracker, &turn.message) {
            notices.extend(tracker.begin_turn(message.clone(), turn.prompt.clone()).await);
            hooks.push(tracker.clone());
        }
        // After the checkpoints, so that these cover the effects of the extensions' hooks.
        hooks.extend(&self.extensions.offer().hooks);
        hooks.push_shared(self.reading.instructions.hook());
        if let Some(budget) = self.models.budget() {
            hooks.push(BudgetHook(budget.clone()));
        }
        // The last one: its row is written directly before the call.
        if let Some(session) = &self.approvals.audited {
            hooks.push(AuditHook(session.clone()));
        }
        let calls = self.turn_calls();
        self.share_calls(&calls, &hooks);
        TurnTools {
            calls,
            offer,
            hooks,
            notices,
        }
    }

    fn turn_calls(&self) -> CallConfig {
        let mut calls = CallConfig {
            tools: self.catalog.tools().clone(),
            execution: self.catalog.execution(),
            ..self.calls.clone()
        };
        calls.policy.mode = self.role.limited(calls.policy.mode);
        let env = self.extensions.offer().env;
        if !env.is_empty() {
            Arc::make_mut(&mut calls.execution).env.extend(env);
        }
        calls
    }

    /// Gives the extensions the means to make calls.
    fn share_calls(&self, calls: &CallConfig, hooks: &Hooks) {
        self.extensions.set_calls(TurnCalls {
            config: calls.clone(),
            hooks: hooks.clone(),
            approver: Arc::clone(&self.approvals.approver),
            outputs: self.outputs(),
        });
    }

    /// Brings the extensions, their tools and their part of the system prompt up to date.
    async fn refresh_extensions(&mut self, turn: &TurnStart) -> Vec<String> {
        let settings = self.reading.settings.now();
        let notices = self.extensions.refresh(turn, &settings).await;
        let offer = self.extensions.offer();
        self.catalog.set_extensions(offer.tools);
        let system = offer.system.unwrap_or_default();
        if system != self.reading.extensions {
            self.reading.extensions = system;
            self.catalog.set_system_prompt(self.reading.system_prompt());
        }
        notices
    }

    /// Rereads changed files. Returns notices for the user.
    fn reread(&mut self, goal: Option<&str>) -> Vec<String> {
        let (settings, mut notices) = self.reading.settings.refresh();
        let goal = told_goal(&self.reading.settings.now(), goal);
        let has_goal_changed = goal != self.reading.goal;
        self.reading.goal = goal;
        let (changed, more) = self.reading.instructions.refresh();
        if let Some(settings) = &settings {
            self.context.adjust(&settings.context);
            let policy = policy(settings);
            let mode = if self.reading.has_mode {
                self.calls.policy.mode
            } else {
                policy.mode
            };
            self.calls = CallConfig {
                policy: Policy {
                    mode,
                    attended: self.calls.policy.attended,
                    ..policy
                },
                execution: Arc::clone(&self.calls.execution),
                ..call_limits(settings)
            };
            self.reading.system = system_prompt(settings, self.reading.require_done);
        }
        if !changed.is_empty() {
            notices.push(format!("instructions reloaded: {}", changed.join(", ")));
        }
        notices.extend(more);
        if settings.is_some() || !changed.is_empty() || has_goal_changed {
            self.catalog.set_system_prompt(self.reading.system_prompt());
        }
        notices
    }
}

/// The tools of a turn.
struct TurnTools {
    offer: ToolOffer,
    calls: CallConfig,
    hooks: Hooks,
    /// Warnings for the user.
    notices: Vec<String>,
}

#[async_trait]
impl SessionEnv for LocalEnv {
    async fn plan(&mut self, turn: &TurnStart) -> Result<TurnPlan, NotReady> {
        let active = self.models.ready().await?;
        let TurnTools {
            offer,
            mut calls,
            mut hooks,
            mut notices,
        } = self.turn_tools(turn).await;
        notices.extend(active.take_notices());
        let provider = self.models.gated(&active.provider);
        let settings = self.reading.settings.now();
        let max_output = settings.agent.max_output_tokens;
        if let Some(compressor) = self.compressor(&settings, &provider).await {
            hooks.push(compressor);
        }
        hooks.extend(&self.context.hooks(&provider));
        hooks.push_shared(Arc::clone(&self.incomplete) as _);
        if let Some(recorder) = &self.watch.recorder {
            recorder.frame(&self.session, &offer.prefix, max_output);
        }
        self.context
            .observed(|subgoals| self.watch.subgoals(&self.session, subgoals));
        self.watch
            .turn(&self.session, turn.message.as_ref(), &mut calls)
            .await;
        hooks.extend(&self.watch.hooks(&self.session));
        self.context.restore(&turn.history, &turn.pins);
        Ok(TurnPlan {
            config: Config {
                prefix: offer.prefix,
                max_output,
                limits: self.role.limits(limits(&settings)),
                calls,
                hooks,
                ..Config::default()
            },
            provider: self.provider(&provider),
            compactor: self.context.compactor(),
            approver: Arc::clone(&self.approvals.approver),
            outputs: self.outputs(),
            notices,
        })
    }

    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>> {
        let tracker = self.tracker.clone()?;
        Some(Arc::new(tracker))
    }

    fn models(&mut self) -> &mut dyn ModelSwitch {
        &mut self.models
    }

    fn permissions(&mut self) -> &mut dyn Permissions {
        self
    }

    fn defined(&mut self) -> Defined {
        let mut defined = self.reading.commands.read();
        defined.commands.extend(self.extensions.offer().commands);
        defined
    }

    async fn close(&mut self) {
        self.extensions.close().await;
        self.context.close().await;
        if let Some(tracker) = &self.tracker {
            tracker.settle().await;
        }
    }
}

#[async_trait]
impl Permissions for LocalEnv {
    fn tools(&mut self) -> Vec<ToolInfo> {
        let specs = self.catalog.tools().specs().into_iter();
        let tool = |spec: windlass_core::tool::ToolSpec| ToolInfo {
            source: source(self.catalog.declared(), &spec.name).to_owned(),
            name: spec.name,
            description: spec.description,
        };
        specs.map(tool).collect()
    }

    fn policy(&self) -> Policy {
        self.calls.policy.clone()
    }

    fn set_mode(&mut self, mode: Mode) {
        self.calls.policy.mode = mode;
        self.role.limited(mode);
        self.reading.has_mode = true;
    }

    fn granted(&self) -> Granted {
        let user = &self.approvals.user;
        let read = environment::folders().and_then(|folders| GrantFile::of_user(&folders, user).read());
        let (lasting, always) = match read {
            Ok(grants) => {
                let lines = grants.iter().map(grant_line).collect();
                (grants, lines)
            }
            Err(problem) => (Vec::new(), vec![problem.to_string()]),
        };
        // A permanent grant also counts for the session.
        let mut session = self.approvals.approver.session_grants();
        session.retain(|grant| !lasting.contains(grant));
        let session = session.iter().map(grant_line).collect();
        Granted { session, always }
    }

    async fn user_command(&mut self, turn: &TurnStart, command: &str) -> UserCommand {
        let tools = self.turn_tools(turn).await;
        let input = own_input(&tools.calls.tools, command);
        self.command(tools, input)
    }

    async fn check_command(&mut self, turn: &TurnStart, command: &str, limit: Duration) -> UserCommand {
        let tools = self.turn_tools(turn).await;
        // No wider access than the text of the command needs: it runs what a model wrote.
        let input = json!({ "command": command, "timeout_secs": limit.as_secs().max(1) });
        self.command(tools, input.to_string())
    }
}

#[async_trait]
impl Extensions for LocalEnv {
    fn files(&self) -> Option<Arc<dyn FolderFiles>> {
        Some(Arc::clone(&self.reading.files))
    }

    fn instructions(&self) -> Vec<String> {
        self.reading.instructions.names()
    }

    async fn extension_command(
        &mut self,
        command: &ExtensionCommand<'_>,
    ) -> Option<Result<ExtensionReply, String>> {
        if command.name == "diff" {
            return Some(session_diff::command(self.tracker.as_ref(), command.arguments).await);
        }
        self.share_calls(&self.turn_calls(), &self.extensions.offer().hooks);
        self.extensions.command(command).await
    }

    fn surroundings(&self) -> FolderFacts {
        FolderFacts {
            branch: branch(&self.calls.execution.cwd),
            instructions: self.instructions(),
        }
    }
}

impl EnvFacts for LocalEnv {
    fn environment(&self) -> Option<String> {
        Some(crate::prompt::environment(&self.calls.execution.cwd))
    }

    fn hooks(&self) -> Hooks {
        let mut hooks = self.extensions.offer().hooks;
        hooks.extend(&self.watch.hooks(&self.session));
        hooks
    }

    fn jobs(&self) -> Option<Arc<dyn ScheduledJobs>> {
        // The jobs of this machine are the local user's.
        if !self.approvals.user.is_local() {
            return None;
        }
        let store = self.context.store()?;
        Some(Arc::new(UserJobs { store }))
    }

    fn titles(&self) -> Option<Arc<dyn Titles>> {
        self.models.titles()
    }

    fn goals(&self) -> Goals {
        let goal = &self.reading.settings.now().agent.goal;
        Goals {
            subgoal: self.context.subgoal(),
            follows_goal: goal.enabled && !self.role.is_agent(),
            later_messages: goal.later_messages,
            completion_phrases: goal.completion_phrases.clone(),
            autonomy: autonomy::limits(&goal.autonomy),
        }
    }

    fn supervisor(&self) -> Option<Arc<dyn SupervisorModel>> {
        let now = self.reading.settings.now();
        let name = now.agent.goal.autonomy.supervisor.provider.clone()?;
        Some(autonomy::supervisor(name, &self.models))
    }
}

/// Returns the arguments of a command that the user typed. A command that does more than read gets the access
/// that a person can approve.
fn own_input(tools: &ToolSet, command: &str) -> String {
    let plain = json!({ "command": command }).to_string();
    let prepared = tools
        .get(BASH)
        .and_then(|tool| Arc::clone(tool).prepare(&plain).ok());
    match prepared {
        Some(call) if call.category != Category::Read => {
            json!({ "command": command, "network": true, "outside": true }).to_string()
        }
        _ => plain,
    }
}

/// Returns the text about the goal for the system prompt; `None` if it is not to be included.
fn told_goal(settings: &Settings, goal: Option<&str>) -> Option<String> {
    let Settings { agent, .. } = settings;
    let prompt = agent.system_prompt.as_ref();
    let asks = prompt.is_some_and(|prompt| prompt.contains(CURRENT_GOAL));
    let is_told = asks && agent.goal.enabled && agent.goal.in_system_prompt;
    is_told.then(|| goal.unwrap_or_default().chars().take(TOLD_GOAL).collect())
}

fn system_prompt(settings: &Settings, require_done: bool) -> String {
    let mut system = settings
        .agent
        .system_prompt
        .clone()
        .unwrap_or_else(|| SYSTEM_PROMPT.to_owned());
    if require_done {
        system.push_str(REQUIRE_DONE);
    }
    system
}

/// SES-11: returns the checkpoints that track file changes; `None` if they are off.
fn tracker(
    settings: &Settings,
    workspace: &Workspace,
    spec: &SessionSpec,
    extensions: &ExtensionSet,
) -> Result<Option<Tracker>, Problem> {
    let wanted = &settings.agent.session.checkpoints;
    if !wanted.enabled {
        return Ok(None);
    }
    let bytes = |megabytes: u64| megabytes.saturating_mul(1 << 20);
    let limits = CheckpointLimits {
        file: bytes(wanted.max_file_mb),
        ignored: bytes(wanted.max_ignored_mb),
        total: bytes(wanted.max_total_mb),
        ..CheckpointLimits::default()
    };
    let folder = environment::folders()?.checkpoints();
    let tracker = Tracker::new(workspace, &folder, &spec.session, environment::clock(), limits);
    extensions.follow(&tracker);
    Ok(Some(tracker))
}

/// Returns the limits of calls from the settings.
fn call_limits(settings: &Settings) -> CallConfig {
    CallConfig {
        execution_mode: settings.tools.execution,
        timeout: settings.tools.timeout,
        max_result_chars: Some(settings.tools.max_tool_result_chars),
        retry_transient: settings.tools.retry_transient,
        ..CallConfig::default()
    }
}

/// Returns the limits of a turn from the settings.
pub fn limits(settings: &Settings) -> Limits {
    let agent = &settings.agent;
    Limits {
        max_iterations: agent.max_iterations,
        on_max_iterations: agent.on_max_iterations,
        max_cost_usd: agent.max_cost_usd,
        max_incomplete_prompts: agent.max_incomplete_prompts,
        max_conversation_messages: agent.session.max_conversation_messages,
        context_prep_timeout: settings.context.prep_timeout,
        ..Limits::default()
    }
}
