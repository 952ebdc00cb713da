//! Parts of a message, and their storage format.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{Fragment, FragmentSource};
use crate::clock::Timestamp;
use crate::id::CallId;

/// One part of a message, stored as `{"type": …, "data": {…}}`.
///
/// A part that this version does not know is kept as its exact text and written back unchanged, so an older
/// Windlass never damages a newer one's history.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Part {
    /// Plain text: in a user message, the user's own words.
    Text(Text),
    /// Text that the runtime added, with its source.
    Context(Fragment),
    /// Reasoning of the model, with the data its provider needs to recognize it.
    Reasoning(Reasoning),
    /// A tool call of the model.
    ToolCall(ToolCall),
    /// Result of a tool call.
    ToolResult(ToolResult),
    /// Reason the message ended.
    Finish(Finish),
    /// A file carried in the message.
    Binary(Binary),
    /// An image by URL.
    ImageUrl(ImageUrl),
    /// A summary that replaces earlier messages.
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
    /// The readable text; empty if the provider returned only a redacted form.
    pub text: String,
    /// The provider's signature over the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The opaque form of reasoning that the provider does not disclose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Id of the call, from the provider.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the model wrote them: intended as JSON, but not always valid.
    pub input: String,
    /// False if the reply ended inside this call. Such a call is never executed.
    pub finished: bool,
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Text for the model.
    pub content: String,
    /// Details for people and programs: exit code, diff, counts. Never sent to a model.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::lenient_option"
    )]
    pub metadata: Option<serde_json::Value>,
    /// True if the call failed.
    pub is_error: bool,
    /// Images for the model, beside the text. A model that cannot read images gets their names instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Binary>,
}

/// Reason and time of a message's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// The reason.
    pub reason: FinishReason,
    /// Time of the end.
    pub time: Timestamp,
}

/// Reason a message, or a whole turn, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model had nothing left to do.
    EndTurn,
    /// The model called tools.
    ToolUse,
    /// The reply was cut off at the output limit.
    MaxTokens,
    /// The model or its provider refused.
    Refusal,
    /// The user stopped the turn.
    Canceled,
    /// A tool call was denied.
    PermissionDenied,
    /// The turn reached its iteration limit.
    MaxIterations,
    /// The program was stopped during the turn.
    Interrupted,
    /// An error occurred.
    Error,
}

/// A file carried in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binary {
    /// Path the file came from.
    pub path: String,
    /// Media type.
    pub mime: String,
    /// Bytes in base64.
    pub data: String,
}

/// An image by URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageUrl {
    /// The URL, `https:` or `data:`.
    pub url: String,
    /// Level of detail of the image, in the provider's terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A summary that replaces earlier messages, which stay in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    /// The summary the model reads.
    pub summary: String,
    /// Tokens of the replaced messages.
    pub tokens_before: u64,
    /// Tokens of the context after the compaction.
    pub tokens_after: u64,
}

/// A compressed tool output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compressed {
    /// The text the model reads.
    pub text: String,
    /// Reference for reading the original.
    pub reference: String,
    /// Tokens of the original.
    pub tokens_before: u64,
    /// Tokens of the text.
    pub tokens_after: u64,
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into() })
    }

    /// Creates a part with text that the runtime adds.
    pub fn context(source: FragmentSource, text: impl Into<String>) -> Self {
        Self::Context(Fragment::new(source, text))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        // `RawValue` does not implement equality; two parts are equal if their stored texts are.
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
        // A known name with an unknown shape is also from another version.
        Ok(known.unwrap_or(Self::Unknown(raw)))
    }
}
