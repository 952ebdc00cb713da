//! Tools that act on this machine: a shell, files, search, and the agent's own notes.
//!
//! The things to know:
//!
//! - [`builtin`] makes the tools, in the order in which a model sees them, from a [`ToolsConfig`].
//! - [`child_environment`] is what a command may know of our environment. It goes into the execution context of a turn.
//! - [`TodoList`] is the agent's list of what is left to do; it is shared with whoever wants to know what is open.
//! - [`OutputStore`] keeps what is too long to be shown. It goes into the [`ToolsConfig`] and to the loop.
//! - [`process`] starts processes and ends whole trees of them. A program that offers `bash` calls
//!   [`process::adopt_orphans`] when it starts and [`process::settle`] before it exits.
//!
//! ```
//! use std::sync::Arc;
//!
//! use windlass_core::tool::{ExecutionContext, Person, Progress, ToolContext};
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
//!     })
//!     .await?;
//! assert_eq!(output.content, "hello\n[exit code 3]");
//! assert!(output.failed);
//! # Ok(())
//! # }
//! ```
//!
//! What a tool answers is short text for the model, and details for people: a diff, an exit code, counts. Output that
//! would not fit is cut where a character ends, and says so.
//!
//! What this crate deliberately does not do: decide whether a call may run (that is the core's), read the environment or
//! the clock outside [`process`] and `bash`, or keep a shell between calls.

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

pub use self::fetch::FetchConfig;
pub use self::outputs::OutputStore;
pub use self::todo::{TodoItem, TodoList, TodoStatus};
use crate::bash::{Jobs, Keeping};
use crate::ledger::FileLedger;

/// What the built-in tools need to know.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// How long a command may run when the call does not say.
    pub command_timeout: Duration,
    /// How many bytes of a command's output are kept.
    pub max_command_output: usize,
    /// Whether the model is offered `done`.
    pub offer_done: bool,
    /// Whether somebody is there whom the model can ask.
    pub offer_ask_user: bool,
    /// Where `todo` keeps its list.
    pub todos: TodoList,
    /// The folder the session works in, and where files may be used.
    pub ground: Workspace,
    /// What commands run behind. None by default: a program that wants them calls [`sandbox::enter`] in its `main`.
    pub walls: Arc<CommandSandbox>,
    /// How `fetch` works; it is not offered without.
    pub fetch: Option<FetchConfig>,
    /// What `bash` refuses to run.
    pub blocked_commands: Vec<String>,
    /// Tells what runs in the background.
    pub background: BackgroundJobs,
    /// Where the whole of a long output is kept. Without it, what is cut is lost, and `tool_output` is not offered.
    pub outputs: Option<Arc<OutputStore>>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_secs(120),
            max_command_output: 200_000,
            offer_done: false,
            offer_ask_user: false,
            todos: TodoList::new(),
            ground: Workspace::default(),
            walls: Arc::default(),
            fetch: None,
            blocked_commands: windlass_shell::BLOCKED_COMMANDS
                .iter()
                .map(|entry| (*entry).to_owned())
                .collect(),
            background: BackgroundJobs::default(),
            outputs: None,
        }
    }
}

/// What runs in the background of a session.
#[derive(Clone, Default)]
pub struct BackgroundJobs(Arc<OnceLock<Arc<Jobs>>>);

impl std::fmt::Debug for BackgroundJobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackgroundJobs")
    }
}

impl BackgroundJobs {
    /// Each job that still runs, in a line.
    pub fn running(&self) -> Vec<String> {
        let jobs = self.0.get().map(|jobs| jobs.all()).unwrap_or_default();
        let running = jobs.iter().filter(|job| job.life().is_running());
        running.map(|job| bash::named(job)).collect()
    }
}

/// The built-in tools of one session, in the order in which a model sees them. They share what they know of the files
/// they read, so each session has its own.
pub fn builtin(config: &ToolsConfig) -> ToolSet {
    let ledger = FileLedger::default();
    let ground = &config.ground;
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
            ground: ground.clone(),
        })
        .with(write_file::WriteFile {
            ledger: ledger.clone(),
            ground: ground.clone(),
        })
        .with(edit_file::EditFile {
            ledger: ledger.clone(),
            ground: ground.clone(),
        })
        .with(apply_patch::ApplyPatch {
            ledger,
            ground: ground.clone(),
        })
        .with(list_directory::ListDirectory {
            ground: ground.clone(),
        })
        .with(glob::Glob {
            ground: ground.clone(),
        })
        .with(grep::Grep {
            ground: ground.clone(),
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
            ground: ground.clone(),
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
