//! The types of the settings: one small struct per consumer.
//!
//! `Default` gives empty structs; the defaults that a user sees are in the table of keys.

mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use windlass_core::dispatch::Execution;
use windlass_core::event::LaterMessages;
use windlass_core::log::AgentLimits;
use windlass_core::permission::Mode;
use windlass_core::turn::OnMaxIterations;
use windlass_providers::{Effort, Wire};
use windlass_sandbox::ResourceLimits;

use windlass_core::compact::Strategy;

pub use self::server::{AuditScope, AuditSettings, ClusterSettings, DailyLimits, ServerSettings, UserLimits};

/// Limits and behavior of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentSettings {
    /// LOOP-9: maximum number of model requests per turn.
    pub max_iterations: u32,
    /// LOOP-9: end of a turn that has used them up.
    pub on_max_iterations: OnMaxIterations,
    /// LOOP-13: maximum number of reminders of unfinished work per turn.
    pub max_incomplete_prompts: u32,
    /// Spending limit of a session, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Replacement for the built-in system prompt.
    pub system_prompt: Option<String>,
    /// Reasoning effort requested from the model.
    pub reasoning: Option<Effort>,
    /// Maximum number of tokens in one reply; the model's own limit if `None`.
    pub max_output_tokens: Option<u64>,
    /// Settings of sessions.
    pub session: SessionSettings,
    /// Appearance of the terminal UI.
    pub screen: ScreenSettings,
    /// Settings of goals.
    pub goal: GoalSettings,
    /// Settings of sub-agents.
    pub children: ChildSettings,
    /// Settings of traces, metrics and the log file.
    pub telemetry: TelemetrySettings,
}

/// OBS-1: destination of traces and metrics, and the log file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelemetrySettings {
    /// Address of a collector.
    pub endpoint: Option<String>,
    /// True if spans contain messages, arguments and results.
    pub content: bool,
    /// The log file.
    pub log: LogSettings,
}

/// OBS-1: the log file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// Least severe level, or `off`.
    pub level: String,
    /// True for JSON lines.
    pub is_json: bool,
    /// Path; in the state folder if `None`.
    pub file: Option<PathBuf>,
    /// Maximum size in megabytes.
    pub max_mb: u64,
}

/// SUB-3, SUB-5: limits of sub-agents, and the tools that they do not get.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChildSettings {
    /// Limits of a tree.
    pub limits: AgentLimits,
    /// Deadline of a run that names none.
    pub deadline: Duration,
    /// Time without an event after which the parent is told.
    pub silence: Duration,
    /// Type of a sub-agent whose type is not named.
    pub default_type: Option<String>,
    /// Model of a sub-agent whose type names none; the parent's if `None`.
    pub model: Option<String>,
    /// Tools that no sub-agent gets.
    pub denied_tools: Vec<String>,
    /// Tools that a sub-agent at the greatest depth does not get.
    pub leaf_denied_tools: Vec<String>,
}

/// GOAL-1, GOAL-2: tracking of a session's goal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GoalSettings {
    /// True if sessions have a goal.
    pub enabled: bool,
    /// Effect of later messages on a goal that comes from messages.
    pub later_messages: LaterMessages,
    /// True if `{current_goal}` in a system prompt is replaced by the goal.
    pub in_system_prompt: bool,
    /// Phrases in an answer that mark the goal as reached.
    pub completion_phrases: Vec<String>,
    /// Settings of work without input.
    pub autonomy: AutonomySettings,
}

impl Word for LaterMessages {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("extend", Self::Extend),
        ("replace", Self::Replace),
        ("keep", Self::Keep),
    ];
}

/// GOAL-3, GOAL-9: limits of work without input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AutonomySettings {
    /// True if `/goal create --auto` is allowed.
    pub enabled: bool,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// Maximum time.
    pub max_time: Duration,
    /// Number of equal answers, or equal failures, that end the work.
    pub max_stuck_count: u32,
    /// Maximum cost per day in US dollars.
    pub max_cost_per_day: Option<f64>,
    /// Pause between two turns.
    pub turn_delay: Duration,
    /// Maximum time of a check.
    pub check_timeout: Duration,
    /// Maximum time that a request waits for the user.
    pub answer_timeout: Duration,
    /// The supervisor.
    pub supervisor: SupervisorSettings,
}

/// GOAL-4: the model that judges progress.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SupervisorSettings {
    /// Its provider; the session's own model if `None`.
    pub provider: Option<String>,
    /// Number of turns between two judgements.
    pub interval: u32,
    /// Maximum time of a judgement.
    pub timeout: Duration,
    /// Number of failures in a row that end the work.
    pub max_fails: u32,
}

/// UI-2: look and feel of the terminal UI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenSettings {
    /// Name of the palette; the last choice if `None`.
    pub theme: Option<String>,
    /// True if the terminal UI starts in full-screen mode.
    pub full_screen: bool,
    /// True for vim keys; the last choice if `None`.
    pub vim: Option<bool>,
    /// False if the mouse wheel is left to the terminal in full screen.
    pub mouse: Option<bool>,
    /// False if the title of the terminal is left alone.
    pub title: Option<bool>,
    /// Way to notify a user who looks elsewhere; chosen by the terminal if `None`.
    pub notify: Option<String>,
    /// Keys, by the name of their action.
    pub keys: BTreeMap<String, String>,
}

/// Settings of tool execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSettings {
    /// LOOP-5: order in which several calls run.
    pub execution: Execution,
    /// TOOL-4: maximum duration of a call.
    pub timeout: Duration,
    /// TOOL-3: maximum number of characters of a result that the model sees.
    pub max_tool_result_chars: usize,
    /// TOOL-3: maximum number of bytes of a command's output to keep.
    pub max_output_bytes: usize,
    /// TOOL-7: true if a read is retried after a transient error.
    pub retry_transient: bool,
    /// TOOL-10: the endpoint of `web_search`.
    pub web_search: WebSearchSettings,
    /// LOOP-10: true if the `done` tool is always offered.
    pub done: bool,
    /// Settings of the code index.
    pub code: CodeSettings,
    /// MCP-1: settings of MCP servers.
    pub mcp: McpSettings,
}

/// TOOL-10: the endpoint of `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebSearchSettings {
    /// Kind of the endpoint; `None` if there is no web search.
    pub engine: Option<SearchEngine>,
    /// Address of the endpoint; the engine's own if `None`.
    pub url: Option<String>,
}

/// Kind of an endpoint for web search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEngine {
    /// A SearXNG instance.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
}

impl Word for Option<SearchEngine> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", None),
        ("searxng", Some(SearchEngine::Searxng)),
        ("brave", Some(SearchEngine::Brave)),
        ("tavily", Some(SearchEngine::Tavily)),
    ];
}

/// MEM-9: the code index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeSettings {
    /// True if workspaces are indexed.
    pub index: bool,
    /// Maximum number of files.
    pub max_files: usize,
    /// Maximum size of the map before a turn, in tokens.
    pub map_tokens: usize,
    /// Number of files from which there is a map.
    pub map_min_files: usize,
    /// Longest wait for the map, in milliseconds.
    pub map_wait_ms: u64,
    /// TOOL-2: address of a Sourcegraph-compatible server.
    pub sourcegraph_url: Option<String>,
    /// Environment variable with its access token.
    pub sourcegraph_key_env: Option<String>,
}

/// MCP-1: MCP servers of the user, and the client's own settings.
///
/// `Debug` leaves out the servers, whose variables and headers may be secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct McpSettings {
    /// MCP-4: maximum number of bytes of the servers' tools in a request.
    pub tool_budget: usize,
    /// Time that the first turn waits for servers.
    pub startup_wait: Duration,
    /// MCP-7: command that opens a page for a login.
    pub browser: Option<KeyCommand>,
    /// Servers by name, each with its keys.
    pub servers: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
}

impl fmt::Debug for McpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSettings")
            .field("tool_budget", &self.tool_budget)
            .field("startup_wait", &self.startup_wait)
            .field("browser", &self.browser)
            .field("servers", &self.servers.keys())
            .finish()
    }
}

/// PROV-6: retries of failed requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetrySettings {
    /// Maximum number of retries after the first attempt.
    pub max_retries: u32,
    /// Longest wait between two attempts.
    pub max_delay: Duration,
    /// PROV-13: models that stand in for the first one, as `provider/model`.
    pub fallback: Vec<String>,
    /// PROV-13: time until the first one is tried again.
    pub fallback_pause: Duration,
}

/// Timeouts of requests and connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeoutSettings {
    /// PROV-6: silence after which a stream counts as dropped.
    pub stream_idle: Duration,
    /// Maximum time for establishing a connection.
    pub connect: Duration,
    /// PROV-9: pause before the next attempt after no provider could be reached.
    pub no_providers_backoff: Duration,
}

/// Storage and titles of sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionSettings {
    /// PROV-8: true if the last chosen provider is restored.
    pub provider_persistence: bool,
    /// SES-6: model that generates titles.
    pub title_model: Option<String>,
    /// OBS-2: true if model requests and replies are recorded.
    pub record: bool,
    /// OBS-2: maximum size of the recording, in megabytes per session.
    pub record_max_mb: u64,
    /// SES-13: maximum number of messages in a conversation; 0 for no limit.
    pub max_conversation_messages: usize,
    /// Settings of checkpoints.
    pub checkpoints: CheckpointSettings,
    /// Settings of the HTTP server.
    pub server: ServerSettings,
    /// UI-6: people who may answer permission requests in channels.
    pub approvers: Vec<String>,
    /// SES-1: place of the sessions; the database in the data folder if `None`.
    pub store: Option<StoreUrl>,
}

/// URL of a store. It may contain a password, so `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(pub String);

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreUrl(<hidden>)")
    }
}

/// SES-11: limits of the checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckpointSettings {
    /// True if checkpoints are stored.
    pub enabled: bool,
    /// Maximum size of one file, in megabytes.
    pub max_file_mb: u64,
    /// Maximum total size of files that version control ignores, in megabytes.
    pub max_ignored_mb: u64,
    /// Maximum total size of a workspace's checkpoints, in megabytes.
    pub max_total_mb: u64,
    /// True if they also go to a store that several servers share.
    pub share: bool,
}

/// Thresholds and strategy of compaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextSettings {
    /// True if compaction is automatic.
    pub auto_compact: bool,
    /// Fraction of the context window that triggers compaction.
    pub hard_threshold: f64,
    /// Number of most recent messages that stay unchanged.
    pub keep_recent_messages: usize,
    /// CTX-2: fraction of the context window at which prepared summaries are applied.
    pub soft_threshold: f64,
    /// CTX-3: true if old calls are summarized in the background.
    pub pair_summaries: bool,
    /// CTX-4: compaction strategy.
    pub strategy: Strategy,
    /// CTX-9: number of turns between checks of the collected knowledge.
    pub focus_window: usize,
    /// CTX-4: true if a model is asked regularly which outputs can be dropped.
    pub sidequest: bool,
    /// CTX-12: maximum time for compaction.
    pub prep_timeout: Duration,
    /// CTX-10: compression of long outputs.
    pub taco: TacoSettings,
    /// MEM-1: memory across sessions.
    pub memory: MemorySettings,
}

/// MEM-1: memory across sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemorySettings {
    /// True if sessions are remembered and recalled.
    pub enabled: bool,
    /// Maximum number of tokens that a turn starts with.
    pub budget_tokens: usize,
    /// Maximum number of units that a turn starts with.
    pub max_results: usize,
    /// Relevance below which a unit is not recalled.
    pub threshold: f64,
    /// Maximum time of recall before a turn.
    pub time_limit: Duration,
    /// Source of vectors.
    pub embeddings: EmbeddingSource,
    /// Address of the embedding server.
    pub server: Option<String>,
    /// Model of the embedding server.
    pub server_model: Option<String>,
    /// Variable with the key of the embedding server.
    pub server_key_env: Option<String>,
}

/// MEM-7: source of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddingSource {
    /// The local model, once it is installed.
    #[default]
    Local,
    /// A server.
    Server,
    /// None: search goes by words.
    Off,
}

/// CTX-10: compression of long outputs by a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TacoSettings {
    /// True if outputs are compressed.
    pub enabled: bool,
    /// Size in tokens above which an output is compressed.
    pub threshold: u64,
    /// Target size in tokens.
    pub target: u64,
    /// Provider that compresses; the session's own provider if `None`.
    pub provider: Option<String>,
    /// Tools, by their names or by their kind: `shell`, `web_scrape`, `read`.
    pub tools: Vec<String>,
}

/// Network access of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// None.
    #[default]
    Off,
    /// These hosts.
    Hosts(Vec<String>),
    /// Everything.
    On,
}

/// Settings of permissions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecuritySettings {
    /// SAFE-5: permission mode, which applies where no rule matches.
    pub mode: Mode,
    /// SAFE-6: rules for allowing calls, validated when they were read.
    pub allow: Vec<String>,
    /// Rules for asking, likewise.
    pub ask: Vec<String>,
    /// Rules for denying, likewise.
    pub deny: Vec<String>,
    /// SAFE-2: commands that `bash` refuses.
    pub blocked_commands: Vec<String>,
    /// True if tools of category `write` run without approval.
    pub auto_approve_writes: bool,
    /// SAFE-4, SAFE-12: network access of commands without approval.
    pub network: NetworkAccess,
    /// SAFE-3: folders in which files may be used and written.
    pub allowed_paths: Vec<String>,
    /// SAFE-3: paths that no tool may access.
    pub denied_paths: Vec<String>,
    /// SAFE-10: true if a session may work in the home folder or above it without a question.
    pub allow_home: bool,
    /// SAFE-10: resource limits of commands.
    pub limits: ResourceLimits,
    /// The user's settings file that was read, which tools may not access.
    pub config_file: Option<PathBuf>,
}

/// PROV-7: a provider under a name of the user's choice.
///
/// `Debug` leaves out the values of headers, which may be secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProviderEntry {
    /// Built-in provider it is based on.
    pub preset: Option<String>,
    /// Format of requests and replies.
    pub wire: Option<Wire>,
    /// Address that requests are sent to.
    pub base_url: Option<String>,
    /// PROV-11: environment variable that holds the key.
    pub key_env: Option<String>,
    /// PROV-11: command that prints the key.
    pub key_command: Option<KeyCommand>,
    /// Model used if none is named.
    pub model: Option<String>,
    /// Headers added to every request.
    pub headers: BTreeMap<String, String>,
}

/// PROV-10: facts about a model that replace the built-in ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelEntry {
    /// Maximum number of tokens of a request and its reply together.
    pub context_window: Option<u64>,
    /// Maximum number of tokens in a reply.
    pub max_output: Option<u64>,
    /// Price of the model.
    pub price: PriceEntry,
    /// True if the model accepts images.
    pub images: Option<bool>,
    /// True if the model supports reasoning.
    pub reasoning: Option<bool>,
}

/// US dollars per million tokens; `None` where not given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PriceEntry {
    /// Uncached input.
    pub input: Option<f64>,
    /// Output, including reasoning.
    pub output: Option<f64>,
    /// Input read from the provider's cache.
    pub cache_read: Option<f64>,
    /// Input written to the provider's cache.
    pub cache_write: Option<f64>,
}

/// A command that prints a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCommand {
    /// A shell command line.
    Shell(String),
    /// A program and its arguments, run without a shell.
    Program(Vec<String>),
}

/// A choice identified by a word in a file. Words are checked against [`Word::WORDS`] first.
pub(super) trait Word: Copy + 'static {
    /// Every word and its meaning.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the meaning of a word, or that of the first one if the word is unknown.
    fn from_word(word: &str) -> Self {
        let found = Self::WORDS.iter().find(|(name, _)| *name == word);
        found.unwrap_or(&Self::WORDS[0]).1
    }
}

impl Word for OnMaxIterations {
    const WORDS: &'static [(&'static str, Self)] = &[("summary", Self::Summary), ("message", Self::Message)];
}

impl Word for Option<Effort> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", None),
        ("low", Some(Effort::Low)),
        ("medium", Some(Effort::Medium)),
        ("high", Some(Effort::High)),
    ];
}

impl Word for Execution {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("parallel", Self::Parallel),
        ("sequential", Self::Sequential),
    ];
}

impl Word for Strategy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("summarize", Self::Summarize),
        ("none", Self::None),
        ("mask", Self::Mask),
        ("subgoal", Self::Subgoal),
        ("subgoal_mig", Self::SubgoalByGain),
        ("focus", Self::Focus),
        ("sidequest", Self::ModelEviction),
    ];
}

impl Word for EmbeddingSource {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("local", Self::Local),
        ("server", Self::Server),
        ("off", Self::Off),
    ];
}

impl Word for Wire {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("anthropic-messages", Self::Anthropic),
        ("openai-chat", Self::Chat),
        ("openai-responses", Self::Responses),
        ("gemini", Self::Gemini),
    ];
}

impl fmt::Debug for ProviderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderEntry")
            .field("preset", &self.preset)
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("key_env", &self.key_env)
            .field("key_command", &self.key_command)
            .field("model", &self.model)
            .field("headers", &self.headers.keys())
            .finish()
    }
}
