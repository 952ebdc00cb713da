//! Command-line arguments for stored sessions: `windlass sessions`, `db`, `checkpoint`, `undo`, `redo`,
//! `replay` and `context`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_core::log::{UserName, UserNameError};
use windlass_host::import::ImportFormat;

/// Text at the end of `windlass sessions --help`.
pub(crate) const SESSIONS_HELP: &str = "\
SESSION is an id, a unique start of an id, or a name.

Examples:
  windlass sessions list                      list the sessions of this folder
  windlass sessions search rate limit         find sessions by their text, or by a question
  windlass exec --resume 0197a1b2-c3d4 \"…\"    resume a session
  windlass sessions export 0197a1b2-c3d4      read a whole session

Exit codes:
  0    success
  1    failed, or a file is damaged and nothing was imported
  2    no such session, several matching sessions, or wrong usage
  4    the session is in use
  5    not deleted: you declined, or there was no terminal to ask on and no --yes
  10   the session store cannot be used: see `windlass db check`";

/// Text at the end of `windlass db --help`.
pub(crate) const DB_HELP: &str = "\
Exit codes:
  0    success, no damage found
  1    `check` found damage, or the target file already exists
  2    wrong usage, or a command that only works on a file
  4    a session to be copied is in use
  10   the database cannot be used: damaged, from a newer version, or of another program

These commands never overwrite a file.";

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, most recently changed first
    List(ListOptions),
    /// Show a session's details, state and last messages
    Show {
        /// The session
        session: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Search the text of all sessions
    Search {
        /// A question, or words: any of them may occur, and rare ones count more
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of matches
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Search the sessions of this user, or of all users with `*` [default: your own]
        #[arg(long, value_name = "NAME", default_value_t)]
        user: UserChoice,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Export a session to read (Markdown) or to back up (JSON, complete)
    Export(ExportOptions),
    /// Import a session from another agent or machine; it can be resumed
    Import(ImportOptions),
    /// Name a session, so that you can refer to it by that name
    Rename {
        /// The session
        session: String,
        /// The new name
        name: String,
    },
    /// Move a session to another place of a cluster: its folder is rebuilt there from the store
    Move {
        /// The session
        session: String,
        /// The place: host:NAME, volume:NAME or any
        place: String,
        /// Absolute path of the folder there, which must be free or empty [default: the path of the present folder]
        folder: Option<String>,
    },
    /// Delete sessions permanently
    Delete {
        /// The sessions
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Show spending
    Cost {
        /// Count only this session and the sessions it started [default: all sessions]
        session: Option<String>,
        /// Group the rows by
        #[arg(long, value_enum, default_value_t)]
        by: CostBy,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A user, or all users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserChoice(pub Option<UserName>);

impl Default for UserChoice {
    fn default() -> Self {
        Self(Some(UserName::default()))
    }
}

impl std::str::FromStr for UserChoice {
    type Err = UserNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => Ok(Self(None)),
            name => Ok(Self(Some(name.parse()?))),
        }
    }
}

impl std::fmt::Display for UserChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            None => f.write_str("*"),
            Some(user) => user.fmt(f),
        }
    }
}

#[derive(Debug, Args)]
pub struct ListOptions {
    /// List the sessions of every folder
    #[arg(long, conflicts_with = "place")]
    pub all: bool,
    /// List the sessions of this folder instead of the current one
    #[arg(long, value_name = "FOLDER")]
    pub place: Option<PathBuf>,
    /// List the sessions of this user, or of all users with `*` [default: your own, without a name]
    #[arg(long, value_name = "NAME", default_value_t)]
    pub user: UserChoice,
    /// Maximum number of sessions; 0 for all
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The session
    pub session: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: ExportFormat,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Keep keys and tokens of known formats, which are masked otherwise
    #[arg(long)]
    pub secrets: bool,
    /// Export a test into this new folder: a script for the simulated model, and a `run.sh` that runs the
    /// session again
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["format", "output"])]
    pub fixture: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImportOptions {
    /// The file, such as ~/.claude/projects/…/….jsonl
    pub file: PathBuf,
    /// Format of the file [default: detected]
    #[arg(long, value_enum)]
    pub from: Option<ImportFrom>,
    /// Import whatever can be read from a damaged file
    #[arg(long)]
    pub lenient: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ExportFormat {
    /// For reading
    #[default]
    Markdown,
    /// Every entry as stored; `windlass sessions import` reads it
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFrom {
    /// `windlass sessions export --format json`
    Windlass,
    /// ~/.claude/projects/…/….jsonl
    ClaudeCode,
    /// ~/.codex/sessions/…/rollout-….jsonl
    Codex,
    /// ~/.pi/agent/sessions/…/….jsonl
    Pi,
}

impl ImportFrom {
    pub const fn of(format: ImportFormat) -> Self {
        match format {
            ImportFormat::Windlass => Self::Windlass,
            ImportFormat::ClaudeCode => Self::ClaudeCode,
            ImportFormat::Codex => Self::Codex,
            ImportFormat::Pi => Self::Pi,
        }
    }

    pub const fn format(self) -> ImportFormat {
        match self {
            Self::Windlass => ImportFormat::Windlass,
            Self::ClaudeCode => ImportFormat::ClaudeCode,
            Self::Codex => ImportFormat::Codex,
            Self::Pi => ImportFormat::Pi,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CostBy {
    /// One row per session
    Session,
    /// One row per provider and model
    #[default]
    Model,
    /// One row per purpose of the calls
    Cause,
    /// One row per day, in UTC
    Day,
    /// One row per user
    User,
}

#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Read the whole database and report damage; changes nothing
    Check,
    /// Copy the database to a new file, even while it is in use
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Return unused space to the file system
    Vacuum,
    /// Print the path of the database, or the URL of the store without its password
    Path,
    /// Copy all sessions from one store to another, such as from SQLite to Postgres or back
    ///
    /// Each session is copied whole or not at all. A copy that was stopped can be run again.
    Copy {
        /// Store to copy from: a path, `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
        from: String,
        /// Store to copy to; made if it does not exist
        to: String,
    },
}

/// Text at the end of `windlass checkpoint --help`, `undo --help` and `redo --help`.
pub(crate) const CHECKPOINT_HELP: &str = "\
Same as /checkpoint, /undo and /redo. No model is called.

Exit codes:
  0    success
  1    nothing changed: there was nothing to do, or files were changed outside the session since
  2    no such session, several matching sessions, or wrong usage
  4    the session is in use
  10   the session store cannot be used: see `windlass db check`";

/// The session whose files are meant.
#[derive(Debug, Args)]
pub struct OfSession {
    /// The session: its name, or the start of its id [default: the latest one in this folder]
    #[arg(short, long, value_name = "SESSION")]
    pub session: Option<String>,
}

/// Extent of an undo or rewind.
#[derive(Debug, Args)]
pub struct BackOptions {
    /// Also remove the messages since then from the conversation
    #[arg(long)]
    pub conversation: bool,
    /// Also overwrite files that were changed outside the session in the meantime
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub of: OfSession,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List the file changes of each turn, latest first
    List(OfSession),
    /// Show the file changes of one turn
    Show {
        /// Number of the checkpoint
        number: u64,
        #[command(flatten)]
        of: OfSession,
    },
    /// Restore files to their state before a turn
    Rewind {
        /// Number of the checkpoint
        number: u64,
        #[command(flatten)]
        options: BackOptions,
    },
}

impl CheckpointCommand {
    /// Returns the slash command to run in the session, and the session.
    pub fn into_line(self) -> (String, Option<String>) {
        match self {
            Self::List(of) => ("/checkpoint list".to_owned(), of.session),
            Self::Show { number, of } => (format!("/checkpoint show {number}"), of.session),
            Self::Rewind { number, options } => options.into_line(&format!("/checkpoint rewind {number}")),
        }
    }
}

impl BackOptions {
    /// Returns `command` with these flags, and the session.
    pub fn into_line(self, command: &str) -> (String, Option<String>) {
        let conversation = if self.conversation { " --conversation" } else { "" };
        let force = if self.force { " --force" } else { "" };
        (format!("{command}{conversation}{force}"), self.of.session)
    }
}

/// Text at the end of `windlass replay --help`.
pub(crate) const REPLAY_SESSION_HELP: &str = "\
Runs the loop again with recorded replies in place of the model. Tools do not run; their results
come from the log. Every request must match the recorded one byte for byte, and the conversation
must come out the same. Nothing leaves this machine, and nothing is changed.

Requests are numbered from 1, in the order in which `windlass sessions show` counts model calls.

Exit codes:
  0    no difference
  1    a difference; the first one is reported
  2    no such session or request, or no recording of it";

#[derive(Debug, Args)]
pub struct ReplaySessionOptions {
    /// The session: its id, the start of its id, or its name
    pub session: String,
    /// Stop after this request
    #[arg(long, value_name = "N", conflicts_with = "fork_at")]
    pub to: Option<usize>,
    /// Start a new session from this request instead of replaying
    #[arg(long, value_name = "N")]
    pub fork_at: Option<usize>,
    /// Continue from there with a different input: this text, or one written in your editor
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", requires = "fork_at")]
    pub edit: Option<String>,
    #[command(flatten)]
    pub settings: super::SettingsOptions,
}

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Show a session's next request, span by span: bytes, tokens, age, cached or not, price
    Show {
        /// The session: its id, the start of its id, or its name [default: the latest one in this folder]
        session: Option<String>,
        /// Show every span of a long conversation
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        settings: super::SettingsOptions,
    },
    /// List every request of a session: where it changed, what the provider's cache served, and why the rest
    /// missed
    Ledger {
        /// The session [default: the latest one in this folder]
        session: Option<String>,
    },
}

impl ContextCommand {
    /// Returns the slash command to run, the session, and the settings for it.
    pub fn into_line(self) -> (String, Option<String>, super::SettingsOptions) {
        match self {
            Self::Show {
                session,
                all,
                settings,
            } => {
                let line = if all {
                    "/context show --all"
                } else {
                    "/context show"
                };
                (line.to_owned(), session, settings)
            }
            Self::Ledger { session } => ("/context ledger".to_owned(), session, Default::default()),
        }
    }
}

/// Text at the end of `windlass agents --help`.
pub(crate) const AGENTS_HELP: &str = "\
Agents are sessions that a model starts for a task with the tool `agent`. Each line shows the
number and the name of an agent, its state, its turns, tokens and cost, and its task. In a session,
/agents steers, stops, resumes and merges them.

Examples:
  windlass agents                     the last trees of agents
  windlass agents 0197a1b2-c3d4       the agents of one session
  windlass agents --running --json    agents that run now, for programs
  windlass --resume SESSION           attach to an agent that has ended";

/// Options of `windlass agents`.
#[derive(Debug, Args)]
pub struct AgentsOptions {
    /// Only the agents below this session
    pub session: Option<String>,
    /// Only agents that have not ended
    #[arg(long)]
    pub running: bool,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}
