//! TOOL-2: the `skill` tool.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};

use super::activation::Activation;
use super::{SkillState, unknown};

/// Loads a skill: instructions for a particular task. Follow them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillInput {
    /// Name from the list of skills.
    #[serde(alias = "skill", alias = "command")]
    name: String,
    #[serde(default, alias = "args")]
    arguments: Option<String>,
}

/// The tool that brings the text of a skill.
pub(super) struct SkillTool(pub(super) Arc<SkillState>);

impl Tool for SkillTool {
    type Input = SkillInput;
    const NAME: &'static str = "skill";

    /// Loading a text changes nothing: commands in it, and the calls it leads to, are judged one by one.
    fn category(&self, _: &SkillInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: SkillInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let skill = {
            let inner = self.0.lock();
            let skill = inner.catalog.find(&input.name).cloned();
            skill.ok_or_else(|| {
                ToolError::Invalid(format!("`name`: {}", unknown(&inner.catalog, &input.name)))
            })?
        };
        if !skill.options.by_model {
            return Err(ToolError::Invalid(format!(
                "`name`: only the user can start `{}`, with /{}",
                skill.name, skill.name
            )));
        }
        let arguments = input.arguments.unwrap_or_default();
        let activation = Activation::new(&self.0, &skill, arguments.trim());
        let text = activation.text(&cx.cancel).await;
        if skill.options.fork && skill.is_trusted {
            return activation.fork(&text, &cx).await;
        }
        let content = format!(
            "<skill_content name=\"{}\">\n{text}\n</skill_content>",
            skill.name
        );
        let is_known = self
            .0
            .lock()
            .loaded
            .iter()
            .any(|(name, known)| *name == skill.name && *known == text);
        activation.activate(&text);
        if is_known {
            let text = format!(
                "The skill `{}` is in this conversation already, with this text.",
                skill.name
            );
            return Ok(ToolOutput::text(text));
        }
        Ok(ToolOutput::text(content))
    }
}
