//! The command line of what is kept: `windlass sessions`, `windlass db`, `windlass checkpoint`, `undo` and `redo`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What the help of `windlass sessions` adds.
pub(crate) const SESSIONS_HELP: &str = "\
A SESSION is its id, the beginning of its id as far as it is unique, or its name.

Try:
  windlass sessions list                      what was done in this folder
  windlass sessions search rate limit         where something was said
  windlass exec --resume 0197a1b2-c3d4 \"…\"    go on with a session
  windlass sessions export 0197a1b2-c3d4      read all of it

Exit codes:
  0    done
  1    failed, or a file is damaged and nothing was imported
  2    no such session, several that fit, or wrong usage
  4    somebody works in the session
  5    not deleted: you said no, or nobody was there to ask and --yes was not given
  10   the store of sessions cannot be used: see `windlass db check`";

/// What the help of `windlass db` adds.
pub(crate) const DB_HELP: &str = "\
Exit codes:
  0    done, nothing is wrong
  1    `check` found something wrong, or a file is there already
  10   the database cannot be used: it is damaged, newer, or another program's

Nothing here overwrites a file.";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the one that changed last first
    List(ListOptions),
    /// Say what is known about a session, and where it stood
    Show {
        /// The session
        session: String,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Find where words were said, in all sessions
    Search {
        /// The words, all of which must be there; the last may be the beginning of one
        #[arg(required = true)]
        words: Vec<String>,
        /// At most so many places
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
        limit: usize,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Print a session to read it (Markdown) or to keep it (JSON, with everything)
    Export(ExportOptions),
    /// Take in a session of another agent or machine; it can be gone on with
    Import(ImportOptions),
    /// Give a session a name, by which it can be called from then on
    Rename {
        /// The session
        session: String,
        /// The name
        name: String,
    },
    /// Remove sessions for good
    Delete {
        /// The sessions
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Say what was spent
    Cost {
        /// Of this session and those it started; of all otherwise
        session: Option<String>,
        /// What the rows are
        #[arg(long, value_enum, default_value_t)]
        by: CostBy,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Those of every folder
    #[arg(long, conflicts_with = "place")]
    pub(crate) all: bool,
    /// Those of this folder instead of the current one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) place: Option<PathBuf>,
    /// At most so many; 0 for all
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// As a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The session
    pub(crate) session: String,
    /// What it is for
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExportFormat,
    /// Write it to this file, which must not exist; standard output otherwise
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Make a test of it in this new folder: a script for the simulated model, and `run.sh` that runs the session again
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["format", "output"])]
    pub(crate) fixture: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// The file, such as ~/.claude/projects/…/….jsonl
    pub(crate) file: PathBuf,
    /// Who wrote it; found out by itself otherwise
    #[arg(long, value_enum)]
    pub(crate) from: Option<ImportFrom>,
    /// Take what can be read of a damaged file
    #[arg(long)]
    pub(crate) lenient: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For people
    #[default]
    Markdown,
    /// Every entry as it is stored; `windlass sessions import` reads it
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// `windlass sessions export --format json`
    Windlass,
    /// ~/.claude/projects/…/….jsonl
    ClaudeCode,
    /// ~/.codex/sessions/…/rollout-….jsonl
    Codex,
    /// ~/.pi/agent/sessions/…/….jsonl
    Pi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CostBy {
    /// A row per session
    Session,
    /// A row per provider and model
    #[default]
    Model,
    /// A row for what the calls were for
    Cause,
    /// A row per day, in UTC
    Day,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Read everything and say what is wrong; changes nothing
    Check,
    /// Copy the database, also while it is in use, to a new file
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Give unused space back to the file system
    Vacuum,
    /// Print where the database is
    Path,
}

/// What the help of `windlass checkpoint`, `undo` and `redo` adds.
pub(crate) const CHECKPOINT_HELP: &str = "\
The same as /checkpoint, /undo and /redo. No model is asked.

Exit codes:
  0    done
  1    nothing was done: there is nothing to do, or files were changed since by somebody else
  2    no such session, several that fit, or wrong usage
  4    somebody works in the session
  10   the store of sessions cannot be used: see `windlass db check`";

/// SessionChoice session's files.
#[derive(Debug, Args)]
pub(crate) struct OfSession {
    /// The session: its name, or the beginning of its id; the last one of this folder otherwise
    #[arg(short, long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// How far back.
#[derive(Debug, Args)]
pub(crate) struct BackOptions {
    /// Take back what was said since, too
    #[arg(long)]
    pub(crate) conversation: bool,
    /// Take back files that somebody else changed meanwhile, too
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) of: OfSession,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List what turns did to files, the last one first
    List(OfSession),
    /// Show what one turn did to files
    Show {
        /// The number of the checkpoint
        number: u64,
        #[command(flatten)]
        of: OfSession,
    },
    /// Take files back to how they were before a turn
    Rewind {
        /// The number of the checkpoint
        number: u64,
        #[command(flatten)]
        options: BackOptions,
    },
}

impl CheckpointCommand {
    /// The same as a line for the session, and which session.
    pub(crate) fn into_line(self) -> (String, Option<String>) {
        match self {
            Self::List(of) => ("/checkpoint list".to_owned(), of.session),
            Self::Show { number, of } => (format!("/checkpoint show {number}"), of.session),
            Self::Rewind { number, options } => options.into_line(&format!("/checkpoint rewind {number}")),
        }
    }
}

impl BackOptions {
    /// A command line with these flags, and which session.
    pub(crate) fn into_line(self, command: &str) -> (String, Option<String>) {
        let conversation = if self.conversation { " --conversation" } else { "" };
        let force = if self.force { " --force" } else { "" };
        (format!("{command}{conversation}{force}"), self.of.session)
    }
}

/// What the help of `windlass replay` adds.
pub(crate) const REPLAY_SESSION_HELP: &str = "\
The loop runs again as it did: a recording answers in place of the model, and tools are not run, their results come from
the log. Every request must be what was sent, byte for byte, and the conversation must come out the same. Nothing leaves
this machine, and nothing is changed.

Requests are numbered from 1, as `windlass sessions show` counts model calls.

Exit codes:
  0    everything is the same
  1    something is different: the first difference is named
  2    no such session or request, or nothing was recorded of it";

#[derive(Debug, Args)]
pub(crate) struct ReplaySessionOptions {
    /// The session: its id, the beginning of it, or its name
    pub(crate) session: String,
    /// Stop after this request
    #[arg(long, value_name = "N", conflicts_with = "fork_at")]
    pub(crate) to: Option<usize>,
    /// Do not replay, but begin a new session from where this request was sent
    #[arg(long, value_name = "N")]
    pub(crate) fork_at: Option<usize>,
    /// Go on there with another input: this text, or what you write in your editor
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", requires = "fork_at")]
    pub(crate) edit: Option<String>,
    #[command(flatten)]
    pub(crate) settings: super::SettingsOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// What the next request of a session would be, span by span: bytes, tokens, age, cached or not, price
    Show {
        /// The session: its id, the beginning of it, or its name; the last one of this folder otherwise
        session: Option<String>,
        /// Every span of a long conversation
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        settings: super::SettingsOptions,
    },
    /// Every request of a session: where it changed, what came from the provider's cache, and why the rest did not
    Ledger {
        /// The session; the last one of this folder otherwise
        session: Option<String>,
    },
}

impl ContextCommand {
    /// The command as it is typed in a session, whose it is, and the settings for it.
    pub(crate) fn into_line(self) -> (String, Option<String>, super::SettingsOptions) {
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
