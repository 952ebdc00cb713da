//! Tools that act on this machine: a shell, files, search, and the agent's own notes.
//!
//! Start here:
//!
//! - [`builtin`] creates the tools, in the order in which a model sees them, from a [`ToolsConfig`].
//! - [`child_environment`] is the part of our environment that a command may see. It goes into the execution
//!   context of a turn.
//! - [`TodoList`] is the agent's list of open tasks; it is shared with callers that need to know them.
//! - [`OutputStore`] stores outputs that are too long to be shown. It goes into the [`ToolsConfig`] and to
//!   the loop.
//! - [`process`] starts processes and ends whole trees of them. A program that offers `bash` calls
//!   [`process::adopt_orphans`] when it starts and [`process::settle`] before it exits.
//!
//! ```
//! use std::sync::Arc;
//!
//! use windlass_core::tool::{CallModel, ExecutionContext, Person, Progress, ToolContext};
//! use windlass_tools::{ToolsConfig, builtin};
//! use windlass_sandbox::child_environment;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let execution = ExecutionContext {
//!     cwd: folder.path().to_owned(),
//!     env: child_environment(std::env::vars(), folder.path(), "s1"),
//!     session: None,
//! };
//! let tools = builtin(&ToolsConfig::default());
//! let bash = tools.get("bash").ok_or("no bash")?;
//! let call = Arc::clone(bash).prepare(r#"{"command": "echo hello; exit 3"}"#)?;
//! let output = call
//!     .run(ToolContext {
//!         call_id: "call-1".into(),
//!         cancel: Default::default(),
//!         execution: Arc::new(execution),
//!         progress: Progress::none(),
//!         person: Person::nobody(),
//!         model: CallModel::none(),
//!         confirmed: false,
//!         places: Arc::default(),
//!     })
//!     .await?;
//! assert_eq!(output.content, "hello\n[exit code 3]");
//! assert!(output.failed);
//! # Ok(())
//! # }
//! ```
//!
//! A tool returns a short text for the model, and details for people: a diff, an exit code, counts. Output
//! that would not fit is cut at a character boundary, with a notice.
//!
//! This crate deliberately does not decide whether a call may run (the core does), read the environment or
//! the clock outside [`process`] and `bash`, or keep a shell between calls.
//!
//! [`child_environment`]: windlass_sandbox::child_environment
//! [`process`]: windlass_sandbox::process
//! [`process::adopt_orphans`]: windlass_sandbox::process::adopt_orphans
//! [`process::settle`]: windlass_sandbox::process::settle

mod apply_patch;
mod arguments;
mod ask_user;
mod bash;
mod bash_job;
mod blocking;
pub mod declared;
mod disk;
mod done;
mod edit_file;
mod fetch;
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod grep;
mod indentation;
mod ledger;
mod list_directory;
mod nearest;
mod outputs;
mod read_file;
mod search;
mod set_working_directory;
mod todo;
mod tool_output;
mod typography;
mod write_file;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_core::tool::ToolSet;
use windlass_sandbox::{CommandSandbox, Workspace};

pub use self::fetch::{FetchConfig, address_objection};
pub use self::outputs::OutputStore;
pub use self::todo::{TodoItem, TodoList, TodoStatus};
use crate::bash::{Jobs, Keeping};
use crate::declared::ProjectCheck;
use crate::ledger::FileLedger;

/// Configuration of the built-in tools.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// Default timeout of a command.
    pub command_timeout: Duration,
    /// Maximum number of bytes kept of a command's output.
    pub max_command_output: usize,
    /// True if the model is offered `done`.
    pub offer_done: bool,
    /// True if there is a user that the model can ask.
    pub offer_ask_user: bool,
    /// List that `todo` writes to.
    pub todos: TodoList,
    /// The folder the session works in, and the files it may use.
    pub workspace: Workspace,
    /// Sandbox that commands run in. None by default: a program that wants one calls
    /// [`windlass_sandbox::enter`] in its `main`.
    pub sandbox: Arc<CommandSandbox>,
    /// Configuration of `fetch`, which is not offered without one.
    pub fetch: Option<FetchConfig>,
    /// Commands that `bash` refuses to run.
    pub blocked_commands: Vec<String>,
    /// Handle that lists the background jobs.
    pub background: BackgroundJobs,
    /// Store for full outputs. Without it, cut output is lost and `tool_output` is not offered.
    pub outputs: Option<Arc<OutputStore>>,
    /// Check before each call of a tool that a project declares. Without it, such tools are not checked again.
    pub project_check: Option<ProjectCheck>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_secs(120),
            max_command_output: 200_000,
            offer_done: false,
            offer_ask_user: false,
            todos: TodoList::new(),
            workspace: Workspace::default(),
            sandbox: Arc::default(),
            fetch: None,
            blocked_commands: windlass_shell::BLOCKED_COMMANDS
                .iter()
                .map(|entry| (*entry).to_owned())
                .collect(),
            background: BackgroundJobs::default(),
            outputs: None,
            project_check: None,
        }
    }
}

/// Background jobs of a session.
#[derive(Clone, Default)]
pub struct BackgroundJobs(Arc<OnceLock<Arc<Jobs>>>);

impl std::fmt::Debug for BackgroundJobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackgroundJobs")
    }
}

impl BackgroundJobs {
    /// Returns one line for each job that still runs.
    pub fn running(&self) -> Vec<String> {
        let jobs = self.0.get().map(|jobs| jobs.all()).unwrap_or_default();
        let running = jobs.iter().filter(|job| job.life().is_running());
        running.map(|job| bash::named(job)).collect()
    }
}

/// Creates the built-in tools of one session, in the order in which a model sees them. They share the state
/// of the files they read, so each session has its own set.
pub fn builtin(config: &ToolsConfig) -> ToolSet {
    let ledger = FileLedger::default();
    let workspace = &config.workspace;
    let jobs = Arc::new(Jobs::new(Keeping::new(config, "job")));
    let _ = config.background.0.set(Arc::clone(&jobs));
    let tools = ToolSet::new()
        .with(bash::Bash::new(config, Arc::clone(&jobs)))
        .with(bash_job::BashJob { jobs });
    let tools = match &config.outputs {
        Some(store) => tools.with(tool_output::ToolOutputReader {
            store: Arc::clone(store),
        }),
        None => tools,
    };
    let tools = tools
        .with(read_file::ReadFile {
            ledger: ledger.clone(),
            workspace: workspace.clone(),
        })
        .with(write_file::WriteFile {
            ledger: ledger.clone(),
            workspace: workspace.clone(),
        })
        .with(edit_file::EditFile {
            ledger: ledger.clone(),
            workspace: workspace.clone(),
        })
        .with(apply_patch::ApplyPatch {
            ledger,
            workspace: workspace.clone(),
        })
        .with(list_directory::ListDirectory {
            workspace: workspace.clone(),
        })
        .with(glob::Glob {
            workspace: workspace.clone(),
        })
        .with(grep::Grep {
            workspace: workspace.clone(),
        });
    let tools = match &config.fetch {
        Some(fetch) => tools.with(fetch::Fetch::new(fetch)),
        None => tools,
    };
    let tools = tools
        .with(todo::Todo {
            list: config.todos.clone(),
        })
        .with(set_working_directory::SetWorkingDirectory {
            workspace: workspace.clone(),
        });
    let tools = if config.offer_ask_user {
        tools.with(ask_user::AskUser)
    } else {
        tools
    };
    if config.offer_done {
        tools.with(done::Done)
    } else {
        tools
    }
}
