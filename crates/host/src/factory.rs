//! Creates everything a turn needs from the settings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_api::{ClientError, Connections, Offer, SessionInfo};
use windlass_checkpoint::{Sharing, Tracker};
use windlass_codeindex::CodeIndexes;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{AgentRow, LogError, Store, UserName};
use windlass_core::permission::{Mode, Policy, Rule, Rules};
use windlass_core::provider::Prefixes;
use windlass_core::tool::ExecutionContext;
use windlass_sandbox::sha256_hex;
use windlass_service::{AgentCatalog, AgentCopies, AgentType, SessionEnv, SessionFactory, SessionHost};

use windlass_core::log::recall::recall_tool;
use windlass_tools::{BackgroundJobs, FetchConfig, OutputStore, TodoList, ToolsConfig, builtin};

use windlass_sandbox::{Workspace, child_environment};

use crate::account::Account;
use crate::agent_copies::LocalCopies;
use crate::agent_types::catalog;
use crate::connect::{ProviderSetup, offers};
use crate::context_parts::ContextParts;
use crate::extension::Connected;
use crate::local_env::LocalEnv;
use crate::memory::SharedMemory;
use crate::models::Models;
use crate::sandbox_access::SandboxAccess;
use crate::tool_catalog::{ToolCatalog, ToolFiles};
use crate::watch::Watch;
use windlass_config::environment;
use windlass_config::environment::Given;
use windlass_config::folders::{Folders, same_place, with_project_cache};
use windlass_config::settings::{NetworkAccess, Settings};
use windlass_config::{Problem, ProblemKind};

/// Time during which agent types are not read again, in milliseconds.
const FRESH: u64 = 1_000;

/// Parameters of a run besides its settings.
#[derive(Clone)]
pub struct SessionSpec {
    /// Folder of the session.
    pub cwd: PathBuf,
    /// Id of the session.
    pub session: SessionId,
    /// True if the model must end the turn with `done`.
    pub require_done: bool,
    /// True if a person can answer permission requests.
    pub interactive: bool,
    /// Settings given on the command line, needed when the settings are reloaded.
    pub given: Given,
    /// Observes the session.
    pub watch: Watch,
    /// Store of the session, for recalling content that is no longer sent.
    pub store: Option<Arc<dyn Store>>,
    /// Prefixes that the sessions of a run share.
    pub prefixes: Arc<Prefixes>,
    /// Code indexes that the sessions of a run share.
    pub indexes: Arc<CodeIndexes>,
    /// SUB-2: differences of a sub-agent from other sessions.
    pub agent: Option<Arc<AgentSpec>>,
    /// MEM-7: the embedding model and the vectors that the sessions of a run share.
    pub memory: Arc<SharedMemory>,
    /// DIST-7: owner of the session.
    pub account: Account,
}

/// SUB-2, SUB-3: a session that is a sub-agent.
pub struct AgentSpec {
    /// Its type.
    pub kind: AgentType,
    /// Its row in the ledger.
    pub row: AgentRow,
    /// The mode of the session above, as it is now.
    pub mode_above: SharedMode,
    /// True if it cannot start agents itself.
    pub is_leaf: bool,
}

/// The mode of a session, for the sub-agents below it.
pub type SharedMode = Arc<Mutex<Mode>>;

impl SessionSpec {
    /// A specification for listing tools and rules only.
    pub fn looking(cwd: &Path, session: &str) -> Self {
        Self {
            cwd: cwd.to_owned(),
            session: session.into(),
            require_done: true,
            interactive: true,
            given: Given::default(),
            watch: Watch::default(),
            store: None,
            prefixes: Arc::default(),
            indexes: Arc::default(),
            agent: None,
            memory: Arc::default(),
            account: Account::default(),
        }
    }
}

/// Returns the tools of a session, and the list that `todo` maintains.
pub fn tools(settings: &Settings, spec: &SessionSpec) -> Result<(ToolCatalog, TodoList), Problem> {
    let SessionTools { catalog, todos, .. } = session_tools(settings, spec)?;
    Ok((catalog, todos))
}

/// Tools, and the state that they share with other parts.
pub struct SessionTools {
    /// The tools.
    pub catalog: ToolCatalog,
    /// The todo list that the tools share.
    pub todos: TodoList,
    /// The folders that the tools work in.
    pub workspace: Workspace,
    /// The access that the settings give to them.
    pub access: Arc<SandboxAccess>,
    /// Context management.
    pub context: ContextParts,
}

/// TOOL-10: returns the configuration of `fetch`; `None` where no call of it could run.
fn fetch(settings: &Settings, spec: &SessionSpec) -> Option<FetchConfig> {
    let security = &settings.security;
    let hosts = match &security.network {
        NetworkAccess::Hosts(hosts) => hosts.clone(),
        NetworkAccess::On | NetworkAccess::Off => Vec::new(),
    };
    let has_rule = security.allow.iter().any(|rule| rule.starts_with("fetch"));
    let is_possible =
        spec.interactive || has_rule || security.mode == Mode::Full || security.network != NetworkAccess::Off;
    is_possible.then(|| FetchConfig {
        // Naming a host says that it may be a machine of this network.
        allowed_private_hosts: hosts
            .into_iter()
            .filter(|host| !host.contains(['*', ':']))
            .collect(),
    })
}

/// Returns the tools and the state that they share with other parts.
pub fn session_tools(settings: &Settings, spec: &SessionSpec) -> Result<SessionTools, Problem> {
    let todos = TodoList::new();
    let access = Arc::new(SandboxAccess::of(settings, &spec.cwd)?);
    let workspace = access.workspace()?;
    let folders = environment::folders()?;
    let config = ToolsConfig {
        command_timeout: settings.tools.timeout,
        max_command_output: settings.tools.max_output_bytes,
        offer_done: spec.require_done || spec.agent.is_some() || settings.tools.done,
        offer_ask_user: spec.interactive,
        todos: todos.clone(),
        blocked_commands: settings.security.blocked_commands.clone(),
        sandbox: access.sandbox(&workspace),
        fetch: fetch(settings, spec),
        outputs: Some(Arc::new(outputs(&folders, spec))),
        background: BackgroundJobs::default(),
        workspace: workspace.clone(),
        project_check: None,
    };
    let files = ToolFiles::new(folders, &spec.cwd);
    let execution = execution_context(spec);
    let open = (todos.clone(), config.background.clone());
    let context = ContextParts::new(settings, open, spec.store.clone(), &spec.session)?;
    let mut tools = builtin(&config);
    context.add_tools(&mut tools);
    if let Some(store) = &spec.store {
        tools.insert(recall_tool(Arc::clone(store), &spec.session));
    }
    let mut catalog = ToolCatalog::new(tools, config, files, execution)?;
    catalog.share(Arc::clone(&spec.prefixes));
    Ok(SessionTools {
        catalog,
        todos,
        workspace,
        access,
        context,
    })
}

/// CTX-11: creates the store of a session's long outputs. Commands cannot access it; `tool_output` reads it for them.
fn outputs(folders: &Folders, spec: &SessionSpec) -> OutputStore {
    let session = &spec.session;
    let outputs = OutputStore::new(outputs_folder(folders, session)).sharing(folders.outputs());
    match &spec.store {
        Some(store) => outputs.in_blobs(Arc::clone(store) as _, session.clone()),
        None => outputs,
    }
}

/// Deletes a session and the stored outputs of its tools, which are of no use without it.
///
/// # Errors
/// Fails if the session is open, or cannot be deleted.
pub async fn delete_session(
    store: &dyn Store,
    folders: &Folders,
    session: &SessionId,
) -> Result<(), LogError> {
    store.delete(session).await?;
    let _ = std::fs::remove_dir_all(outputs_folder(folders, session));
    Ok(())
}

/// Returns the folder of a session's outputs that are not in its store; it need not exist.
pub fn outputs_folder(folders: &Folders, session: &SessionId) -> PathBuf {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    let name = match session.as_str() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
        odd => sha256_hex(odd.as_bytes()),
    };
    folders.outputs().join(name)
}

/// Returns the context that tool calls run in.
fn execution_context(spec: &SessionSpec) -> Arc<ExecutionContext> {
    Arc::new(ExecutionContext {
        cwd: spec.cwd.clone(),
        env: child_environment(environment::vars(), &spec.cwd, spec.session.as_str()),
        session: Some(spec.session.clone()),
    })
}

/// SES-15: creates the environments of sessions, each for the folder that the session belongs to.
///
/// The settings and models of the run's own folder are shared with the sessions of that folder, except for
/// the choice of a model, which is each session's own. A session of another folder gets the settings, trust,
/// tools, models and sandbox of that folder.
pub struct LocalFactory {
    settings: Arc<Settings>,
    models: Models,
    spec: SessionSpec,
    /// The environment of the session that the run is about.
    first: Mutex<First>,
    /// Parts of each session's environment that other sessions need.
    sessions: Arc<Mutex<HashMap<SessionId, Shared>>>,
    /// Agent types by folder, and when they were read.
    types: Mutex<HashMap<PathBuf, (Timestamp, AgentCatalog)>>,
    /// DIST-5: name under which this process owns its sessions in the store.
    owner: String,
}

/// Parts of a session's environment that other sessions need.
#[derive(Clone)]
struct Shared {
    models: Models,
    settings: Arc<Settings>,
    mode: SharedMode,
    /// Checkpoints, if they are on.
    tracker: Option<Tracker>,
}

/// The environment of the session that the run is about. It is created once, by whoever needs it first.
#[derive(Default)]
enum First {
    #[default]
    Missing,
    Prepared(Box<LocalEnv>),
    /// The session has it.
    Taken,
}

impl LocalFactory {
    /// Creates environments from these settings and models. `owner` is the name under which this process owns its
    /// sessions in the store.
    pub fn new(settings: &Arc<Settings>, models: &Models, spec: SessionSpec, owner: &str) -> Self {
        Self {
            settings: Arc::clone(settings),
            models: models.clone(),
            spec,
            first: Mutex::default(),
            sessions: Arc::default(),
            types: Mutex::default(),
            owner: owner.to_owned(),
        }
    }

    /// Creates the environment of the session that the run is about, so that a problem has its own exit code.
    /// The service may ask for it before or after this call. `place` is the folder that the session belongs
    /// to.
    ///
    /// # Errors
    /// Fails if the settings of the folder cannot be used, or the folder does not exist.
    pub fn prepare(&self, place: &Path) -> Result<(), Problem> {
        let mut first = lock(&self.first);
        if matches!(*first, First::Missing) {
            let own = (&self.spec.session, &self.spec.account.user);
            let env = self.environment(own, place, self.models.clone())?;
            *first = First::Prepared(Box::new(env));
        }
        Ok(())
    }

    /// Returns the environment of the session that the run is about. The session uses the models of the run,
    /// whether or not the environment was prepared.
    fn take_first(&self, place: &Path) -> Result<LocalEnv, Problem> {
        let mut first = lock(&self.first);
        let env = match std::mem::take(&mut *first) {
            First::Prepared(env) => *env,
            First::Missing | First::Taken => {
                let own = (&self.spec.session, &self.spec.account.user);
                self.environment(own, place, self.models.clone())?
            }
        };
        *first = First::Taken;
        Ok(env)
    }

    /// Returns the settings given on the command line.
    pub fn given(&self) -> &Given {
        &self.spec.given
    }

    /// Returns the checkpoints of a session that is open here; `None` if it is not, or if they are off.
    pub fn tracker(&self, session: &SessionId) -> Option<Tracker> {
        lock(&self.sessions).get(session)?.tracker.clone()
    }

    /// Returns the models of a session.
    fn models_of(&self, session: &SessionId) -> Models {
        let shared = lock(&self.sessions).get(session).cloned();
        shared.map_or_else(|| self.models.clone(), |shared| shared.models)
    }

    /// Creates the environment of a session in its own folder.
    fn environment(
        &self,
        (session, user): (&SessionId, &UserName),
        place: &Path,
        models: Models,
    ) -> Result<LocalEnv, Problem> {
        let spec = SessionSpec {
            session: session.clone(),
            account: self.spec.account.of(user),
            ..self.spec.clone()
        };
        if same_place(place, &self.spec.cwd) {
            return self.make(&self.settings, models, &spec);
        }
        if !place.is_dir() {
            let text = format!(
                "the folder of this session is not here: {}; bring it back, or continue in a copy of the session from \
                 another folder with --fork",
                place.display()
            );
            return Err(Problem::new(ProblemKind::Failed, text));
        }
        let settings = Arc::new(environment::settings(&self.spec.given, place)?);
        let spec = SessionSpec {
            cwd: place.to_owned(),
            ..spec
        };
        let mut env = self.make(&settings, self.models.of_folder(&settings), &spec)?;
        env.notify(settings.warnings.clone());
        Ok(env)
    }

    /// DIST-5: describes the folder of a session in its store, if several servers share that. The folder of a sub-agent
    /// goes with the session above it.
    fn share(&self, env: &LocalEnv, settings: &Settings, spec: &SessionSpec) {
        let store = spec.store.as_ref().and_then(|store| store.cluster());
        let is_wanted = settings.agent.session.checkpoints.share && spec.agent.is_none();
        if let (Some(tracker), Some(store), true) = (env.tracker(), store, is_wanted) {
            let machine = rustix::system::uname();
            tracker.share(Sharing {
                store,
                session: spec.session.clone(),
                owner: self.owner.clone(),
                machine: machine.nodename().to_string_lossy().into_owned(),
            });
        }
    }

    fn make(
        &self,
        settings: &Arc<Settings>,
        models: Models,
        spec: &SessionSpec,
    ) -> Result<LocalEnv, Problem> {
        let env = with_project_cache(|| LocalEnv::new(settings, models.clone(), spec))?;
        self.share(&env, settings, spec);
        let shared = Shared {
            models,
            settings: Arc::clone(settings),
            mode: env.shared_mode(),
            tracker: env.tracker(),
        };
        lock(&self.sessions).insert(spec.session.clone(), shared);
        Ok(env)
    }

    /// Returns the agent types of a folder. Files are read again after a moment, so that starting many agents does
    /// not read them for each.
    fn catalog(&self, settings: &Settings, place: &Path) -> AgentCatalog {
        let now = environment::clock().now();
        let mut types = lock(&self.types);
        if let Some((read, known)) = types.get(place)
            && now.0.saturating_sub(read.0) < FRESH
        {
            return known.clone();
        }
        let read = match environment::folders() {
            Ok(folders) => catalog(&settings.agent.children, &folders, place),
            Err(_) => AgentCatalog::default(),
        };
        types.insert(place.to_owned(), (now, read.clone()));
        read
    }

    /// Returns the shared parts of the session above a sub-agent. It need not be live.
    fn above(&self, parent: &SessionInfo) -> Result<Shared, Problem> {
        if let Some(shared) = lock(&self.sessions).get(&parent.id) {
            return Ok(shared.clone());
        }
        let place = Path::new(&parent.place);
        let (settings, models) = if same_place(place, &self.spec.cwd) {
            (Arc::clone(&self.settings), self.models.clone())
        } else {
            let settings = Arc::new(environment::settings(&self.spec.given, place)?);
            let models = self.models.of_folder(&settings);
            (settings, models)
        };
        let mode = Arc::new(Mutex::new(settings.security.mode));
        Ok(Shared {
            models,
            settings,
            mode,
            tracker: None,
        })
    }

    /// SUB-2: creates the environment of a sub-agent: settings, rules and mode are those of the session above.
    fn agent(&self, session: &SessionInfo, row: AgentRow, parent: &SessionInfo) -> Result<LocalEnv, Problem> {
        let above = self.above(parent)?;
        let children = &above.settings.agent.children;
        let catalog = self.catalog(&above.settings, Path::new(&parent.place));
        let known = catalog.find(&row.job.kind).or_else(|| catalog.find("task"));
        let kind = known.cloned().unwrap_or_else(|| AgentType::new("task", "", ""));
        let models = match kind.model.name.as_ref().or(children.model.as_ref()) {
            Some(model) => above.models.choosing(model),
            None => above.models.of_session(),
        };
        let models = match &kind.model.effort {
            Some(effort) => models.reasoning(effort),
            None => models,
        };
        let spec = SessionSpec {
            session: session.id.clone(),
            account: self.spec.account.of(&session.user),
            cwd: PathBuf::from(&session.place),
            require_done: false,
            agent: Some(Arc::new(AgentSpec {
                is_leaf: row.family.depth >= children.limits.max_spawn_depth,
                kind,
                row,
                mode_above: above.mode,
            })),
            ..self.spec.clone()
        };
        self.make(&above.settings, models, &spec)
    }
}

#[async_trait]
impl SessionFactory for LocalFactory {
    async fn create(&self, session: &SessionInfo, host: SessionHost) -> Result<Box<dyn SessionEnv>, String> {
        let place = Path::new(&session.place);
        let made = match (host.agent, &host.parent) {
            (Some(row), Some(parent)) => self.agent(session, row, parent),
            _ if session.id == self.spec.session => self.take_first(place),
            _ => {
                let models = self.models.of_user(&session.user).await;
                self.environment((&session.id, &session.user), place, models)
            }
        };
        let mut env = made.map_err(|problem| problem.to_string())?;
        let connected = Connected {
            asker: host.asker,
            inputs: host.inputs,
        };
        env.connect(connected, host.tools);
        Ok(Box::new(env))
    }

    async fn budget_left(&self, session: &SessionInfo) -> Option<String> {
        let account = self.spec.account.of(&session.user);
        let budget = account.budget(&self.settings, self.spec.store.as_ref()).ok()??;
        budget.left().await.ok().map(|left| left.to_string())
    }

    async fn agents(&self, session: &SessionInfo) -> AgentCatalog {
        let settings = lock(&self.sessions)
            .get(&session.id)
            .map(|shared| Arc::clone(&shared.settings));
        let settings = settings.unwrap_or_else(|| Arc::clone(&self.settings));
        self.catalog(&settings, Path::new(&session.place))
    }

    async fn release(&self, session: &SessionId) {
        lock(&self.sessions).remove(session);
    }

    fn copies(&self) -> Option<Arc<dyn AgentCopies>> {
        let folders = environment::folders().ok()?;
        let sessions = Arc::clone(&self.sessions);
        let trackers = Arc::new(move |session: &SessionId| lock(&sessions).get(session)?.tracker.clone());
        Some(Arc::new(LocalCopies::new(&folders, trackers)))
    }

    async fn forget(&self, session: &SessionId) {
        lock(&self.sessions).remove(session);
        if let Ok(folders) = environment::folders() {
            // The outputs are useless without the session.
            let _ = std::fs::remove_dir_all(outputs_folder(&folders, session));
        }
    }
}

/// A provider is set up for the session that the user is in: its next turn uses it.
#[async_trait]
impl Connections for LocalFactory {
    fn offers(&self, session: &SessionId) -> Vec<Offer> {
        offers(&self.models_of(session))
    }

    async fn connect(&self, session: &SessionId, provider: &str, key: &str) -> Result<String, ClientError> {
        let setup = ProviderSetup::new(self.models_of(session));
        setup.connect(provider, key).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the rules and the mode in effect, for a session without a person.
pub fn policy(settings: &Settings) -> Policy {
    let security = &settings.security;
    // Each rule was checked when the settings were read.
    let rules = |texts: &[String]| {
        texts
            .iter()
            .filter_map(|text| text.parse::<Rule>().ok())
            .collect()
    };
    let mut allow: Vec<Rule> = rules(&security.allow);
    allow.extend(fetch_rules(&security.network));
    Policy {
        rules: Rules {
            deny: rules(&security.deny),
            ask: rules(&security.ask),
            allow,
        },
        mode: security.mode,
        ask_for_writes: !security.auto_approve_writes,
        attended: false,
    }
}

/// TOOL-10: returns the rules for pages that follow from the hosts of commands.
fn fetch_rules(network: &NetworkAccess) -> Vec<Rule> {
    let texts = match network {
        NetworkAccess::Off => Vec::new(),
        NetworkAccess::On => vec!["fetch".to_owned()],
        NetworkAccess::Hosts(hosts) => hosts
            .iter()
            // A port is a rule for commands only: pages are judged by host.
            .filter(|host| !host.contains(':'))
            .map(|host| format!("fetch(domain:{})", host.trim_start_matches("*.")))
            .collect(),
    };
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
