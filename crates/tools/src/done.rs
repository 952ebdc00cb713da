//! `done`: the agent reports that it has finished.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

/// Ends the task. Call it once, alone, when everything asked for is done and checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DoneInput {
    /// The final answer for the user.
    message: String,
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
        if input.message.trim().is_empty() {
            return Err(ToolError::Invalid(
                "`message` is empty; it is the answer the user gets.".to_owned(),
            ));
        }
        Ok(ToolOutput {
            ends_turn: Some(input.message),
            ..ToolOutput::text("Task complete")
        })
    }
}
