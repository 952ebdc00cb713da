//! The tool contract: one Rust type provides the schema, the validation and the arguments.

mod erased;
mod model;
mod outputs;
mod person;
mod set;
mod shape;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::erased::{AnyTool, Prepared, erase};
pub use self::model::{CallModel, SAMPLING};
pub use self::outputs::{Kept, Outputs, RECALL, TOOL_OUTPUT};
pub use self::person::Person;
pub use self::set::ToolSet;
use crate::id::{CallId, SessionId};
use crate::message::Binary;
use crate::permission::{Blocked, Escalation, Subject};
pub use windlass_text::{parse_strict, raw_arguments};

/// A tool with typed arguments.
///
/// ```
/// use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Add { a: f64, b: f64 }
///
/// struct Adder;
/// impl Tool for Adder {
///     type Input = Add;
///     const NAME: &'static str = "add";
///     fn category(&self, _: &Add) -> Category { Category::Read }
///     async fn run(&self, input: Add, _: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text((input.a + input.b).to_string()))
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The arguments. The doc comment of this type is the description the model reads, and the doc comments
    /// of its fields describe the arguments.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// Name by which the model calls the tool.
    const NAME: &'static str;

    /// Returns the kind of effect this call has. Decided per call: `bash` commands differ.
    fn category(&self, input: &Self::Input) -> Category;

    /// Describes this call for rules and people; only the category if the tool has nothing to add.
    fn judge(&self, input: &Self::Input) -> Judgement {
        Judgement::of(self.category(input))
    }

    /// Returns a preview of the call for the permission request: a diff, a command. May read the disk.
    fn preview(&self, _input: &Self::Input, _execution: &ExecutionContext) -> Option<String> {
        None
    }

    /// Returns the scheduling properties and the timeout of the tool.
    fn traits(&self) -> ToolTraits {
        ToolTraits::default()
    }

    /// Converts arguments that are not JSON, for tools that declare [`ToolTraits::raw_text`]. For every other
    /// tool such arguments are refused without calling this.
    fn take_raw(&self, _raw: &str) -> Option<Self::Input> {
        None
    }

    /// Runs the call. Must stop soon after `cx.cancel` fires and must leave no process behind.
    fn run(
        &self,
        input: Self::Input,
        cx: ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// A tool's description of a call before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The kind of effect.
    pub category: Category,
    /// Subjects of the call, part by part.
    pub subjects: Vec<Subject>,
    /// Reason the tool refuses the call in any case.
    pub refusal: Option<String>,
    /// Reasons to ask the user first, each a clause such as "it reaches the network".
    pub reasons: Vec<String>,
    /// Access beyond the default that the call needs.
    pub escalation: Escalation,
    /// The list of blocked commands that the call is on.
    pub blocked: Option<Blocked>,
    /// Files and folders that the call names, with every link followed. The call may use these and no others.
    pub places: Vec<PathBuf>,
}

impl Judgement {
    /// Creates a judgement with only the kind of effect.
    pub fn of(category: Category) -> Self {
        Self {
            category,
            subjects: Vec::new(),
            refusal: None,
            reasons: Vec::new(),
            escalation: Escalation::default(),
            blocked: None,
            places: Vec::new(),
        }
    }
}

/// Scheduling properties of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolTraits {
    /// Never overlaps with any other call, whatever the scheduling.
    pub exclusive: bool,
    /// Accepts arguments that are not JSON.
    pub raw_text: bool,
    /// Timeout of a call. The loop's default if `None`.
    pub timeout: Option<Duration>,
}

/// The kind of effect a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Changes nothing.
    Read,
    /// Changes things inside the workspace.
    Write,
    /// Destroys, or reaches outside the workspace.
    Admin,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments, shared by all sets that offer the tool.
    pub schema: Arc<Value>,
}

/// Environment of a call. Built once at the start of a turn, then fixed.
#[derive(Debug, Clone, Default)]
pub struct ExecutionContext {
    /// The working directory.
    pub cwd: PathBuf,
    /// Environment variables of child processes.
    pub env: BTreeMap<String, String>,
    /// Session the call belongs to.
    pub session: Option<SessionId>,
}

/// Context of a running call. It does not carry the session.
#[derive(Clone)]
pub struct ToolContext {
    /// Id of the call.
    pub call_id: CallId,
    /// Fires when the user stops the turn or the call times out.
    pub cancel: CancellationToken,
    /// Environment of the call.
    pub execution: Arc<ExecutionContext>,
    /// Receives live output.
    pub progress: Progress,
    /// Channel for questions to the user.
    pub person: Person,
    /// The model of the turn.
    pub model: CallModel,
    /// True if the call was approved, now or by a lasting grant, and did not just run because the mode or a rule
    /// allows it.
    pub confirmed: bool,
    /// Files and folders that the call was judged by, with every link followed. Set when the call starts.
    pub places: Arc<Vec<PathBuf>>,
}

/// Receives live output of a running call. Never blocks.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Passes each piece to `take`, which must not block.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Discards all output.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Shows a piece of output.
    pub fn send(&self, piece: &str) {
        (self.0)(piece);
    }
}

/// Output of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Text for the model.
    pub content: String,
    /// Structured details for people and programs.
    pub details: Option<Value>,
    /// Images for the model, beside the text.
    pub images: Vec<Binary>,
    /// True if the model should see a failure although the tool itself worked: a command that exited
    /// non-zero.
    pub failed: bool,
    /// Ends the turn with this text as its final answer.
    pub ends_turn: Option<String>,
    /// Notice for the user about the call.
    pub warning: Option<String>,
    /// Location of the whole output, if the tool stored it because the content is incomplete.
    pub kept: Option<Kept>,
}

impl ToolOutput {
    /// Creates an output of plain text for the model.
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Adds details for people.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// Reason a call failed. The model sees every variant, and the loop continues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments are wrong. The text names the field and the expected value.
    #[error("{0}")]
    Invalid(String),
    /// A retry may work.
    #[error("{0}")]
    Transient(String),
    /// A retry will not work.
    #[error("{0}")]
    Permanent(String),
    /// The call was stopped from outside; the text is the output so far.
    #[error("{0}")]
    Canceled(String),
}

impl ToolError {
    /// Returns the kind that is stored with the result.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Transient(_) => "transient",
            Self::Permanent(_) => "permanent",
            Self::Canceled(_) => "canceled",
        }
    }
}
