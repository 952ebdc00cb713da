//! What a session's turns are made with. Whoever knows providers and tools implements this.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{CommandSource, FailureKind, Message, MessageId, Offer, SessionId, SessionInfo};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::compact::Compactor;
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::Hooks;
use windlass_core::model::Price;
use windlass_core::permission::{Approver, Asker, Mode, Policy};
use windlass_core::provider::Provider;
use windlass_core::run::Config;
use windlass_core::tool::Outputs;

/// Makes benches.
#[async_trait]
pub trait SessionFactory: Send + Sync {
    /// Creates the environment of a session that becomes live. `asker` reaches the person who answers its questions.
    ///
    /// # Errors
    /// When there can be none; says why, for people.
    async fn create(
        &self,
        session: &SessionInfo,
        asker: Arc<dyn Asker>,
    ) -> Result<Box<dyn SessionEnv>, String>;

    /// Removes what is kept of a deleted session outside the store.
    async fn forget(&self, _session: &SessionId) {}
}

/// Facts about the environment of a session.
pub trait EnvFacts {
    /// Describes the environment to the model: folder, platform. The text goes with the user's message whenever the
    /// conversation does not contain it already; `None` adds nothing.
    fn environment(&self) -> Option<String> {
        None
    }

    /// Returns what the session works towards, and how that is followed.
    fn goals(&self) -> Goals {
        Goals::default()
    }

    /// Returns the source of the model that writes titles; `None` leaves the start of the first message.
    fn titles(&self) -> Option<Arc<dyn Titles>> {
        None
    }
}

/// What one session works with. Tools know what the model has seen, so it is kept when the session is no longer live, for
/// when it is opened again.
#[async_trait]
pub trait SessionEnv: EnvFacts + Send + Sync {
    /// Plans the next turn. Files that changed since the last one count from here on.
    ///
    /// # Errors
    /// When there can be no turn now; says why. It then ends as failed, with nothing sent to anybody.
    async fn plan(&mut self, turn: &TurnStart) -> Result<TurnPlan, NotReady>;

    /// What takes files back; `None` where nothing is kept of them.
    fn checkpoints(&self) -> Option<Arc<dyn Checkpoints>>;

    /// The models there are.
    fn models(&mut self) -> &mut dyn ModelSwitch;

    /// What the session may do.
    fn permissions(&mut self) -> &mut dyn Permissions;

    /// The commands that files define, as they are now.
    fn defined(&mut self) -> Defined;

    /// Ends what the session has left running. Called when the program ends.
    async fn close(&mut self) {}
}

/// What a turn begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStart {
    /// The user's message; `None` when the conversation is only made smaller.
    pub message: Option<MessageId>,
    /// The first 120 characters of what the user said.
    pub prompt: String,
    /// The conversation, with that message.
    pub history: Vec<Arc<Message>>,
    /// What the session is to reach, as it was given.
    pub goal: Option<String>,
    /// The texts that were pinned, the first one first.
    pub pins: Vec<String>,
}

/// Why there can be no turn now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// For programs.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The models a session can ask, of which one is asked.
#[async_trait]
pub trait ModelSwitch: Send + Sync {
    /// The providers that are set up, or whose key is known. Must not connect to anything.
    fn list(&self) -> Vec<ModelChoice>;

    /// Who is asked next: provider and model. Must not connect to anything.
    ///
    /// # Errors
    /// Says why nobody can be.
    fn active(&self) -> Result<(String, String), String>;

    /// What a model costs, if that is known.
    fn price(&self, model: &str) -> Option<Price>;

    /// How many tokens a model reads at most; 0 when that is not known.
    fn window(&self, model: &str) -> u64;

    /// Every provider that can be set up, those that can be used first. Must not connect to anything.
    fn offers(&self) -> Vec<Offer>;

    /// Has the next turns asked of another one; `None` leaves the provider, or takes the provider's own model. A model
    /// may be written `provider/model`. When it fails, everything stays as it was.
    ///
    /// # Errors
    /// When there is no such provider, or it cannot be used.
    async fn choose(&mut self, provider: Option<&str>, model: Option<&str>) -> Result<Chosen, ChooseError>;
}

/// A provider that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The name it is configured under.
    pub provider: String,
    /// What it speaks.
    pub kind: String,
    /// The model it would ask; empty when one has to be named.
    pub model: String,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// Why nothing was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// There is no such provider.
    #[error("there is no such provider")]
    Unknown,
    /// It cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// What a session may do, and what it is about.
#[async_trait]
pub trait Permissions: Send + Sync {
    /// The tools a model can call next.
    fn tools(&mut self) -> Vec<ToolInfo>;

    /// The rules and the mode.
    fn policy(&self) -> Policy;

    /// Sets the mode, for as long as the bench is kept.
    fn set_mode(&mut self, mode: Mode);

    /// What the user has allowed for longer than once.
    fn granted(&self) -> Granted;

    /// What a command that the user typed is run with. Must not connect to anything.
    async fn user_command(&mut self, turn: &TurnStart, command: &str) -> UserCommand;
}

/// What the user has allowed for longer than once, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Granted {
    /// For this session, and no longer.
    pub session: Vec<String>,
    /// For good.
    pub always: Vec<String>,
}

/// What is worked towards, and how that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Goals {
    /// What is being worked on, when that is known.
    pub subgoal: Option<String>,
    /// GOAL-1: whether the session has goals.
    pub follows_goal: bool,
    /// GOAL-2: words in an answer that say that the goal was reached.
    pub completion_phrases: Vec<String>,
}

/// A command of the user's as a call.
pub struct UserCommand {
    /// Tools, permissions and limits, of which one tool runs it.
    pub calls: CallConfig,
    /// The hooks, in order.
    pub hooks: Hooks,
    /// Stores long outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// That tool.
    pub tool: String,
    /// Its arguments.
    pub input: String,
    /// What the user should know first.
    pub notices: Vec<String>,
}

/// A tool, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// Where it comes from, in a word.
    pub source: String,
    /// What it does.
    pub description: String,
}

/// The commands that files define.
#[derive(Debug, Clone, Default)]
pub struct Defined {
    /// Those that can be used. Of two with one name the first counts.
    pub commands: Vec<DefinedCommand>,
    /// What is wrong with others, a line each.
    pub warnings: Vec<String>,
}

/// A command that a file defines: a text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedCommand {
    /// Its name: `name`, or `folder:name`.
    pub name: String,
    /// What it does, in a line.
    pub description: String,
    /// What may follow it.
    pub hint: String,
    /// The text, with `$ARGUMENTS`, `$1` to `$9`, and `$$` for a dollar.
    pub body: String,
    /// Whose file it is.
    pub source: CommandSource,
    /// The file.
    pub file: String,
}

/// The settings of one turn, and the connections that its environment provides.
pub struct TurnPlan {
    /// The settings.
    pub config: Config,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// Makes the history smaller; `None` when that is off.
    pub compactor: Option<Arc<dyn Compactor>>,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
    /// Stores long outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Warnings for the user, shown before the turn.
    pub notices: Vec<String>,
}

/// Makes titles.
#[async_trait]
pub trait Titles: Send + Sync {
    /// The model for it, connected when it is needed; `None` when it cannot be. Called in the background.
    async fn provider(&self) -> Option<Arc<dyn Provider>>;
}
