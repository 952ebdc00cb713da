//! What the settings are made of: one small struct per consumer.
//!
//! `Default` gives empty structs; the defaults a user sees are in the table of keys.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use windlass_core::dispatch::Execution;
use windlass_core::permission::Mode;
use windlass_core::turn::OnMaxIterations;
use windlass_providers::{Effort, Wire};

use windlass_core::compact::Strategy;

/// Limits and style of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentSettings {
    /// LOOP-9: model requests per turn.
    pub max_iterations: u32,
    /// LOOP-9: how a turn ends that used them up.
    pub on_max_iterations: OnMaxIterations,
    /// LOOP-13: how often open work is pointed out per turn.
    pub max_incomplete_prompts: u32,
    /// US dollars a session may cost.
    pub max_cost_usd: Option<f64>,
    /// Stands in for the built-in system prompt.
    pub system_prompt: Option<String>,
    /// How much the model is asked to reason.
    pub reasoning: Option<Effort>,
    /// Tokens of one reply; the model's own limit when `None`.
    pub max_output_tokens: Option<u64>,
    /// How its sessions are begun.
    pub session: SessionSettings,
    /// How it looks in a terminal.
    pub screen: ScreenSettings,
    /// How goals are followed.
    pub goal: GoalSettings,
}

/// GOAL-1, GOAL-2: how the goal of a session is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GoalSettings {
    /// Whether it is.
    pub enabled: bool,
    /// Whether `{current_goal}` in a system prompt is replaced by it.
    pub in_system_prompt: bool,
    /// Words in an answer that say that it was reached.
    pub completion_phrases: Vec<String>,
}

/// UI-2: how the terminal UI looks and feels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenSettings {
    /// The palette by name; what was chosen last when `None`.
    pub theme: Option<String>,
    /// Whether it begins on the whole screen.
    pub full_screen: bool,
    /// Whether vim's keys are used; what was chosen last when `None`.
    pub vim: Option<bool>,
    /// Keys by the name of their action.
    pub keys: BTreeMap<String, String>,
}

/// How tools run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSettings {
    /// LOOP-5: in which order several calls run.
    pub execution: Execution,
    /// TOOL-4: how long a call may take.
    pub timeout: Duration,
    /// TOOL-3: characters of a result that the model sees.
    pub max_tool_result_chars: usize,
    /// TOOL-3: bytes of a command's output that are kept.
    pub max_output_bytes: usize,
    /// TOOL-7: whether a read is tried again after a transient error.
    pub retry_transient: bool,
}

/// PROV-6: how failed requests are repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetrySettings {
    /// Retries after the first attempt.
    pub max_retries: u32,
    /// The longest wait between two attempts.
    pub max_delay: Duration,
}

/// How long a silent connection is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeoutSettings {
    /// PROV-6: silence after which a stream counts as dropped.
    pub stream_idle: Duration,
    /// Until a connection is made.
    pub connect: Duration,
    /// PROV-9: how long no turn is tried after nobody could be reached.
    pub no_providers_backoff: Duration,
}

/// What is remembered of sessions, and what they are called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionSettings {
    /// PROV-8: whether the provider that was chosen last is taken again.
    pub provider_persistence: bool,
    /// SES-6: the model that makes titles.
    pub title_model: Option<String>,
    /// OBS-2: whether what goes over the wire is kept.
    pub record: bool,
    /// OBS-2: how much of it, in megabytes per session.
    pub record_max_mb: u64,
    /// SES-13: the most messages of a conversation; 0 for no limit.
    pub max_conversation_messages: usize,
    /// What is kept for taking files back.
    pub checkpoints: CheckpointSettings,
}

/// SES-11: what is kept for taking files back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckpointSettings {
    /// Whether anything is.
    pub enabled: bool,
    /// Megabytes of one file.
    pub max_file_mb: u64,
    /// Megabytes of what version control ignores.
    pub max_ignored_mb: u64,
    /// Megabytes of a workspace.
    pub max_total_mb: u64,
}

/// When and how far history is compacted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextSettings {
    /// Whether it happens by itself.
    pub auto_compact: bool,
    /// The share of the context window that starts it.
    pub hard_threshold: f64,
    /// The newest messages, which stay as they are.
    pub keep_recent_messages: usize,
    /// CTX-2: the share at which what is ready is applied.
    pub soft_threshold: f64,
    /// CTX-3: whether old calls are summarized in the background.
    pub pair_summaries: bool,
    /// CTX-4: how it is made smaller.
    pub strategy: Strategy,
    /// CTX-9: turns between two looks at what was learned.
    pub focus_window: usize,
    /// CTX-4: whether a model is asked now and then which outputs can go.
    pub sidequest: bool,
    /// CTX-12: how long making it smaller may take.
    pub prep_timeout: Duration,
    /// CTX-10: compression of long outputs.
    pub taco: TacoSettings,
}

/// CTX-10: compression of long outputs by a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TacoSettings {
    /// Whether there is any.
    pub enabled: bool,
    /// Tokens over which an output is compressed.
    pub threshold: u64,
    /// Tokens it is to have then.
    pub target: u64,
    /// Who does it; the session's own provider when `None`.
    pub provider: Option<String>,
    /// The tools, by their names or by what they are: `shell`, `web_scrape`, `read`.
    pub tools: Vec<String>,
}

/// What is allowed without asking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecuritySettings {
    /// SAFE-5: how far the agent may go without a rule.
    pub mode: Mode,
    /// SAFE-6: rules, checked when they were read.
    pub allow: Vec<String>,
    /// The same, for asking.
    pub ask: Vec<String>,
    /// The same, for denying.
    pub deny: Vec<String>,
    /// SAFE-2: what `bash` refuses.
    pub blocked_commands: Vec<String>,
    /// Whether tools of category `write` run without asking.
    pub auto_approve_writes: bool,
    /// SAFE-4: whether commands may reach other machines.
    pub network: bool,
    /// SAFE-3: where files may be used and written to.
    pub allowed_paths: Vec<String>,
    /// SAFE-3: what nobody may reach.
    pub denied_paths: Vec<String>,
}

/// PROV-7: a provider under a name of the user's choice.
///
/// `Debug` leaves out the values of headers, which may be secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProviderEntry {
    /// The built-in provider it is based on.
    pub preset: Option<String>,
    /// The format of requests and replies.
    pub wire: Option<Wire>,
    /// Where requests go.
    pub base_url: Option<String>,
    /// PROV-11: the environment variable with the key.
    pub key_env: Option<String>,
    /// PROV-11: the command that prints the key.
    pub key_command: Option<KeyCommand>,
    /// The model used when none is named.
    pub model: Option<String>,
    /// Headers added to every request.
    pub headers: BTreeMap<String, String>,
}

/// PROV-10: facts about a model that replace what is built in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelEntry {
    /// Tokens of a request and its reply together.
    pub context_window: Option<u64>,
    /// Tokens of a reply.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: PriceEntry,
    /// Whether it reads images.
    pub images: Option<bool>,
    /// Whether it can be asked to reason.
    pub reasoning: Option<bool>,
}

/// US dollars per million tokens, as far as they were given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PriceEntry {
    /// Uncached input.
    pub input: Option<f64>,
    /// Output, reasoning included.
    pub output: Option<f64>,
    /// Input read from the provider's cache.
    pub cache_read: Option<f64>,
    /// Input written to the provider's cache.
    pub cache_write: Option<f64>,
}

/// A command that prints a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCommand {
    /// One line for the shell.
    Shell(String),
    /// A program and its arguments, run without a shell.
    Program(Vec<String>),
}

/// A choice by its word in a file. Words are checked against [`Word::WORDS`] before they get here.
pub(super) trait Word: Copy + 'static {
    /// Every word and what it means.
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

impl Word for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("plan", Self::Plan),
        ("default", Self::Default),
        ("accept-edits", Self::AcceptEdits),
        ("unattended", Self::Unattended),
        ("full", Self::Full),
    ];
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

impl Word for Wire {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("anthropic-messages", Self::Anthropic),
        ("openai-chat", Self::Chat),
        ("openai-responses", Self::Responses),
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
