//! The command line.

mod kept;
mod lab;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::kept::{
    BackOptions, CheckpointCommand, ContextCommand, CostBy, DbCommand, ExportFormat, ExportOptions,
    ImportFrom, ImportOptions, ListOptions, OfSession, ReplaySessionOptions, SessionsCommand,
};
use self::kept::{CHECKPOINT_HELP, DB_HELP, REPLAY_SESSION_HELP, SESSIONS_HELP};
pub(crate) use self::lab::{LabCommand, LabContextOptions, LabSummarizer};
use crate::exit::EXIT_CODES;
use windlass_config::environment::Given;

/// An agent runtime: a model, tools, and a loop that turns.
#[derive(Debug, Parser)]
#[command(
    name = "windlass",
    version,
    about = "Have work done in a folder by any model you like.",
    long_about = "Have work done in a folder by any model you like: Anthropic, OpenAI, any compatible server, \
                  or the built-in simulated model, which needs no key and no network.\n\n\
                  Without a command it talks with you: say what you want done, answer when it asks, /help lists \
                  what else can be typed.",
    after_help = HELP,
    args_conflicts_with_subcommands = true,
    subcommand_required = false,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Run this prompt and exit: the same as `windlass exec <PROMPT>`
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) print: Option<String>,

    #[command(flatten)]
    pub(crate) front: FrontOptions,

    #[command(flatten)]
    pub(crate) exec: ExecOptions,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What `windlass --help` adds.
const HELP: &str = "\
Talk with it:
  windlass                     in this folder; Ctrl+C stops a turn, Ctrl+D leaves
  windlass --continue          go on where you were
  windlass --plain             the same in plain lines
  printf 'first\\nsecond\\n' | windlass     each line is a message

Try it without a key:
  windlass demo
  windlass exec --provider sim \"list the files here\"

With a key:
  export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, or any of `windlass doctor`)
  windlass exec \"fix the failing test\"";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one prompt to its answer, without a person: for scripts, pipes and CI
    #[command(after_help = EXIT_CODES)]
    Exec {
        /// What to do; `-` or nothing reads it from standard input, and input piped beside a prompt is
        /// appended to it as context. `/help` and its like are commands: no model is asked
        prompt: Vec<String>,
        #[command(flatten)]
        options: ExecOptions,
    },
    /// Watch the simulated model find, fix and verify a bug with real tools: no key, no network
    Demo(DemoOptions),
    /// Look at past sessions: find, read, name, export, import and delete them, and see what they cost
    #[command(after_help = SESSIONS_HELP)]
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// See what the turns of a session did to files, and take files back to how they were before one
    #[command(after_help = CHECKPOINT_HELP)]
    Checkpoint {
        #[command(subcommand)]
        command: CheckpointCommand,
    },
    /// Take back what the last turn of a session did to files
    #[command(after_help = CHECKPOINT_HELP)]
    Undo(BackOptions),
    /// Do again what was undone last
    #[command(after_help = CHECKPOINT_HELP)]
    Redo {
        /// Replace files that somebody else changed meanwhile, too
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        of: OfSession,
    },
    /// See what a model is sent: every byte of the next request, and why requests missed the provider's cache
    Context {
        #[command(subcommand)]
        command: ContextCommand,
    },
    /// Drive a session again without a model, to see that it comes out the same, or go on from the middle of it
    #[command(after_help = REPLAY_SESSION_HELP)]
    Replay(ReplaySessionOptions),
    /// Find out what settings would have meant for past sessions, without a model
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Look after the database of sessions
    #[command(after_help = DB_HELP)]
    Db {
        #[command(subcommand)]
        command: DbCommand,
    },
    /// Look at the settings in effect, and where each came from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look at the tools, check your own, run one without a model
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Look at permission rules, and try them on calls
    Permissions {
        #[command(subcommand)]
        command: PermissionsCommand,
    },
    /// See what a project's own settings and tools would do, and let them take effect
    #[command(after_help = TRUST_HELP)]
    Trust(TrustOptions),
    /// Run any command behind the wall: it can change only this folder and the temporary one, and has no network
    Sandbox(SandboxOptions),
    /// Set up a provider: its key is read from standard input, tested, and kept for you alone
    #[command(after_help = CONNECT_HELP)]
    Connect(ConnectOptions),
    /// Say what is configured, what is reachable, and what this machine supports
    Doctor {
        #[command(flatten)]
        settings: SettingsOptions,
        /// Do not connect to anything
        #[arg(long)]
        offline: bool,
    },
    /// The simulated model on its own
    Sim {
        #[command(subcommand)]
        command: SimCommand,
    },
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page (roff), as in `windlass man exec | man -l -`
    Man {
        /// The command it is about; Windlass as a whole otherwise
        command: Option<String>,
    },
}

/// What the help of `windlass connect` adds.
const CONNECT_HELP: &str = "\
  pass show anthropic | windlass connect anthropic
  windlass connect sim

The key is sent to its provider once before it is kept; one that does not work is not kept. Keys
in the environment and from `key_command` go first.";

#[derive(Debug, Args)]
pub(crate) struct ConnectOptions {
    /// The provider; without one, all are listed
    #[arg(value_name = "PROVIDER")]
    pub(crate) name: Option<String>,
    /// Read a key although none is needed, or there is one
    #[arg(long, requires = "name")]
    pub(crate) key: bool,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
}

/// What the help of `windlass trust` adds.
const TRUST_HELP: &str = "\
What is in a project's `.windlass` folder was written by whoever wrote the project. It does
nothing until you trust the folder, and nothing again once a file changed: what counts is the
content you were shown.

Exit codes:
  0    trusted, or trusted already
  1    cannot be trusted, such as a folder with links in it
  2    there is no project here
  3    a file is wrong: the project's settings, or the list of trusted folders
  5    not trusted: you said no, or nobody was there to ask and --yes was not given";

#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// The project, or a folder in it; the current one otherwise
    pub(crate) folder: Option<PathBuf>,
    /// Do not ask: for scripts, and for what you have read already
    #[arg(short, long, conflicts_with_all = ["list", "revoke"])]
    pub(crate) yes: bool,
    /// List the trusted folders, and whether they changed since
    #[arg(long, conflicts_with_all = ["folder", "revoke"])]
    pub(crate) list: bool,
    /// Trust the folder no longer
    #[arg(long)]
    pub(crate) revoke: bool,
}

#[derive(Debug, Clone, Args, Default)]
pub(crate) struct ExecOptions {
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,

    /// Work in this folder instead of the current one
    #[arg(short = 'C', long = "cd", value_name = "FOLDER")]
    pub(crate) cd: Option<PathBuf>,

    /// What goes to standard output: the answer, one JSON object, or one JSON event per line
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// A JSON Schema file the answer must match; the answer is then JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,

    /// The most iterations (model calls) of the turn
    #[arg(long, visible_alias = "max-turns", value_name = "N")]
    pub(crate) max_iterations: Option<u32>,

    /// The most US dollars the turn may cost
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<f64>,

    /// The work counts as done only when the model calls the `done` tool
    #[arg(long)]
    pub(crate) require_done: bool,

    #[command(flatten)]
    pub(crate) session: SessionOptions,

    /// How far the agent may go: plan, default, accept-edits, unattended or full
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,

    /// Say nothing on standard error but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How a conversation looks.
#[derive(Debug, Clone, Args, Default)]
pub(crate) struct FrontOptions {
    /// Talk in plain lines: nothing moves and nothing is drawn over. For screen readers, and wherever less is more
    #[arg(long, conflicts_with_all = ["full_screen", "print"])]
    pub(crate) plain: bool,

    /// Use the whole terminal instead of its last lines
    #[arg(long, conflicts_with = "print")]
    pub(crate) full_screen: bool,
}

/// SessionChoice session a run belongs to.
#[derive(Debug, Clone, Args, Default)]
pub(crate) struct SessionOptions {
    /// Go on with the session that was last worked in from this folder
    #[arg(long = "continue", conflicts_with_all = ["resume", "ephemeral"])]
    pub(crate) continue_last: bool,

    /// Go on with this session: its name, or the beginning of its id
    #[arg(short, long, value_name = "SESSION", conflicts_with = "ephemeral")]
    pub(crate) resume: Option<String>,

    /// Leave that session as it is, and go on in a copy of it
    #[arg(long)]
    pub(crate) fork: bool,

    /// Keep nothing of this session
    #[arg(long)]
    pub(crate) ephemeral: bool,
}

#[derive(Debug, Clone, Args, Default)]
pub(crate) struct SettingsOptions {
    /// The provider: a preset such as `anthropic`, `openai`, `ollama`, `sim`, or one of your settings
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The model, in the provider's words
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Read this settings file instead of the usual one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Set any setting, as in `-c agent.max_iterations=50`; may be repeated
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

impl SettingsOptions {
    /// The same as plain data, for the code that loads settings.
    pub(crate) fn given(&self) -> Given {
        self.given_with(Vec::new())
    }

    /// As [`Self::given`], with settings that have a flag of their own.
    pub(crate) fn given_with(&self, flags: Vec<(&'static str, &'static str, String)>) -> Given {
        Given {
            provider: self.provider.clone(),
            model: self.model.clone(),
            config: self.config.clone(),
            set: self.set.clone(),
            flags,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// One object at the end: answer, usage, cost
    Json,
    /// One event per line as it happens
    StreamJson,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Make the project here and keep it; a temporary folder otherwise
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    /// The wire format spoken between Windlass and the simulated model
    #[arg(long, value_enum, default_value_t)]
    pub(crate) wire: DemoWire,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxOptions {
    /// Let it use the network
    #[arg(long)]
    pub(crate) network: bool,
    /// Let it change this folder too; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub(crate) write: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum DemoWire {
    /// Anthropic Messages
    #[default]
    Anthropic,
    /// OpenAI Chat Completions
    Chat,
    /// OpenAI Responses
    Responses,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting in effect
    Show {
        /// Say where each value came from
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Print the JSON Schema of the settings file, for editors
    Schema,
    /// Say what a setting does, its default and its effect
    Explain {
        /// The key, such as `agent.max_iterations`
        key: String,
    },
    /// Print the reference of all settings (Markdown)
    Reference,
    /// Print where settings are read from
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List what a model can call, and where it comes from: built in, yours or the project's
    List {
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Check declared tools: a file, or your own `tools.yaml` and the project's, trusted or not
    Check {
        /// The file
        file: Option<PathBuf>,
    },
    /// Run one tool, as in `windlass tools run grep '{"pattern": "TODO"}'`
    Run {
        /// The tool
        name: String,
        /// Its arguments, as JSON
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        settings: SettingsOptions,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Print the mode and the rules in effect and where they come from, and what you have allowed for good
    List {
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Forget everything that you have allowed for good
    Forget,
    /// Say what would become of calls under the rules in effect, without running them
    #[command(after_help = REPLAY_HELP)]
    Test(ReplayOptions),
}

/// What the help of `windlass permissions test` adds.
const REPLAY_HELP: &str = "\
A file has one call per line, as in {\"tool\": \"bash\", \"arguments\": {\"command\": \"ls\"}}; each is printed with what
would become of it. Of past sessions, those calls are printed that would now be treated differently, then a count.

Try a rule before you write it down:
  windlass permissions test --all-sessions -c 'security.deny=[\"bash(git push*)\"]'

What you have allowed for good, and in a session, does not count here: such calls are shown as asked.";

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// A file with calls
    pub(crate) calls: Option<PathBuf>,
    /// The calls of this session; may be repeated
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Vec<String>,
    /// The calls of all sessions
    #[arg(long, conflicts_with = "session")]
    pub(crate) all_sessions: bool,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Serve the simulated model on loopback: Anthropic Messages, OpenAI Chat Completions and Responses
    Serve {
        /// A script of replies (YAML); rules that answer simple requests otherwise
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// The port; 0 for any free one
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Require this key, as the real services do
        #[arg(long, value_name = "KEY")]
        api_key: Option<String>,
    },
}
