//! `done`: the agent reports that it has finished.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::null_is_default;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

/// Ends the task. Call it once, alone, when everything asked for is done and checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DoneInput {
    /// The final answer for the user; by default the text before this call.
    #[serde(default, deserialize_with = "null_is_default")]
    message: String,
    /// Claims about what was verified, each with the command that shows it.
    #[serde(default, deserialize_with = "null_is_default")]
    #[allow(dead_code, reason = "read from the record")]
    claims: Vec<Claim>,
}

/// A verified statement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read from the record")]
pub(crate) struct Claim {
    text: String,
    command: String,
    #[serde(default)]
    exit_code: i64,
}

/// The tool.
pub(crate) struct Done;

impl Tool for Done {
    type Input = DoneInput;
    const NAME: &'static str = "done";

    /// Not a read, so that it waits for the calls before it.
    fn category(&self, _: &DoneInput) -> Category {
        Category::Write
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            exclusive: true,
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: DoneInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput {
            ends_turn: Some(input.message),
            ..ToolOutput::text("Task complete")
        })
    }
}
