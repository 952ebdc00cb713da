//! Environment of a session: the port through which the service gets models, tools and permissions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{
    CommandSource, FailureKind, FolderFacts, Message, MessageId, Offer, Part, SessionId, SessionInfo,
};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::compact::Compactor;
use windlass_core::dispatch::CallConfig;
use windlass_core::event::LaterMessages;
use windlass_core::hook::Hooks;
use windlass_core::log::AgentRow;
use windlass_core::model::Price;
use windlass_core::permission::{Approver, Asker, Mode, Policy};
use windlass_core::provider::Provider;
use windlass_core::run::Config;
use windlass_core::tool::{AnyTool, Outputs};

use crate::agents::AgentCatalog;
use crate::goal::Goal;
use crate::pins::Pins;

/// Number of characters of the user's message in a [`TurnStart`].
const PROMPT: usize = 120;

/// Creates the environments of sessions.
#[async_trait]
pub trait SessionFactory: Send + Sync {
    /// Creates the environment of a session that becomes live.
    ///
    /// # Errors
    /// Fails with a message for the user if the environment cannot be created.
    async fn create(&self, session: &SessionInfo, host: SessionHost) -> Result<Box<dyn SessionEnv>, String>;

    /// DIST-7: returns what the session's user has left of today, on one line; `None` without limits.
    async fn budget_left(&self, _session: &SessionInfo) -> Option<String> {
        None
    }

    /// Returns the types and the limits of the sub-agents that a session can start.
    async fn agents(&self, _session: &SessionInfo) -> AgentCatalog {
        AgentCatalog::default()
    }

    /// Removes the data of a deleted session outside the store.
    async fn forget(&self, _session: &SessionId) {}

    /// Drops what is kept in memory for a session whose environment was closed.
    async fn release(&self, _session: &SessionId) {}

    /// Returns the copies of files that sub-agents work in; `None` if there are none here.
    fn copies(&self) -> Option<Arc<dyn AgentCopies>> {
        None
    }
}

/// SUB-6: copies of a session's files, each for one sub-agent.
#[async_trait]
pub trait AgentCopies: Send + Sync {
    /// Makes a copy of a session's files as they are now, and returns its folder. A complete copy for this sub-agent is
    /// kept as it is; the rest of one that was never completed is replaced.
    ///
    /// # Errors
    /// Fails with the reason if the copy cannot be made. The sub-agent then does not start.
    async fn make(&self, parent: &SessionInfo, agent: &SessionId) -> Result<String, String>;

    /// Returns the changes in a copy, as a diff; empty if there are none.
    ///
    /// # Errors
    /// Fails with the reason if the copy cannot be read.
    async fn changes(&self, agent: &SessionId) -> Result<String, String>;

    /// Merges the changes in a copy into the files of the session it was made from, as one checkpoint of that
    /// session.
    ///
    /// # Errors
    /// Fails with the reason if nothing was merged.
    async fn merge(&self, agent: &SessionId, into: &SessionInfo) -> Result<MergedCopy, String>;

    /// Returns paths that more than one of these copies changed.
    ///
    /// # Errors
    /// Fails with the reason if a copy cannot be read.
    async fn collisions(&self, _agents: &[SessionId]) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// Removes a copy.
    ///
    /// # Errors
    /// Fails with the reason if it is still there.
    async fn discard(&self, agent: &SessionId) -> Result<(), String>;
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedCopy {
    /// Description for the user.
    pub text: String,
    /// True if there was no conflict, so that the copy is no longer needed.
    pub is_complete: bool,
}

/// Connections of a session's environment to the service.
pub struct SessionHost {
    /// Reaches the person who answers permission requests and questions.
    pub asker: Arc<dyn Asker>,
    /// Tools that the service offers.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// The ledger's row of the session, if it is a sub-agent.
    pub agent: Option<AgentRow>,
    /// The session above, if it is a sub-agent.
    pub parent: Option<SessionInfo>,
    /// Takes inputs from the environment.
    pub inputs: Arc<dyn windlass_api::SessionInputs>,
}

/// Facts about the environment of a session.
pub trait EnvFacts {
    /// Describes the environment to the model: folder, platform. The text goes with the user's message
    /// whenever the conversation does not contain it already; `None` adds nothing.
    fn environment(&self) -> Option<String> {
        None
    }

    /// Returns the goal settings and the current subgoal of the session.
    fn goals(&self) -> Goals {
        Goals::default()
    }

    /// Returns the hooks that follow the session itself. Only their session part is used: hooks of a turn are
    /// part of its plan.
    fn hooks(&self) -> Hooks {
        Hooks::new()
    }

    /// Returns the scheduled jobs of the user; `None` if there can be none.
    fn jobs(&self) -> Option<Arc<dyn ScheduledJobs>> {
        None
    }

    /// Returns the source of the model that writes titles; `None` leaves the start of the first message.
    fn titles(&self) -> Option<Arc<dyn Titles>> {
        None
    }

    /// GOAL-4: returns the source of the model that judges progress; `None` for the session's own model.
    fn supervisor(&self) -> Option<Arc<dyn SupervisorModel>> {
        None
    }
}

/// SAFE-3: files of a session's folder, under the limits of its tools.
pub trait FolderFiles: Send + Sync {
    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// Fails with the reason, which contains nothing of the file.
    fn read(&self, path: &str, limit: u64) -> Result<String, String>;

    /// Writes a file, which must not exist yet if `is_new`, and must exist otherwise.
    ///
    /// # Errors
    /// Fails with the reason if the file may not or cannot be written.
    fn write(&self, path: &str, text: &str, is_new: bool) -> Result<(), String>;
}

/// Subsystems of a session with a slash command of their own: hook files, skills, MCP servers, memory.
#[async_trait]
pub trait Extensions: Send + Sync {
    /// Returns the branch of the session's folder and the instructions in effect.
    fn surroundings(&self) -> FolderFacts {
        FolderFacts::default()
    }

    /// Returns the files of the session's folder, for commands that name one; `None` if there is no folder here.
    fn files(&self) -> Option<Arc<dyn FolderFiles>> {
        None
    }

    /// Returns the files with instructions that are in effect.
    fn instructions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs the command of a subsystem. `None` if the environment has no such subsystem; a failure is a message for
    /// the user.
    async fn extension_command(
        &mut self,
        _command: &ExtensionCommand<'_>,
    ) -> Option<Result<ExtensionReply, String>> {
        None
    }
}

/// A slash command for a subsystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionCommand<'a> {
    /// Name of the command, without the slash.
    pub name: &'a str,
    /// Arguments as they were typed.
    pub arguments: &'a str,
    /// True while a turn runs: only look then.
    pub is_busy: bool,
}

/// Answer of a subsystem to its command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtensionReply {
    /// Text for the user.
    pub text: String,
    /// Input to submit, if the command starts a turn.
    pub submit: Option<Vec<Part>>,
}

impl ExtensionReply {
    /// A reply that only shows a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            submit: None,
        }
    }
}

/// The environment of one session. Tools know which content the model has seen, so the environment is kept
/// after the session's task ends, for the next time the session is opened.
#[async_trait]
pub trait SessionEnv: EnvFacts + Extensions + Send + Sync {
    /// Plans the next turn. Files that changed since the last turn take effect here.
    ///
    /// # Errors
    /// Fails with the reason if a turn cannot start. The turn then ends as failed, and no request is sent.
    async fn plan(&mut self, turn: &TurnStart) -> Result<TurnPlan, NotReady>;

    /// Returns the checkpoints that restore files; `None` if they are off.
    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>>;

    /// Returns the available models.
    fn models(&mut self) -> &mut dyn ModelSwitch;

    /// Returns the permissions of the session.
    fn permissions(&mut self) -> &mut dyn Permissions;

    /// Reads the commands that files define.
    fn defined(&mut self) -> Defined;

    /// Stops the session's background work. Called when the program ends.
    async fn close(&mut self) {}
}

/// Start of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStart {
    /// The user's message; `None` for a compaction outside a turn.
    pub message: Option<MessageId>,
    /// The first 120 characters of the user's message.
    pub prompt: String,
    /// The conversation, including that message.
    pub history: Vec<Arc<Message>>,
    /// Goal of the session, as it was given.
    pub goal: Option<String>,
    /// Pinned texts, oldest first.
    pub pins: Vec<String>,
}

impl TurnStart {
    pub(crate) fn new(
        message: Option<&Message>,
        prompt: &str,
        history: &[Arc<Message>],
        goal: &Goal,
        pins: &Pins,
    ) -> Self {
        Self {
            message: message.map(|message| message.id.clone()),
            prompt: prompt.chars().take(PROMPT).collect(),
            history: history.to_vec(),
            goal: goal.active().map(str::to_owned),
            pins: pins.texts().to_vec(),
        }
    }
}

/// Reason a turn cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// Kind of failure, for programs.
    pub kind: FailureKind,
    /// Message for the user.
    pub message: String,
    /// Suggested fix.
    pub hint: Option<String>,
}

/// Reasoning effort of a session's model.
#[async_trait]
pub trait EffortSwitch: Send + Sync {
    /// Returns the effort of the next turns: `off`, `low`, `medium` or `high`.
    fn effort(&self) -> &'static str;

    /// Sets the effort of the next turns. A failure changes nothing.
    ///
    /// # Errors
    /// Fails if there is no such effort, or the provider cannot be used with it.
    async fn set_effort(&mut self, effort: &str) -> Result<(), ChooseError>;

    /// Returns the models to choose from, as `provider/model`. Must not connect to anything.
    fn choices(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The models available to a session, one of which is active.
#[async_trait]
pub trait ModelSwitch: EffortSwitch {
    /// Returns the providers that are configured, or whose key is known. Must not connect to anything.
    fn list(&self) -> Vec<ModelChoice>;

    /// Returns the active provider and model. Must not connect to anything.
    ///
    /// # Errors
    /// Fails with the reason if there is none.
    fn active(&self) -> Result<(String, String), String>;

    /// Returns the price of a model, if it is known.
    fn price(&self, model: &str) -> Option<Price>;

    /// Returns the context window of a model in tokens; 0 if it is not known.
    fn window(&self, model: &str) -> u64;

    /// Returns every provider that can be set up, the usable ones first. Must not connect to anything.
    fn offers(&self) -> Vec<Offer>;

    /// Selects a provider and model for the next turns. `None` keeps the provider, or uses the provider's
    /// default model. A model may be written `provider/model`. A failure changes nothing.
    ///
    /// # Errors
    /// Fails if there is no such provider, or it cannot be used.
    async fn choose(&mut self, provider: Option<&str>, model: Option<&str>) -> Result<Chosen, ChooseError>;
}

/// A provider that can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Name it is configured under.
    pub provider: String,
    /// Wire format.
    pub kind: String,
    /// Its default model; empty if one has to be named.
    pub model: String,
}

/// The new selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Reason a selection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// There is no such provider.
    #[error("there is no such provider")]
    Unknown,
    /// The provider cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// Permissions of a session, and its tools.
#[async_trait]
pub trait Permissions: Send + Sync {
    /// Returns the tools a model can call next.
    fn tools(&mut self) -> Vec<ToolInfo>;

    /// Returns the rules and the mode.
    fn policy(&self) -> Policy;

    /// Sets the mode for the lifetime of the environment.
    fn set_mode(&mut self, mode: Mode);

    /// Returns the lasting grants of the user.
    fn granted(&self) -> Granted;

    /// Returns the configuration for a command that the user typed. Must not connect to anything.
    async fn user_command(&mut self, turn: &TurnStart, command: &str) -> UserCommand;

    /// Returns the configuration for a command that verifies something. It gets no more access than its text
    /// needs, and is killed after `limit`. Must not connect to anything.
    async fn check_command(&mut self, turn: &TurnStart, command: &str, limit: Duration) -> UserCommand;
}

/// Lasting grants of the user, one line each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Granted {
    /// Grants for this session.
    pub session: Vec<String>,
    /// Permanent grants.
    pub always: Vec<String>,
}

/// Goal settings, and the current subgoal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Goals {
    /// Current subgoal, if it is known.
    pub subgoal: Option<String>,
    /// GOAL-1: true if the session has goals.
    pub follows_goal: bool,
    /// GOAL-1: effect of later messages on a goal that comes from messages.
    pub later_messages: LaterMessages,
    /// GOAL-2: phrases in an answer that state that the goal was reached.
    pub completion_phrases: Vec<String>,
    /// GOAL-3: limits of work without input.
    pub autonomy: AutonomyLimits,
}

/// GOAL-3, GOAL-9: limits of work without input.
#[derive(Debug, Clone, PartialEq)]
pub struct AutonomyLimits {
    /// True if `/goal create --auto` is allowed.
    pub enabled: bool,
    /// Maximum number of turns, unless the request names one.
    pub max_turns: u32,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// Maximum time.
    pub max_time: Duration,
    /// Number of equal answers, or equal failures, that end the work.
    pub max_stuck_count: u32,
    /// Maximum cost per day over all sessions, in US dollars.
    pub max_cost_per_day: Option<f64>,
    /// Pause between two turns.
    pub turn_delay: Duration,
    /// Maximum time of a check.
    pub check_timeout: Duration,
    /// Maximum time that a request waits for the user.
    pub answer_timeout: Duration,
    /// GOAL-4: limits of the supervisor.
    pub supervisor: SupervisorLimits,
}

impl Default for AutonomyLimits {
    fn default() -> Self {
        Self {
            enabled: false,
            max_turns: 50,
            max_tokens: None,
            max_time: Duration::from_secs(8 * 3600),
            max_stuck_count: 3,
            max_cost_per_day: Some(10.0),
            turn_delay: Duration::from_millis(500),
            check_timeout: Duration::from_secs(600),
            answer_timeout: Duration::from_secs(600),
            supervisor: SupervisorLimits::default(),
        }
    }
}

/// GOAL-4: limits of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupervisorLimits {
    /// Number of turns between two judgements.
    pub interval: u32,
    /// Maximum time of a judgement.
    pub timeout: Duration,
    /// Number of failures in a row that end the work.
    pub max_fails: u32,
}

impl Default for SupervisorLimits {
    fn default() -> Self {
        Self {
            interval: 5,
            timeout: Duration::from_secs(30),
            max_fails: 3,
        }
    }
}

/// A command that the user typed, as a tool call.
pub struct UserCommand {
    /// Tools, permissions and limits.
    pub calls: CallConfig,
    /// The hooks, in order.
    pub hooks: Hooks,
    /// Stores long outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Name of the tool that runs the command.
    pub tool: String,
    /// Arguments of the call.
    pub input: String,
    /// Notices to show the user first.
    pub notices: Vec<String>,
}

/// A tool, described for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolInfo {
    /// Name of the tool.
    pub name: String,
    /// Source of the tool, as one word.
    pub source: String,
    /// Purpose of the tool.
    pub description: String,
}

/// The commands that files define.
#[derive(Debug, Clone, Default)]
pub struct Defined {
    /// Usable commands. If two have the same name, the first counts.
    pub commands: Vec<DefinedCommand>,
    /// Errors in other files, one line each.
    pub warnings: Vec<String>,
}

/// A command that a file defines: a prompt with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedCommand {
    /// Name of the command: `name`, or `folder:name`.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Arguments, for the help.
    pub hint: String,
    /// The prompt, with `$ARGUMENTS`, `$1` to `$9`, and `$$` for a dollar sign.
    pub body: String,
    /// Owner of the file.
    pub source: CommandSource,
    /// Path of the file.
    pub file: String,
    /// The subsystem that carries the command out; `None` for a prompt.
    pub runs_in: Option<&'static str>,
}

/// The configuration of one turn, and the connections that its environment provides.
pub struct TurnPlan {
    /// The configuration.
    pub config: Config,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// Compacts the history; `None` if compaction is off.
    pub compactor: Option<Arc<dyn Compactor>>,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
    /// Stores long outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Warnings for the user, shown before the turn.
    pub notices: Vec<String>,
}

/// Shows the scheduled jobs of the user.
#[async_trait]
pub trait ScheduledJobs: Send + Sync {
    /// Returns the jobs as text for people: schedules, last and next slots.
    ///
    /// # Errors
    /// Fails with the reason if the jobs or the store cannot be read.
    async fn text(&self) -> Result<String, String>;
}

/// Provides the model that writes titles.
#[async_trait]
pub trait Titles: Send + Sync {
    /// Returns the model, connecting it if necessary; `None` if that fails. Called in the background.
    async fn provider(&self) -> Option<Arc<dyn Provider>>;
}

/// GOAL-4: provides the model that judges progress towards a goal.
#[async_trait]
pub trait SupervisorModel: Send + Sync {
    /// Returns the model, connecting it if necessary. Called in the background.
    ///
    /// # Errors
    /// Fails with the reason if it cannot be used.
    async fn provider(&self) -> Result<Arc<dyn Provider>, String>;
}
