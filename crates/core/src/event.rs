//! Events of a session, for front ends, logs and programs.
//!
//! `--output-format stream-json`, the server's event stream and replay use the same JSON format. Its
//! published schema is `docs/events.schema.json`.

mod agent;
mod goal;
mod read;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::agent::AgentEvent;
pub use self::goal::{
    CheckRun, ClaimCheck, ClaimStatus, Criterion, Evidence, GoalEvent, GoalRun, GoalState, GoalStop,
    LaterMessages, Plan, PlanStep, StepState,
};
pub use self::read::Placed;
use crate::clock::Timestamp;
use crate::compact::Fidelity;
use crate::id::{CallId, MessageId, SessionId};
use crate::message::{FinishReason, Message};
use crate::model::Usage;
use crate::permission::Proposal;
use crate::provider::ProviderErrorKind;
use crate::tool::Category;

/// Version of the event format. It changes when a reader of the old format would misread the new one.
pub const EVENT_VERSION: u32 = 1;

/// An event with its position in the session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Envelope {
    /// Format version: [`EVENT_VERSION`].
    pub v: u32,
    /// Id of the session.
    pub session: SessionId,
    /// Sequence number. It increases by one with every state event; a live event repeats the number of the
    /// last state event.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a turn.
///
/// *State* events make up the record and are never lost. *Live* events ([`Event::is_live`]) are for display
/// and may be dropped. The order within an iteration is: `reasoning`, `text` (not for a final answer without
/// tools), then per call `step_start`, `tool_call`, `tool_result`, `step_complete`. A turn ends with exactly
/// one of `final`, `canceled`, `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", remote = "Self")]
#[schemars(rename = "Event")]
pub enum Event {
    /// A turn starts.
    Start {
        /// Configured name of the provider.
        provider: String,
        /// Id of the model.
        model: String,
    },
    /// A message was added to the history, or replaced if its id already exists.
    Message {
        /// The message.
        message: Arc<Message>,
    },
    /// Reasoning of the model in this iteration.
    Reasoning {
        /// The text.
        text: String,
    },
    /// Text of the model beside its tool calls.
    Text {
        /// The text.
        text: String,
    },
    /// A call starts.
    StepStart {
        /// Id of the call.
        call_id: CallId,
        /// Short description for people.
        title: String,
        /// Position in the iteration, starting at 1.
        number: u32,
    },
    /// Tool and arguments of a call.
    ToolCall {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        name: String,
        /// Arguments, or `{"_raw": …}` if they are not JSON.
        args: Value,
    },
    /// Result of a call.
    ToolResult {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        name: String,
        /// Text for the model.
        content: String,
        /// True if the call failed.
        is_error: bool,
        /// Structured details for people and programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A call ended.
    StepComplete {
        /// Id of the call.
        call_id: CallId,
        /// Outcome of the call.
        status: StepStatus,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
    /// Tokens and cost of a model call.
    Usage {
        /// Tokens of the call.
        usage: Usage,
        /// Cost of the call in US dollars; absent if the model's prices are unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Purpose of the call.
        cause: String,
    },
    /// A request failed and will be sent again.
    Retry {
        /// Number of this retry, starting at 1.
        attempt: u32,
        /// Maximum number of retries.
        max_attempts: u32,
        /// Delay before the retry, in milliseconds.
        delay_ms: u64,
        /// Kind of the failure.
        kind: ProviderErrorKind,
        /// Error message of the provider.
        message: String,
        /// True if the live deltas of this iteration are void because the reply starts over.
        discard: bool,
    },
    /// A notice for the user; the turn continues.
    Warning {
        /// Text of the notice.
        message: String,
    },
    /// A failure or an exceeded limit; the terminal event follows.
    Error {
        /// Description of the error.
        message: String,
    },
    /// The answer. Terminal.
    Final {
        /// Text of the answer.
        content: String,
        /// Reason the turn ended.
        finish: FinishReason,
    },
    /// The user stopped the turn. Terminal.
    Canceled {
        /// Description of the interrupted work.
        message: String,
    },
    /// The turn failed. Terminal.
    Failed {
        /// Reason, for programs.
        reason: FailureKind,
        /// Reason, for people.
        message: String,
        /// Suggested fix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Reason the turn ended.
        finish: FinishReason,
    },
    /// A piece of the reply. Live.
    Delta {
        /// Kind of content the piece belongs to.
        kind: DeltaKind,
        /// Text of the piece.
        text: String,
    },
    /// A piece of a running tool's output. Live.
    ToolOutput {
        /// Id of the call.
        call_id: CallId,
        /// Text of the piece.
        text: String,
    },
    /// Current activity. Live.
    Status {
        /// Short description.
        text: String,
    },
    /// A permission request, a question, or the queue of inputs.
    #[serde(untagged)]
    Waiting(Waiting),
    /// A change to the conversation as a whole.
    #[serde(untagged)]
    Session(SessionEvent),
}

/// A change to the conversation as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The context is about to be compacted. A live event.
    Compacting {
        /// Tokens before the compaction.
        before: u64,
    },
    /// The context was compacted.
    Compaction {
        /// Tokens before the compaction.
        before: u64,
        /// Tokens after the compaction.
        after: u64,
        /// Ids of the messages of the conversation from now on, in order; the others remain in the record.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<MessageId>,
        /// Effect of the compaction on the messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// The conversation was taken back to an earlier state. Later entries remain in the record.
    Rewind {
        /// Number of the last entry that is still part of the conversation.
        to: u64,
    },
    /// The session received a title.
    Title {
        /// The title.
        title: String,
    },
    /// The goal of the session was set or cleared. Models do not see this event.
    Goal {
        /// Goal as given by the user; absent if it was cleared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// True if a command set the goal. Otherwise it comes from the user's messages.
        #[serde(default, skip_serializing_if = "is_false")]
        explicit: bool,
    },
    /// The goal was reached. This does not end anything.
    GoalCompleted {
        /// Goal as given by the user.
        text: String,
        /// Source of the completion.
        how: GoalCompletion,
    },
    /// Another server has the session: it took it over, and its turn continues there, or the session was moved to its place.
    /// Live deltas of the current iteration are void.
    Moved {
        /// Server that had the session.
        from: String,
        /// Server that has it now.
        to: String,
        /// Fence of the new owner.
        fence: u64,
        /// Time since the first server gave the session back or its lease ended, in milliseconds.
        after_ms: u64,
        /// The rebuilt folder, if the session was moved to another place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<Box<MovedFolder>>,
    },
    /// An event of a sub-agent.
    #[serde(untagged)]
    Agent(AgentEvent),
    /// Work towards the goal, its evidence, and plans.
    #[serde(untagged)]
    Work(GoalEvent),
}

impl SessionEvent {
    /// Returns a line for people about a session that moved; `None` for other events.
    pub fn moved_line(&self) -> Option<String> {
        let Self::Moved {
            from,
            to,
            after_ms,
            folder,
            ..
        } = self
        else {
            return None;
        };
        if let Some(folder) = folder {
            return Some(folder.to_string());
        }
        let seconds = after_ms / 1_000;
        Some(match from.is_empty() || from == to {
            true => format!("The turn continues on server {to} after an interruption of {seconds} s."),
            false => format!("The turn continues on server {to}; server {from} stopped {seconds} s ago."),
        })
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// DIST-5: the folder of a session that was moved to another place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedFolder {
    /// Place that had the session.
    pub from_place: String,
    /// Folder there. It is left as it is.
    pub from_folder: String,
    /// Place that has it now.
    pub place: String,
    /// Folder there.
    pub folder: String,
    /// Time of the state that the folder was rebuilt from.
    pub as_of: Timestamp,
    /// Number of files that were restored.
    pub files: u64,
    /// Parts that were not restored, one line each.
    pub left: Vec<String>,
}

impl fmt::Display for MovedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = match self.left.len() {
            0 => String::new(),
            count => format!(", without {count} that could not be restored"),
        };
        write!(
            f,
            "The session moved from {} to {}: {} has {} files as of {}{left}.",
            self.from_place,
            self.place,
            self.folder,
            self.files,
            self.as_of.minute()
        )
    }
}

/// Source of a goal's completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalCompletion {
    /// The user completed the goal with a command.
    Command,
    /// An answer contained one of the configured phrases.
    Phrase,
    /// All checks of the goal passed.
    Verified,
    /// The supervisor considers the goal reached. There was nothing to check.
    Believed,
    /// Every step of the plan is done.
    Plan,
}

/// A pending request: a call that needs the user, or an input that waits for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Waiting {
    /// The user is asked for permission to run a call. Precedes the calls of its iteration.
    PermissionRequest {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool: String,
        /// Kind of effect.
        category: Category,
        /// Subjects of the call, part by part: commands, paths, hosts.
        subjects: Vec<String>,
        /// Reasons for asking, each a clause such as "it reaches the network".
        reasons: Vec<String>,
        /// Preview of the effect: the command, the diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        /// True if the call can be allowed only this time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        once_only: bool,
        /// Number and name of the sub-agent that asks; absent if the session itself asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The answer to a permission request.
    PermissionAnswer {
        /// Id of the call.
        call_id: CallId,
        /// True if the call may run.
        allowed: bool,
    },
    /// A running call asks the user a question.
    Question {
        /// Id of the call.
        call_id: CallId,
        /// Text of the question.
        text: String,
        /// Suggested answers; any other text is also accepted.
        options: Vec<String>,
    },
    /// Inputs waiting for the session to be idle, next one first.
    Queue {
        /// All waiting inputs.
        messages: Vec<Arc<Message>>,
        /// Messages sent to the running turn that it has not read yet. If the turn ends before reading them,
        /// they come first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steers: Vec<Arc<Message>>,
    },
}

/// Kind of content a live piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// Text of the reply.
    Text,
    /// Reasoning of the model.
    Thinking,
    /// Arguments of a tool call.
    ToolInput,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// The call succeeded.
    Completed,
    /// The call failed, was refused or was stopped.
    Error,
}

/// Reason a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider failed, with the kind of its error.
    Provider(ProviderErrorKind),
    /// A call was denied.
    PermissionDenied,
    /// The cost limit was reached.
    CostLimit,
    /// The model repeated itself.
    Repetition,
    /// The reply was cut off too often.
    MaxTokens,
    /// The model returned an empty reply.
    EmptyReply,
    /// The model or its provider refused.
    Refusal,
    /// A middleware stopped the turn.
    Stopped,
    /// The record could not be written.
    Log,
    /// The program was stopped before the turn ended.
    Interrupted,
}

impl Event {
    /// Builds the permission request for a call.
    pub fn permission_request(proposal: &Proposal, cause: Option<String>) -> Self {
        Self::Waiting(Waiting::PermissionRequest {
            call_id: proposal.call_id.clone(),
            tool: proposal.tool.clone(),
            category: proposal.category,
            subjects: proposal
                .parts()
                .map(|subject| subject.text().to_owned())
                .collect(),
            reasons: proposal.reasons.iter().cloned().chain(cause).collect(),
            preview: proposal.preview.clone(),
            once_only: proposal.blocked.is_some(),
            agent: None,
        })
    }

    /// Returns true if this event is only for display.
    pub fn is_live(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::ToolOutput { .. }
                | Self::Status { .. }
                | Self::Session(SessionEvent::Compacting { .. })
                | Self::Session(SessionEvent::Agent(AgentEvent::Subagent { .. }))
        )
    }

    /// Returns true if this event ends the turn.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Final { .. } | Self::Canceled { .. } | Self::Failed { .. }
        )
    }
}

/// Receives the events of a turn.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Receives a live event. Must not block; may drop it.
    fn live(&self, event: Event);

    /// Records a state event. Returns when it is safe to act on it.
    ///
    /// # Errors
    /// Fails if the event could not be recorded. The turn then ends.
    async fn record(&self, event: Event) -> Result<(), SinkError>;
}

/// A state event could not be recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the record could not be written: {0}")]
pub struct SinkError(pub String);

/// Returns the JSON Schema of [`Envelope`].
pub fn schema() -> Value {
    schemars::schema_for!(Envelope).to_value()
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
