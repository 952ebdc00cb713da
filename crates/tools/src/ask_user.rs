//! `ask_user`: asks the user a question.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::permission::Question;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

use crate::arguments::null_is_default;

const MAX_OPTIONS: usize = 9;
/// Time limit for an answer; long enough that the user never has to hurry.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 60 * 60);

/// Asks the user and waits for the answer. Only for what neither the files nor the task can tell you; ask one thing at
/// a time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskUserInput {
    question: String,
    /// Answers to choose from, at most 9. The user may also answer something else.
    #[serde(default, deserialize_with = "null_is_default")]
    options: Vec<String>,
}

/// The tool.
pub(crate) struct AskUser;

impl Tool for AskUser {
    type Input = AskUserInput;
    const NAME: &'static str = "ask_user";

    fn category(&self, _: &AskUserInput) -> Category {
        Category::Read
    }

    fn traits(&self) -> ToolTraits {
        // With two questions at once, the answers could be mixed up.
        ToolTraits {
            exclusive: true,
            timeout: Some(PATIENCE),
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: AskUserInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.question.trim().is_empty() {
            return Err(ToolError::Invalid("`question` is empty.".to_owned()));
        }
        if input.options.len() > MAX_OPTIONS {
            return Err(ToolError::Invalid(format!(
                "`options` has {} entries; at most {MAX_OPTIONS} can be shown.",
                input.options.len()
            )));
        }
        let question = Question {
            text: input.question,
            options: input.options,
        };
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
            answer = cx.person.ask(&question) => answer,
        };
        let details = json!({ "question": question.text, "answer": answer });
        let content = match answer {
            Some(answer) if answer.trim().is_empty() => "(the user gave no answer)".to_owned(),
            Some(answer) => answer,
            None => "There is no user to answer. Decide yourself, and state your assumptions in your answer."
                .to_owned(),
        };
        Ok(ToolOutput::text(content).with_details(details))
    }
}
