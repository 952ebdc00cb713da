//! From settings to everything a turn needs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use windlass_api::SessionInfo;
use windlass_core::checkpoint::Checkpoints;
use windlass_core::compact::{AutoCompact, Compactor, Summarize};
use windlass_core::dispatch::Execution;
use windlass_core::id::SessionId;
use windlass_core::middleware::Middleware;
use windlass_core::permission::{Asker, Granting, Mode, Policy, Rule, Rules};
use windlass_core::run::IncompleteWork;
use windlass_core::tool::ExecutionContext;
use windlass_core::turn::{Limits, OnMaxIterations};
use windlass_service::{
    Access, Bench, CallSettings, Defined, Models, NotReady, Setup, Titles, ToolInfo, TurnStart, Workshop,
};
use windlass_tools::declared::hex_digest;
use windlass_tools::{FetchConfig, OutputStore, TodoList, ToolsConfig, builtin, child_environment};

use crate::command_files::CommandFiles;
use crate::environment;
use crate::exit::Problem;
use crate::folders::Folders;
use crate::grants::{GrantFile, NobodyNow, grant_line};
use crate::prompt::{REQUIRE_DONE, SYSTEM_PROMPT};
use crate::reach::Reach;
use crate::reload::{ToolFiles, Workbench, source};
use crate::roster::Roster;
use crate::settings::{self, PermissionMode, Settings, ToolExecution};

/// What the run is about, beside its settings.
#[derive(Clone)]
pub(crate) struct Purpose {
    pub(crate) cwd: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) require_done: bool,
    /// Whether somebody answers questions.
    pub(crate) interactive: bool,
}

/// The tools of a session, and the list that `todo` keeps.
pub(crate) fn tools(settings: &Settings, purpose: &Purpose) -> Result<(Workbench, TodoList), Problem> {
    let todos = TodoList::new();
    let reach = Reach::new(&settings.security, &purpose.cwd)?;
    let ground = reach.ground()?;
    let folders = environment::folders()?;
    let config = ToolsConfig {
        command_timeout: settings.tools.timeout,
        max_command_output: settings.tools.max_output_bytes,
        offer_done: purpose.require_done,
        offer_ask_user: purpose.interactive,
        todos: todos.clone(),
        blocked_commands: settings.security.blocked_commands.clone(),
        walls: reach.walls(&ground),
        fetch: settings.security.network.then(FetchConfig::default),
        outputs: Some(Arc::new(outputs(&folders, &purpose.session))),
        ground,
    };
    let files = ToolFiles::new(folders, &purpose.cwd);
    let execution = execution_context(purpose);
    Ok((Workbench::new(builtin(&config), config, files, execution)?, todos))
}

/// CTX-11: where a session's long outputs are kept. Commands cannot go there, `tool_output` reads it for them.
fn outputs(folders: &Folders, session: &SessionId) -> OutputStore {
    OutputStore::new(outputs_folder(folders, session)).sharing(folders.outputs())
}

/// The folder of a session's long outputs; it need not exist.
pub(crate) fn outputs_folder(folders: &Folders, session: &SessionId) -> PathBuf {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    let name = match session.as_str() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
        odd => hex_digest(odd.as_bytes()),
    };
    folders.outputs().join(name)
}

/// Where calls run.
fn execution_context(purpose: &Purpose) -> Arc<ExecutionContext> {
    Arc::new(ExecutionContext {
        cwd: purpose.cwd.clone(),
        env: child_environment(std::env::vars(), &purpose.cwd, purpose.session.as_str()),
        session: Some(purpose.session.clone()),
    })
}

/// What a session works with.
pub(crate) struct SessionBench {
    roster: Roster,
    titles: Option<Arc<dyn Titles>>,
    checkpoints: Option<Arc<dyn Checkpoints>>,
    commands: CommandFiles,
    workbench: Workbench,
    limits: Limits,
    max_output: Option<u64>,
    calls: CallSettings,
    middleware: Vec<Arc<dyn Middleware>>,
    compactor: Option<Arc<dyn Compactor>>,
    incomplete: Arc<OpenWork>,
    /// Keeps lasting answers, where somebody is asked.
    grants: Option<GrantFile>,
}

/// Puts a session's parts together.
pub(crate) fn assemble(
    settings: &Settings,
    roster: Roster,
    purpose: &Purpose,
) -> Result<SessionBench, Problem> {
    let (mut workbench, todos) = tools(settings, purpose)?;
    let mut system = settings
        .agent
        .system_prompt
        .clone()
        .unwrap_or_else(|| SYSTEM_PROMPT.to_owned());
    if purpose.require_done {
        system.push_str(REQUIRE_DONE);
    }
    workbench.set_system_prompt(system);
    let context = &settings.context;
    let middleware: Vec<Arc<dyn Middleware>> = if context.auto_compact {
        vec![Arc::new(AutoCompact {
            threshold: context.hard_threshold,
        })]
    } else {
        Vec::new()
    };
    let compactor: Option<Arc<dyn Compactor>> = context.auto_compact.then(|| {
        Arc::new(Summarize {
            keep_recent: context.keep_recent_messages,
        }) as _
    });
    let grants = || -> Result<GrantFile, Problem> { Ok(GrantFile::new(&environment::folders()?.data)) };
    Ok(SessionBench {
        titles: roster.titles(),
        roster,
        // Whoever keeps what calls change is put here, and around the tools.
        checkpoints: None,
        commands: CommandFiles::new(environment::folders()?, &purpose.cwd),
        limits: limits(settings),
        max_output: settings.agent.max_output_tokens,
        calls: CallSettings {
            execution: workbench.execution(),
            // Whoever is asked is known when the session is.
            approver: Arc::new(NobodyNow(grants()?)),
            mode: execution(settings.tools.execution),
            timeout: settings.tools.timeout,
            max_result_chars: settings.tools.max_tool_result_chars,
            outputs: workbench.outputs().map(|store| store as _),
            retry_transient: settings.tools.retry_transient,
            policy: policy(settings),
        },
        workbench,
        middleware,
        compactor,
        incomplete: Arc::new(OpenWork {
            todos,
            require_done: purpose.require_done,
        }),
        grants: purpose.interactive.then(grants).transpose()?,
    })
}

#[async_trait]
impl Bench for SessionBench {
    async fn setup(&mut self, _turn: &TurnStart) -> Result<Setup, NotReady> {
        let line = self.roster.ready().await?;
        let (offer, mut notices) = self.workbench.refresh();
        notices.extend(line.take_notices());
        Ok(Setup {
            provider: Arc::clone(&line.provider),
            tools: offer.tools,
            prefix: offer.prefix,
            limits: self.limits.clone(),
            max_output: self.max_output,
            calls: CallSettings {
                execution: offer.execution,
                ..self.calls.clone()
            },
            middleware: self.middleware.clone(),
            compactor: self.compactor.clone(),
            incomplete: Some(Arc::clone(&self.incomplete) as _),
            titles: self.titles.clone(),
            notices,
        })
    }

    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>> {
        self.checkpoints.clone()
    }

    fn models(&mut self) -> &mut dyn Models {
        &mut self.roster
    }

    fn access(&mut self) -> &mut dyn Access {
        self
    }

    fn defined(&mut self) -> Defined {
        self.commands.read()
    }
}

impl Access for SessionBench {
    fn tools(&mut self) -> Vec<ToolInfo> {
        let specs = self.workbench.tools().specs().into_iter();
        let tool = |spec: windlass_core::tool::ToolSpec| ToolInfo {
            source: source(self.workbench.declared(), &spec.name).to_owned(),
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
    }

    fn granted(&self) -> Vec<String> {
        let read = environment::folders().and_then(|folders| GrantFile::new(&folders.data).read());
        match read {
            Ok(grants) => grants.iter().map(grant_line).collect(),
            Err(problem) => vec![problem.to_string()],
        }
    }
}

/// The workshop of a run: one folder, one set of settings, one choice of a model for all its sessions.
pub(crate) struct RunWorkshop {
    settings: Arc<Settings>,
    roster: Roster,
    purpose: Purpose,
    /// The bench of the session that the run is about, made before it, so that what is wrong has its own exit code.
    first: Mutex<Option<SessionBench>>,
}

impl RunWorkshop {
    pub(crate) fn new(settings: &Arc<Settings>, roster: &Roster, purpose: Purpose) -> Result<Self, Problem> {
        let first = assemble(settings, roster.clone(), &purpose)?;
        Ok(Self {
            settings: Arc::clone(settings),
            roster: roster.clone(),
            purpose,
            first: Mutex::new(Some(first)),
        })
    }

    fn first(&self, session: &SessionId) -> Option<SessionBench> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.take_if(|_| *session == self.purpose.session)
    }
}

#[async_trait]
impl Workshop for RunWorkshop {
    async fn bench(&self, session: &SessionInfo, asker: Arc<dyn Asker>) -> Result<Box<dyn Bench>, String> {
        let mut bench = match self.first(&session.id) {
            Some(bench) => bench,
            None => {
                let purpose = Purpose {
                    session: session.id.clone(),
                    ..self.purpose.clone()
                };
                let made = assemble(&self.settings, self.roster.clone(), &purpose);
                made.map_err(|problem| problem.to_string())?
            }
        };
        if let Some(grants) = bench.grants.take() {
            bench.calls.approver = Arc::new(Granting::new(asker, Box::new(grants)));
        }
        Ok(Box::new(bench))
    }

    async fn forget(&self, session: &SessionId) {
        if let Ok(folders) = environment::folders() {
            // They are of no use without the session.
            let _ = std::fs::remove_dir_all(outputs_folder(&folders, session));
        }
    }
}

fn limits(settings: &Settings) -> Limits {
    let agent = &settings.agent;
    Limits {
        max_iterations: agent.max_iterations,
        on_max_iterations: match agent.on_max_iterations {
            settings::OnMaxIterations::Summary => OnMaxIterations::Summary,
            settings::OnMaxIterations::Message => OnMaxIterations::Message,
        },
        max_cost_usd: agent.max_cost_usd,
        max_incomplete_prompts: agent.max_incomplete_prompts,
        ..Limits::default()
    }
}

/// The rules and the mode in effect.
pub(crate) fn policy(settings: &Settings) -> Policy {
    let security = &settings.security;
    // Each was checked when the settings were read.
    let rules = |texts: &[String]| {
        texts
            .iter()
            .filter_map(|text| text.parse::<Rule>().ok())
            .collect()
    };
    Policy {
        rules: Rules {
            deny: rules(&security.deny),
            ask: rules(&security.ask),
            allow: rules(&security.allow),
        },
        mode: match security.mode {
            PermissionMode::Plan => Mode::Plan,
            PermissionMode::Default => Mode::Default,
            PermissionMode::AcceptEdits => Mode::AcceptEdits,
            PermissionMode::Unattended => Mode::Unattended,
            PermissionMode::Full => Mode::Full,
        },
        ask_for_writes: !security.auto_approve_writes,
    }
}

fn execution(mode: ToolExecution) -> Execution {
    match mode {
        ToolExecution::Auto => Execution::Auto,
        ToolExecution::Parallel => Execution::Parallel,
        ToolExecution::Sequential => Execution::Sequential,
    }
}

/// Knows of open todos, and of a `done` that was not called.
struct OpenWork {
    todos: TodoList,
    require_done: bool,
}

#[async_trait]
impl IncompleteWork for OpenWork {
    async fn prompt(&self, _answer: &str) -> Option<String> {
        let open = self.todos.open();
        if !open.is_empty() {
            let list: Vec<_> = open.iter().map(|item| format!("- {item}")).collect();
            return Some(format!(
                "These items of your todo list are still open:\n{}\nFinish them, or update the list if they no longer apply.",
                list.join("\n")
            ));
        }
        self.require_done.then(|| {
            "You answered without calling the done tool. If the work is finished and verified, call done with your \
             final answer; otherwise go on."
                .to_owned()
        })
    }
}
