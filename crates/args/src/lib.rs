//! The command line of `windlass`: its commands and options, and their help.
//!
//! The types describe what may be written and check its form; the binary decides what it means. The doc comments of
//! commands and options are the text of `--help`.

// A field that holds a group of options, and a subcommand, have no help of their own.
#![allow(missing_docs)]

mod acp;
mod channel;
pub mod code;
mod compat;
mod cron;
mod export;
mod hooks;
mod kept;
mod lab;
mod lone;
mod mcp;
mod mcp_client;
mod memory;
mod serve;
mod skills;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass_core::permission::Mode;

use self::acp::ACP_HELP;
pub use self::acp::AcpOptions;
pub use self::channel::{ChannelCommand, WebhookOptions};
use self::code::{CODE_HELP, CodeCommand};
pub use self::compat::{ColorChoice, GuideOptions, InputFormat, OutputFormat, OutputOptions};
use self::cron::CRON_HELP;
pub use self::cron::{CronAddOptions, CronCommand};
pub use self::export::{ExportCommand, ExportOtelOptions, OtelFormat};
pub use self::hooks::{HookTest, HooksCommand};
use self::kept::{AGENTS_HELP, CHECKPOINT_HELP, DB_HELP, REPLAY_SESSION_HELP, SESSIONS_HELP};
pub use self::kept::{
    AgentsOptions, BackOptions, CheckpointCommand, ContextCommand, CostBy, DbCommand, ExportFormat,
    ExportOptions, ImportFrom, ImportOptions, ListOptions, OfSession, ReplaySessionOptions, SessionsCommand,
    UserChoice,
};
pub use self::lab::{LabCommand, LabContextOptions, LabMemoryOptions, LabSummarizer};
pub use self::mcp::{McpCommand, McpServeOptions};
use self::mcp_client::MCP_HELP;
pub use self::mcp_client::{McpAddOptions, McpClientCommand, McpImportFrom};
pub use self::memory::{MEMORY_HELP, MemoryCommand};
use self::serve::{ATTACH_HELP, AUDIT_HELP, CLUSTER_HELP, SERVE_HELP, TOKEN_HELP};
pub use self::serve::{
    AttachOptions, AuditCommand, AuditOptions, ClusterCommand, ClusterOptions, ServeOptions, TokenCommand,
    TokenScope,
};
pub use self::skills::{PluginsCommand, SkillsCommand};
use windlass_config::environment::Given;

/// Table of exit codes for help texts and documents.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    failed
  2    wrong usage
  3    invalid settings file or variable
  4    the session is busy
  5    a tool call was denied
  6    the iteration limit was reached
  7    the cost limit was reached
  8    the provider failed, rejected the key or could not be reached
  9    the answer does not match --output-schema
  10   the session store cannot be used
  11   --goal: the turn limit was reached
  12   --goal: the budget was reached (money, tokens, time, or the limit per day)
  13   --goal: blocked (the same answer or failure again and again, or a question nobody answered)
  14   --goal: paused for another reason, such as a supervisor that failed
  130  interrupted";

/// An agent runtime: a model, tools, and a loop that turns.
#[derive(Debug, Default, Parser)]
#[command(
    name = "windlass",
    version,
    about = "An agent for your terminal. It works in a folder, with any model.",
    long_about = "An agent for your terminal. It works in a folder (code, operations, research) with any model: \
                  Anthropic, OpenAI, any compatible server, or the built-in simulated model, which needs no key \
                  and no network.\n\n\
                  Without a command, it starts an interactive session. Describe the task, and answer when it asks \
                  for approval; /help lists the commands.",
    after_help = HELP,
    args_conflicts_with_subcommands = true,
    subcommand_required = false,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Run this prompt and exit, like `windlass exec <PROMPT>`
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    pub print: Option<String>,

    /// The first message of the session
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// Database of the sessions: `postgres://…`, `sqlite:PATH`, or a path [default: the setting `store`]
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,

    #[command(flatten)]
    pub front: FrontOptions,

    #[command(flatten)]
    pub exec: ExecOptions,

    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Reads the command line of this process. A request for help is an error, too.
    pub fn of_process() -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        lone::parse(&arguments).map_or_else(|| Self::try_parse_from(arguments), Ok)
    }

    /// Returns the options about settings, where a command that uses the store has them.
    pub fn settings(&self) -> Option<&SettingsOptions> {
        match &self.command {
            None => Some(&self.exec.settings),
            Some(Command::Exec(exec)) => Some(&exec.options.settings),
            Some(Command::Acp(options)) => Some(&options.settings),
            Some(Command::Serve(options)) => Some(&options.settings),
            Some(_) => None,
        }
    }
}

/// Examples at the end of `windlass --help`.
const HELP: &str = "\
Start an interactive session:
  windlass                     in this folder; Ctrl+C stops a turn, Ctrl+D quits
  windlass \"fix the test\"      with a first message
  windlass --continue          resume the last session; --resume lets you choose one
  windlass --plain             plain line-by-line output
  printf 'first\\nsecond\\n' | windlass     each line is a message

Try it without a key:
  windlass demo
  windlass exec --provider sim \"list the files here\"

With a key:
  export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, or any other that `windlass doctor` lists)
  windlass exec \"fix the failing test\"";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one prompt non-interactively: for scripts, pipes and CI
    #[command(after_help = EXIT_CODES)]
    Exec(Box<ExecCommand>),
    /// Serve an editor over standard input and output: the Agent Client Protocol, for Zed, JetBrains, Neovim and Emacs
    #[command(after_help = ACP_HELP)]
    Acp(AcpOptions),
    /// Watch the simulated model find, fix and verify a bug with real tools: no key, no network
    Demo(DemoOptions),
    /// Manage past sessions: find, read, rename, export, import and delete them, and see their cost
    #[command(after_help = SESSIONS_HELP)]
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// See, search, change and forget what is remembered across sessions; install the local model
    #[command(after_help = MEMORY_HELP)]
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// List agents that sessions started: state, turns, tokens, cost
    #[command(after_help = AGENTS_HELP)]
    Agents(AgentsOptions),
    /// List the file changes of each turn in a session, and restore files to an earlier state
    #[command(after_help = CHECKPOINT_HELP)]
    Checkpoint {
        #[command(subcommand)]
        command: CheckpointCommand,
    },
    /// Undo the file changes of a session's last turn
    #[command(after_help = CHECKPOINT_HELP)]
    Undo(BackOptions),
    /// Redo the last undo
    #[command(after_help = CHECKPOINT_HELP)]
    Redo {
        /// Also overwrite files that were changed outside the session in the meantime
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        of: OfSession,
    },
    /// Run the commands behind a session's claims again: verified, false or stale
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The session: its name, or the start of its id [default: the latest one in this folder]
        session: Option<String>,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Inspect the context: every byte of the next request, and why requests missed the provider's cache
    Context {
        #[command(subcommand)]
        command: ContextCommand,
    },
    /// Replay a session offline and verify that it gives the same result, or branch off from any request
    #[command(after_help = REPLAY_SESSION_HELP)]
    Replay(ReplaySessionOptions),
    /// Export sessions for other systems
    Export {
        #[command(subcommand)]
        command: ExportCommand,
    },
    /// Search the files and definitions of this folder, without a model
    #[command(after_help = CODE_HELP)]
    Code {
        #[command(subcommand)]
        command: CodeCommand,
    },
    /// Compare context strategies on past sessions, without calling a model
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Run prompts and commands on a schedule
    #[command(after_help = CRON_HELP)]
    Cron {
        #[command(subcommand)]
        command: CronCommand,
    },
    /// Connect chats and other systems with sessions
    Channel {
        #[command(subcommand)]
        command: ChannelCommand,
    },
    /// Manage MCP servers, whose tools sessions use, or serve Windlass itself as one
    #[command(after_help = MCP_HELP)]
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Serve sessions to browsers, phones and programs over HTTP
    #[command(after_help = SERVE_HELP)]
    Serve(ServeOptions),
    /// Show the servers that share a Postgres store
    #[command(after_help = CLUSTER_HELP)]
    Cluster {
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Use a session of a server in this terminal
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachOptions),
    /// Manage access to the server: tokens, browsers and login links
    #[command(after_help = TOKEN_HELP)]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Show and check the audit log: approvals, effects, sign-ins
    #[command(after_help = AUDIT_HELP)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Maintain the session database
    #[command(after_help = DB_HELP)]
    Db {
        #[command(subcommand)]
        command: DbCommand,
    },
    /// Show the settings in effect and where each one comes from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// List the tools, check your own, and run one without a model
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// List, check and create skills: instructions for particular tasks
    #[command(after_help = skills::SKILLS_HELP)]
    Skills {
        #[command(subcommand)]
        command: SkillsCommand,
    },
    /// Add plugins, which bring skills, commands, agent types, hooks and MCP servers
    #[command(after_help = skills::PLUGINS_HELP)]
    Plugins {
        #[command(subcommand)]
        command: PluginsCommand,
    },
    /// List the permission rules, and test them on calls
    Permissions {
        #[command(subcommand)]
        command: PermissionsCommand,
    },
    /// List your hooks and their last runs, and try them out
    Hooks {
        #[command(subcommand)]
        command: HooksCommand,
    },
    /// Review a project's own settings and tools, and trust them
    #[command(after_help = TRUST_HELP)]
    Trust(TrustOptions),
    /// Run any command in the sandbox: it can write only to this folder and the temporary folder, and has no
    /// network
    Sandbox(SandboxOptions),
    /// Set up a provider: reads the key from standard input, tests it, and stores it readable only by you
    #[command(after_help = CONNECT_HELP)]
    Connect(ConnectOptions),
    /// Show the configuration, whether the provider is reachable, and the sandbox features of this machine
    Doctor {
        #[command(flatten)]
        settings: SettingsOptions,
        /// Do not connect to anything
        #[arg(long)]
        offline: bool,
        /// Show what is denied and protected in this folder, what this machine enforces, and what is not covered
        #[arg(long)]
        security: bool,
    },
    /// Run the simulated model as a server
    Sim {
        #[command(subcommand)]
        command: SimCommand,
    },
    /// Print a completion script for your shell
    Completions {
        /// Name of the shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page (roff), as in `windlass man exec | man -l -`
    Man {
        /// The command to describe [default: all of Windlass]
        command: Option<String>,
    },
}

/// Text at the end of `windlass verify --help`.
const VERIFY_HELP: &str = "\
An agent that finishes with `done` may claim things, each with a command that shows it. This runs
those commands again, in the sandbox and in the session's folder, and compares their exit codes.
Claims in the reports of agents below the session are included; those of an agent with its own
copy of the files are verified in that copy until it is merged.

Exit codes:
  0    every claim is verified
  1    there is nothing to verify
  2    no such session
  15   a claim is false
  16   a claim is stale: files changed since, and it no longer holds; or its command could not run";

/// Text at the end of `windlass connect --help`.
const CONNECT_HELP: &str = "\
Examples:
  pass show anthropic | windlass connect anthropic
  windlass connect sim

The key is tested with one request to its provider, and stored only if it works. Keys in the
environment and from `key_command` take precedence.";

#[derive(Debug, Args)]
pub struct ConnectOptions {
    /// Name of the provider; without one, all providers are listed
    #[arg(value_name = "PROVIDER")]
    pub name: Option<String>,
    /// Read a key even if the provider needs none or already has one
    #[arg(long, requires = "name")]
    pub key: bool,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

/// Text at the end of `windlass trust --help`.
const TRUST_HELP: &str = "\
The files in a project's `.windlass` folder were written by the project's authors. They have no
effect until you trust the folder, and lose their effect when a file changes: trust covers
exactly the content you were shown.

Exit codes:
  0    trusted, now or before
  1    cannot be trusted, such as a folder that contains symbolic links
  2    no project found
  3    invalid file: the project's settings, or the list of trusted folders
  5    not trusted: you declined, or there was no terminal to ask on and no --yes";

#[derive(Debug, Args)]
pub struct TrustOptions {
    /// The project, or a folder in it [default: the current folder]
    pub folder: Option<PathBuf>,
    /// Trust without asking: for scripts, and for projects you have already reviewed
    #[arg(short, long, conflicts_with_all = ["list", "revoke"])]
    pub yes: bool,
    /// List the trusted folders, and show which ones have changed since
    #[arg(long, conflicts_with_all = ["folder", "revoke"])]
    pub list: bool,
    /// Stop trusting the folder
    #[arg(long)]
    pub revoke: bool,
}

#[derive(Debug, Args)]
pub struct ExecCommand {
    /// The prompt; with `-` or nothing it is read from standard input. Input piped alongside a prompt is
    /// appended as context. Slash commands such as `/help` run without calling a model
    pub prompt: Vec<String>,
    #[command(flatten)]
    pub options: ExecOptions,
}

#[derive(Debug, Clone, Args, Default)]
pub struct ExecOptions {
    #[command(flatten)]
    pub settings: SettingsOptions,

    /// Work in this folder instead of the current one
    #[arg(short = 'C', long = "cd", value_name = "FOLDER")]
    pub cd: Option<PathBuf>,

    #[command(flatten)]
    pub output: OutputOptions,

    #[command(flatten)]
    pub guide: GuideOptions,

    /// Maximum number of model calls
    #[arg(long, visible_alias = "max-turns", value_name = "N")]
    pub max_iterations: Option<u32>,

    /// Spending limit in US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub max_cost: Option<f64>,

    #[command(flatten)]
    pub goal: GoalOptions,

    #[command(flatten)]
    pub session: SessionOptions,

    /// Work in your home folder, or in a folder above it, without a question
    #[arg(long)]
    pub allow_home: bool,

    #[command(flatten)]
    pub mode: ModeOptions,

    /// Write every model request and reply to numbered files in this folder, without keys
    #[arg(long, value_name = "FOLDER")]
    pub debug_dump: Option<PathBuf>,
}

/// Reads an amount of money.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim().trim_start_matches('$').parse();
    amount.map_err(|_| "expected an amount in US dollars, as in 0.50".to_owned())
}

/// The permission mode of a run.
#[derive(Debug, Clone, Args, Default)]
pub struct ModeOptions {
    /// Permission mode: plan, ask, edits, auto, full or unattended
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,

    /// Permission mode by its name in Claude Code or Codex: default asks before every write
    #[arg(long, value_name = "MODE", conflicts_with = "mode", value_parser = Mode::from_permission_mode)]
    pub permission_mode: Option<Mode>,
}

impl ModeOptions {
    /// Returns the settings that the flags stand for.
    fn flags(&self, allow_home: bool) -> Vec<(&'static str, &'static str, String)> {
        let mut flags = Vec::new();
        if let Some(mode) = &self.mode {
            flags.push(("security.mode", "--mode", mode.clone()));
        }
        if let Some(mode) = self.permission_mode {
            flags.push(("security.mode", "--permission-mode", mode.name().to_owned()));
        }
        if allow_home {
            flags.push(("security.allow_home", "--allow-home", "true".to_owned()));
        }
        flags
    }
}

/// The end of a run. GOAL-3: a goal to work on over many turns.
#[derive(Debug, Clone, Args, Default)]
pub struct GoalOptions {
    /// Finish only when the model calls the `done` tool
    #[arg(long)]
    pub require_done: bool,

    /// Work towards this goal over many turns, without input; without a text, continue the goal of the resumed
    /// session
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", conflicts_with = "require_done")]
    pub goal: Option<String>,

    /// The goal is reached when this command succeeds; may be repeated
    #[arg(long, value_name = "COMMAND", requires = "goal")]
    pub check: Vec<String>,

    /// The goal is reached when this file exists and has content; may be repeated
    #[arg(long, value_name = "PATH", requires = "goal")]
    pub file: Vec<String>,

    /// The goal is reached when you confirm it
    #[arg(long, requires = "goal")]
    pub ask: bool,

    /// Maximum number of turns towards the goal
    #[arg(long, value_name = "N", requires = "goal", value_parser = clap::value_parser!(u32).range(1..))]
    pub turns: Option<u32>,
}

/// Appearance of an interactive session.
#[derive(Debug, Clone, Args, Default)]
pub struct FrontOptions {
    /// Plain line-by-line output, for screen readers and simple terminals
    #[arg(long, conflicts_with_all = ["full_screen", "print"])]
    pub plain: bool,

    /// Use the whole terminal instead of its last lines
    #[arg(long, conflicts_with = "print")]
    pub full_screen: bool,
}

/// The session a run belongs to.
#[derive(Debug, Clone, Args, Default)]
pub struct SessionOptions {
    /// Continue the most recent session in this folder
    #[arg(long = "continue", visible_alias = "last", conflicts_with = "ephemeral")]
    pub continue_last: bool,

    /// Resume this session: its name, or the start of its id; without either, choose from a list
    #[arg(short, long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with = "ephemeral")]
    pub resume: Option<String>,

    /// Continue in a copy, and leave the original session unchanged
    #[arg(long, visible_alias = "fork-session")]
    pub fork: bool,

    /// Do not save this session
    #[arg(long, alias = "no-session", alias = "no-session-persistence")]
    pub ephemeral: bool,

    /// Id of the new session: a UUID
    #[arg(long, value_name = "UUID")]
    pub session_id: Option<String>,

    /// Name of the new session, for `--resume`
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Args, Default)]
pub struct SettingsOptions {
    /// The provider: a preset such as `anthropic`, `openai`, `ollama`, `sim`, or one defined in your settings
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// The model's id, as the provider spells it
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// Read this settings file instead of the default one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Add the settings in `profiles/NAME.toml` beside your settings file
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// Override a setting, as in `-c agent.max_iterations=50`; may be repeated
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Write a log file: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

impl SettingsOptions {
    /// Converts the options to plain data, for the code that loads settings.
    pub fn given(&self) -> Given {
        self.given_with(Vec::new())
    }

    /// Like [`Self::given`], plus settings that have a dedicated flag.
    pub fn given_with(&self, mut flags: Vec<(&'static str, &'static str, String)>) -> Given {
        let level = self.log_level.clone();
        flags.extend(level.map(|level| ("log.level", "--log-level", level)));
        Given {
            provider: self.provider.clone(),
            model: self.model.clone(),
            config: self.config.clone(),
            profile: self.profile.clone(),
            set: self.set.clone(),
            flags,
        }
    }
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Create the project in this folder and keep it [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Wire format between Windlass and the simulated model
    #[arg(long, value_enum, default_value_t)]
    pub wire: DemoWire,
}

#[derive(Debug, Args)]
pub struct SandboxOptions {
    /// Allow network access
    #[arg(long)]
    pub network: bool,
    /// Also allow writing to this folder; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub write: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsOptions,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum DemoWire {
    /// Anthropic Messages
    #[default]
    Anthropic,
    /// OpenAI Chat Completions
    Chat,
    /// OpenAI Responses
    Responses,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting in effect
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Print the JSON Schema of the settings file, for editors
    Schema,
    /// Explain a setting: its meaning, default and effect
    Explain {
        /// The key, such as `agent.max_iterations`
        key: String,
    },
    /// Print the reference of all settings (Markdown)
    Reference,
    /// Print the paths of the settings files
    Path,
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools a model can call and where each comes from: built in, yours or the project's
    List {
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Check declared tools: one file, or your `tools.yaml` and the project's, trusted or not
    Check {
        /// The file to check
        file: Option<PathBuf>,
    },
    /// Run one tool, as in `windlass tools run grep '{"pattern": "TODO"}'`
    Run {
        /// Name of the tool
        name: String,
        /// Arguments of the tool, as JSON
        #[arg(default_value = "{}")]
        arguments: String,
        /// Approve the call, even if it changes files that other programs run automatically
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        settings: SettingsOptions,
    },
}

#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Print the mode, the rules in effect with their sources, and your permanent approvals
    List {
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Forget all permanent approvals
    Forget,
    /// Test calls against the rules in effect, without running them
    #[command(after_help = REPLAY_HELP)]
    Test(ReplayOptions),
}

/// Text at the end of `windlass permissions test --help`.
const REPLAY_HELP: &str = "\
A file has one call per line, as in {\"tool\": \"bash\", \"arguments\": {\"command\": \"ls\"}}; each call is
printed with its decision. For past sessions, only calls whose decision would be different now are
printed, followed by a count.

Try a rule before you add it to your settings:
  windlass permissions test --all-sessions -c 'security.deny=[\"bash(git push*)\"]'

Approvals, permanent or for a session, are ignored here: calls they cover are shown as asking.";

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// A file of calls
    pub calls: Option<PathBuf>,
    /// Test the calls of this session; may be repeated
    #[arg(long, value_name = "SESSION")]
    pub session: Vec<String>,
    /// Test the calls of all sessions
    #[arg(long, conflicts_with = "session")]
    pub all_sessions: bool,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Serve the simulated model on loopback: Anthropic Messages, OpenAI Chat Completions and Responses, Gemini
    Serve {
        /// A script of replies (YAML) [default: rules that answer simple requests]
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// The port; 0 picks a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Require this key, as the real services do
        #[arg(long, value_name = "KEY")]
        api_key: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// UI-7: the text below the options of every command starts at the margin: a leading blank would be dropped, and
    /// the first of several examples would stand apart from the others.
    #[test]
    fn texts_below_the_options_start_at_the_margin() {
        let mut open = vec![Cli::command()];
        while let Some(command) = open.pop() {
            let text = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(!text.starts_with(' '), "{}: {text}", command.get_name());
            open.extend(command.get_subcommands().cloned());
        }
    }
}
