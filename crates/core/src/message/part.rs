//! The parts a message is made of, and how they are stored.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{Fragment, FragmentSource};
use crate::clock::Timestamp;
use crate::id::CallId;

/// One part of a message, stored as `{"type": …, "data": {…}}`.
///
/// A part this version does not know is kept as its exact text and written back unchanged, so an
/// older Windlass never damages a newer one's history.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Part {
    /// Plain text: in a user message, the user's own words.
    Text(Text),
    /// Text that the runtime added, with its source.
    Context(Fragment),
    /// What the model thought, with what its provider needs to recognise it again.
    Reasoning(Reasoning),
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
    /// Why the message ended.
    Finish(Finish),
    /// A file carried in the message.
    Binary(Binary),
    /// An image by address.
    ImageUrl(ImageUrl),
    /// A summary that stands for earlier messages.
    Compaction(Compaction),
    /// A compressed tool output that refers to its original.
    Compressed(Compressed),
    /// A part of a newer version, as it was read.
    #[serde(untagged)]
    #[schemars(skip)]
    Unknown(Box<RawValue>),
}

/// Plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// Reasoning, forwarded verbatim to the provider it came from and to no other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// The readable text; empty when the provider only gave a redacted form.
    pub text: String,
    /// The provider's signature over the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The opaque form of reasoning the provider keeps to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: meant to be JSON, not always JSON.
    pub input: String,
    /// False when the reply ended inside this call. Such a call is never executed.
    pub finished: bool,
}

/// The answer to one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// What the model reads.
    pub content: String,
    /// What people and programs read: exit code, diff, counts. Never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Images that go to the model with the text. A model that reads none is told their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Binary>,
}

/// Why and when a message ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// The reason.
    pub reason: FinishReason,
    /// When it ended.
    pub time: Timestamp,
}

/// Why a message, or a whole turn, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model had nothing left to do.
    EndTurn,
    /// The model asked for tools.
    ToolUse,
    /// The reply was cut at the output limit.
    MaxTokens,
    /// The model or its provider refused.
    Refusal,
    /// The user stopped it.
    Canceled,
    /// A tool call was denied.
    PermissionDenied,
    /// The turn reached its iteration limit.
    MaxIterations,
    /// The program was stopped meanwhile.
    Interrupted,
    /// Something failed.
    Error,
}

/// A file carried in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binary {
    /// Where it came from.
    pub path: String,
    /// Its media type.
    pub mime: String,
    /// Its bytes in base64.
    pub data: String,
}

/// An image by address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageUrl {
    /// The address, `https:` or `data:`.
    pub url: String,
    /// How closely the model should look, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A summary that stands for earlier messages, which stay in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    /// The summary the model reads.
    pub summary: String,
    /// Tokens of what it replaces.
    pub tokens_before: u64,
    /// Tokens of the context after it.
    pub tokens_after: u64,
}

/// A compressed tool output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compressed {
    /// The text the model reads.
    pub text: String,
    /// Where the original can be read.
    pub reference: String,
    /// Tokens of the original.
    pub tokens_before: u64,
    /// Tokens of the text.
    pub tokens_after: u64,
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into() })
    }

    /// Text that the runtime adds.
    pub fn context(source: FragmentSource, text: impl Into<String>) -> Self {
        Self::Context(Fragment::new(source, text))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        // `RawValue` has no equality of its own; stored text is what equality means for parts.
        match (serde_json::to_string(self), serde_json::to_string(other)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            r#type: String,
            data: Option<Box<RawValue>>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Ok(Head {
            r#type,
            data: Some(data),
        }) = serde_json::from_str(raw.get())
        else {
            return Ok(Self::Unknown(raw));
        };
        let data = data.get();
        let known = match r#type.as_str() {
            "text" => serde_json::from_str(data).map(Self::Text),
            "context" => serde_json::from_str(data).map(Self::Context),
            "reasoning" => serde_json::from_str(data).map(Self::Reasoning),
            "tool_call" => serde_json::from_str(data).map(Self::ToolCall),
            "tool_result" => serde_json::from_str(data).map(Self::ToolResult),
            "finish" => serde_json::from_str(data).map(Self::Finish),
            "binary" => serde_json::from_str(data).map(Self::Binary),
            "image_url" => serde_json::from_str(data).map(Self::ImageUrl),
            "compaction" => serde_json::from_str(data).map(Self::Compaction),
            "compressed" => serde_json::from_str(data).map(Self::Compressed),
            _ => return Ok(Self::Unknown(raw)),
        };
        // A known name with a shape this version does not understand is also from another version.
        Ok(known.unwrap_or(Self::Unknown(raw)))
    }
}
