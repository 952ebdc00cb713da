//! From settings to everything a turn needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::compact::{AutoCompact, Compactor, Summarize};
use windlass_core::dispatch::Execution;
use windlass_core::id::SessionId;
use windlass_core::middleware::Middleware;
use windlass_core::permission::{Mode, Policy, Rule, Rules};
use windlass_core::provider::{Prefix, Provider};
use windlass_core::run::IncompleteWork;
use windlass_core::tool::{ExecutionContext, ToolSet};
use windlass_core::turn::{Limits, OnMaxIterations};
use windlass_tools::{Ground, TodoList, ToolsConfig, builtin, child_environment};

use crate::exit::Problem;
use crate::local::{Assembly, CallSettings};
use crate::prompt::{REQUIRE_DONE, SYSTEM_PROMPT};
use crate::settings::{self, PermissionMode, Settings, ToolExecution};
use crate::tools::declared;

/// What the run is about, beside its settings.
pub(crate) struct Purpose {
    pub(crate) cwd: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) require_done: bool,
}

/// The tools of a session, and the list that `todo` keeps.
pub(crate) fn tools(
    settings: &Settings,
    purpose: &Purpose,
    execution: &ExecutionContext,
) -> Result<(ToolSet, TodoList), Problem> {
    let env = &execution.env;
    let todos = TodoList::new();
    let config = ToolsConfig {
        command_timeout: settings.tools.timeout,
        max_command_output: settings.tools.max_output_bytes,
        offer_done: purpose.require_done,
        todos: todos.clone(),
        blocked_commands: settings.security.blocked_commands.clone(),
        ground: Ground::new(
            &purpose.cwd,
            env.get("HOME").map(Path::new),
            Some(env.get("TMPDIR").map_or(Path::new("/tmp"), Path::new)),
        ),
    };
    let mut tools = builtin(&config);
    for tool in declared()?.tools(&config, &crate::environment::var) {
        tools.insert(tool);
    }
    Ok((tools, todos))
}

/// Where calls run.
pub(crate) fn execution_context(purpose: &Purpose) -> Arc<ExecutionContext> {
    Arc::new(ExecutionContext {
        cwd: purpose.cwd.clone(),
        env: child_environment(std::env::vars(), &purpose.cwd, purpose.session.as_str()),
        session: Some(purpose.session.clone()),
    })
}

/// Puts a turn's parts together.
pub(crate) fn assemble(
    settings: &Settings,
    provider: Arc<dyn Provider>,
    purpose: &Purpose,
) -> Result<Assembly, Problem> {
    let place = execution_context(purpose);
    let (tools, todos) = tools(settings, purpose, &place)?;
    let mut system = settings
        .agent
        .system_prompt
        .clone()
        .unwrap_or_else(|| SYSTEM_PROMPT.to_owned());
    if purpose.require_done {
        system.push_str(REQUIRE_DONE);
    }
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
    Ok(Assembly {
        provider,
        prefix: Arc::new(Prefix {
            system,
            tools: tools.specs(),
            ..Prefix::default()
        }),
        tools,
        limits: limits(settings),
        max_output: settings.agent.max_output_tokens,
        calls: CallSettings {
            execution: place,
            mode: execution(settings.tools.execution),
            timeout: settings.tools.timeout,
            max_result_chars: settings.tools.max_tool_result_chars,
            policy: policy(settings),
        },
        middleware,
        compactor,
        incomplete: Some(Arc::new(OpenWork {
            todos,
            require_done: purpose.require_done,
        })),
    })
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
