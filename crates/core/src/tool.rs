//! The tool contract: one Rust type gives the schema, the validation and the arguments.

mod args;
mod erased;
mod outputs;
mod person;
mod set;

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

pub use self::args::{parse_strict, raw_arguments};
pub use self::erased::{AnyTool, Prepared, erase};
pub use self::outputs::{Kept, Outputs, RECALL, TOOL_OUTPUT};
pub use self::person::Person;
pub use self::set::ToolSet;
use crate::id::{CallId, SessionId};
use crate::message::Binary;
use crate::permission::Subject;

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
    /// The arguments. Its doc comment is the description the model reads, its fields' doc comments
    /// describe the arguments.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name the model calls it by.
    const NAME: &'static str;

    /// What kind of effect this call has. Decided per call: `bash` is not always the same.
    fn category(&self, input: &Self::Input) -> Category;

    /// What this call is about, for rules and people; the category alone when the tool has nothing to add.
    fn judge(&self, input: &Self::Input) -> Judgement {
        Judgement::of(self.category(input))
    }

    /// What this call would do, for a person who is asked about it: a diff, a command. May read the disk.
    fn preview(&self, _input: &Self::Input, _execution: &ExecutionContext) -> Option<String> {
        None
    }

    /// How it behaves beside other calls, and how long it may take.
    fn traits(&self) -> ToolTraits {
        ToolTraits::default()
    }

    /// Takes arguments that are not JSON, for tools that declare [`ToolTraits::raw_text`].
    /// Every other tool refuses them before this is asked.
    fn take_raw(&self, _raw: &str) -> Option<Self::Input> {
        None
    }

    /// Does the work. Must stop soon after `cx.cancel` fires and must leave no process behind.
    fn run(
        &self,
        input: Self::Input,
        cx: ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// What a tool says about one call before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The kind of effect.
    pub category: Category,
    /// What it is about, part by part.
    pub subjects: Vec<Subject>,
    /// Why it will not be done at all.
    pub refusal: Option<String>,
    /// Why somebody should look at it first, each in a few words about "it".
    pub reasons: Vec<String>,
}

impl Judgement {
    /// Only the kind of effect.
    pub fn of(category: Category) -> Self {
        Self {
            category,
            subjects: Vec::new(),
            refusal: None,
            reasons: Vec::new(),
        }
    }
}

/// How a tool behaves beside other calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolTraits {
    /// Never overlaps with any other call, whatever the scheduling.
    pub exclusive: bool,
    /// Accepts arguments that are not JSON.
    pub raw_text: bool,
    /// How long a call may take before the loop gives up on it. The loop's default when `None`.
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
    /// The name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the arguments, shared by all that offer the tool.
    pub schema: Arc<Value>,
}

/// What a call may know of where it runs. Built once at the start of a turn, then fixed.
#[derive(Debug, Clone, Default)]
pub struct ExecutionContext {
    /// The working directory.
    pub cwd: PathBuf,
    /// The environment a child process starts from.
    pub env: BTreeMap<String, String>,
    /// The session the call belongs to.
    pub session: Option<SessionId>,
}

/// What a running call is given. It does not carry the session.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call_id: CallId,
    /// Fires when the user stops the turn or the call times out.
    pub cancel: CancellationToken,
    /// Where it runs.
    pub execution: Arc<ExecutionContext>,
    /// Takes live output.
    pub progress: Progress,
    /// Who can be asked.
    pub person: Person,
}

/// Takes live output of a running call. Never blocks.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Hands each piece to `take`, which must not block.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Drops everything.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Shows a piece of output.
    pub fn send(&self, piece: &str) {
        (self.0)(piece);
    }
}

/// What a call answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// What people and programs read.
    pub details: Option<Value>,
    /// Images for the model, beside the text.
    pub images: Vec<Binary>,
    /// The model sees it as a failure, although the tool itself worked: a command that exited non-zero.
    pub failed: bool,
    /// Ends the turn with this as its final answer.
    pub ends_turn: Option<String>,
    /// What the user should know about the call.
    pub warning: Option<String>,
    /// Where the whole output is, when the tool kept it itself because the content is not all of it.
    pub kept: Option<Kept>,
}

impl ToolOutput {
    /// Plain text for the model.
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// The same output with details for people.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// Why a call failed. Every variant is told to the model, and the loop goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments are wrong. The text names the field and what would be right.
    #[error("{0}")]
    Invalid(String),
    /// It may work when tried again.
    #[error("{0}")]
    Transient(String),
    /// It will not work when tried again.
    #[error("{0}")]
    Permanent(String),
    /// It was stopped from outside; the text is the output so far.
    #[error("{0}")]
    Canceled(String),
}

impl ToolError {
    /// The word stored with the result.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Transient(_) => "transient",
            Self::Permanent(_) => "permanent",
            Self::Canceled(_) => "canceled",
        }
    }
}
