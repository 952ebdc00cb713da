//! What happened, as front ends, logs and programs hear it.
//!
//! One JSON form serves `--output-format stream-json`, the server's event stream and replay. The
//! published schema is `docs/events.schema.json`.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compact::Fidelity;
use crate::id::{CallId, MessageId, SessionId};
use crate::message::{FinishReason, Message};
use crate::model::Usage;
use crate::permission::Proposal;
use crate::provider::ProviderErrorKind;
use crate::tool::Category;

/// The version of the event form. It changes when a reader of the old form would misread the new one.
pub const EVENT_VERSION: u32 = 1;

/// An event with its place in the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// [`EVENT_VERSION`].
    pub v: u32,
    /// The session.
    pub session: SessionId,
    /// Rises by one with every state event. A live event repeats the number of the last state event.
    pub seq: u64,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that happened in a turn.
///
/// *State* events make the record and are never lost; *live* events ([`Event::is_live`]) are for
/// showing and may be. Of one iteration they come in this order: `reasoning`, `text` (not for a final
/// answer without tools), then per call `step_start`, `tool_call`, `tool_result`, `step_complete`. A turn
/// ends with exactly one of `final`, `canceled`, `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A turn begins.
    Start {
        /// The provider's configured name.
        provider: String,
        /// The model.
        model: String,
    },
    /// A message was added to the history, or replaced when its id is known.
    Message {
        /// The message.
        #[serde(deserialize_with = "message_from_value")]
        message: Arc<Message>,
    },
    /// What the model thought in this iteration.
    Reasoning {
        /// The text.
        text: String,
    },
    /// What the model said beside its tool calls.
    Text {
        /// The text.
        text: String,
    },
    /// A call begins.
    StepStart {
        /// The call.
        call_id: CallId,
        /// A short line for people.
        title: String,
        /// Its place in the iteration, from 1.
        number: u32,
    },
    /// What is called.
    ToolCall {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// The arguments, or `{"_raw": …}` when they are not JSON.
        args: Value,
    },
    /// What the tool answered.
    ToolResult {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// What the model reads.
        content: String,
        /// Whether it failed.
        is_error: bool,
        /// What people and programs read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A call ended.
    StepComplete {
        /// The call.
        call_id: CallId,
        /// How.
        status: StepStatus,
        /// How long it took.
        duration_ms: u64,
    },
    /// What a model call used and cost.
    Usage {
        /// Tokens of the call.
        usage: Usage,
        /// US dollars of the call; absent when the model's prices are unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// What the call was for.
        cause: String,
    },
    /// A request failed and will be sent again.
    Retry {
        /// Which retry this is, from 1.
        attempt: u32,
        /// How many there can be.
        max_attempts: u32,
        /// How long until it is sent.
        delay_ms: u64,
        /// What went wrong.
        kind: ProviderErrorKind,
        /// What went wrong, in the provider's words.
        message: String,
        /// True when live deltas of this iteration are void: the reply starts over.
        discard: bool,
    },
    /// Something the user should know; the turn goes on.
    Warning {
        /// What.
        message: String,
    },
    /// Something failed or a limit was hit; the terminal event follows.
    Error {
        /// What.
        message: String,
    },
    /// The answer. Terminal.
    Final {
        /// The text.
        content: String,
        /// Why the turn ended.
        finish: FinishReason,
    },
    /// The user stopped the turn. Terminal.
    Canceled {
        /// What was going on.
        message: String,
    },
    /// The turn could not be finished. Terminal.
    Failed {
        /// Why, for programs.
        reason: FailureKind,
        /// Why, for people.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Why the turn ended.
        finish: FinishReason,
    },
    /// A piece of the reply. Live.
    Delta {
        /// Of what.
        kind: DeltaKind,
        /// The piece.
        text: String,
    },
    /// A piece of a running tool's output. Live.
    ToolOutput {
        /// The call.
        call_id: CallId,
        /// The piece.
        text: String,
    },
    /// What is going on. Live.
    Status {
        /// A short line.
        text: String,
    },
    /// Something that waits: for a person, or for its turn.
    #[serde(untagged)]
    Waiting(Waiting),
    /// Something about the conversation as a whole.
    #[serde(untagged)]
    Session(SessionEvent),
}

/// What became of a conversation as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The context is about to be made smaller. A live event.
    Compacting {
        /// Tokens before.
        before: u64,
    },
    /// The context was made smaller.
    Compaction {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
        /// The messages of the conversation from here on, in order; the others are still in the record.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<MessageId>,
        /// What became of the messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// The conversation goes on from how it stood before a message. What came after is still in the record.
    Rewind {
        /// The number of the last entry that counts.
        to: u64,
    },
    /// The session has a title now.
    Title {
        /// The title.
        title: String,
    },
    /// What the session is to reach from here on. Models are not told.
    Goal {
        /// The goal, as it was given; absent when there is none any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The goal was reached. Nothing ends because of it.
    GoalCompleted {
        /// The goal, as it was given.
        text: String,
        /// How that is known.
        how: GoalCompletion,
    },
}

/// How it is known that a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalCompletion {
    /// The user said so, by a command.
    Command,
    /// An answer said so, in words that are set up for it.
    Phrase,
}

/// What waits: a call for a person's answer, an input for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Waiting {
    /// A person is asked whether a call may run. Comes before the calls of its iteration begin.
    PermissionRequest {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The kind of effect.
        category: Category,
        /// What it is about, part by part: commands, paths, hosts.
        subjects: Vec<String>,
        /// Why it asks, each in a few words about "it".
        reasons: Vec<String>,
        /// What would happen: the command, the diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
    },
    /// The answer to a permission request.
    PermissionAnswer {
        /// The call.
        call_id: CallId,
        /// Whether it runs.
        allowed: bool,
    },
    /// A running call asks the user something.
    Question {
        /// The call.
        call_id: CallId,
        /// What is asked.
        text: String,
        /// Answers to choose from; any other text is an answer, too.
        options: Vec<String>,
    },
    /// The inputs that wait for the session to be free, the next one first.
    Queue {
        /// All of them.
        #[serde(deserialize_with = "messages_from_value")]
        messages: Vec<Arc<Message>>,
        /// What was said to the running turn and is not heard by it yet. It comes first when the turn ends before that.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "messages_from_value"
        )]
        steers: Vec<Arc<Message>>,
    },
}

/// What a live piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The text of the reply.
    Text,
    /// The model's reasoning.
    Thinking,
    /// A tool call's arguments.
    ToolInput,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It worked.
    Completed,
    /// It failed, was refused or was stopped.
    Error,
}

/// Why a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider failed; its own kind tells how.
    Provider(ProviderErrorKind),
    /// A call was denied.
    PermissionDenied,
    /// The cost limit was reached.
    CostLimit,
    /// The model repeated itself.
    Repetition,
    /// The reply was cut too often.
    MaxTokens,
    /// The model answered nothing.
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
    /// The question about a call.
    pub(crate) fn permission_request(proposal: &Proposal) -> Self {
        Self::Waiting(Waiting::PermissionRequest {
            call_id: proposal.call_id.clone(),
            tool: proposal.tool.clone(),
            category: proposal.category,
            subjects: proposal
                .subjects
                .iter()
                .map(|subject| subject.text().to_owned())
                .collect(),
            reasons: proposal.reasons.clone(),
            preview: proposal.preview.clone(),
        })
    }

    /// Whether this event is only for showing.
    pub fn is_live(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::ToolOutput { .. }
                | Self::Status { .. }
                | Self::Session(SessionEvent::Compacting { .. })
        )
    }

    /// Whether this event ends the turn.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Final { .. } | Self::Canceled { .. } | Self::Failed { .. }
        )
    }
}

/// Takes the events of a turn.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Takes a live event. Must not block; may drop it.
    fn live(&self, event: Event);

    /// Takes a state event. Returns when it is safe to act on it.
    ///
    /// # Errors
    /// When the event could not be recorded. The turn then ends.
    async fn record(&self, event: Event) -> Result<(), SinkError>;
}

/// A state event could not be recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the record could not be written: {0}")]
pub struct SinkError(pub String);

/// A message holds raw JSON, which serde's buffering for tagged enums cannot carry; a `Value` can.
fn message_from_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<Message>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    serde_json::from_value(value)
        .map(Arc::new)
        .map_err(serde::de::Error::custom)
}

fn messages_from_value<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Arc<Message>>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}

/// The JSON Schema of [`Envelope`].
pub fn schema() -> Value {
    schemars::schema_for!(Envelope).to_value()
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
