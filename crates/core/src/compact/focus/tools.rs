//! The two tools of focus.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FocusState, Open, Stretch};
use crate::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};

/// Start to investigate something. What you read and try until `complete_focus` may later be replaced by the
/// summary you give there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartFocusInput {
    /// The subject of the investigation, in a few words.
    scope: String,
}

/// End the investigation that `start_focus` started. Say what you have learned: it is kept for the rest of
/// the session, and may replace everything since `start_focus`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteFocusInput {
    /// Your findings: facts, names, paths, decisions, and what did not work.
    summary: String,
}

/// `start_focus`.
pub struct StartFocus(pub Arc<FocusState>);

/// `complete_focus`.
pub struct CompleteFocus(pub Arc<FocusState>);

impl Tool for StartFocus {
    type Input = StartFocusInput;
    const NAME: &'static str = "start_focus";

    fn category(&self, _: &StartFocusInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: StartFocusInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut inner = self.0.inner();
        if inner.open.is_some() {
            let text = "[error] A focus session is already active. Call complete_focus first.";
            return Err(ToolError::Permanent(text.to_owned()));
        }
        let said = format!("Focus: {}", input.scope);
        inner.open = Some(Open {
            scope: input.scope,
            call: cx.call_id,
        });
        Ok(ToolOutput::text(said))
    }
}

impl Tool for CompleteFocus {
    type Input = CompleteFocusInput;
    const NAME: &'static str = "complete_focus";

    fn category(&self, _: &CompleteFocusInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: CompleteFocusInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.summary.trim().is_empty() {
            return Err(ToolError::Invalid(
                "summary: must say what you have learned".to_owned(),
            ));
        }
        let mut inner = self.0.inner();
        let Some(open) = inner.open.take() else {
            let text = "[error] No active focus session. Call start_focus first.";
            return Err(ToolError::Permanent(text.to_owned()));
        };
        let summary = inner.knowledge.learn(&open.scope, &input.summary);
        inner.over.push(Stretch {
            from: open.call,
            to: cx.call_id,
            summary,
        });
        Ok(ToolOutput::text(format!(
            "Kept what was learned about: {}",
            open.scope
        )))
    }
}
