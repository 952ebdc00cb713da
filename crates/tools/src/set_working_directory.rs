//! `set_working_directory`: changes the working directory of the next turn.

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::disk;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};

/// Changes the working directory from the user's next message on, not for calls of this turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetWorkingDirectoryInput {
    #[serde(alias = "directory", alias = "dir")]
    path: String,
}

/// The tool.
pub(crate) struct SetWorkingDirectory {
    pub(crate) workspace: Workspace,
}

impl Tool for SetWorkingDirectory {
    type Input = SetWorkingDirectoryInput;
    const NAME: &'static str = "set_working_directory";

    fn category(&self, _: &SetWorkingDirectoryInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &SetWorkingDirectoryInput) -> Judgement {
        self.workspace.reading(&input.path)
    }

    async fn run(&self, input: SetWorkingDirectoryInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let path = resolve_path(&cx, &input.path)?;
        let workspace = self.workspace.clone();
        blocking::change(move || {
            let name = shown(&cx.execution.cwd, &path);
            // Only where files may be used: changing the folder must not bypass that.
            let (real, kind) = disk::real(&workspace.files(), &path).map_err(|error| error.about(&name))?;
            if kind != FileType::Directory {
                return Err(ToolError::Invalid(format!("`path` is not a folder: {name}")));
            }
            let content = format!("The next turn will start in {}.", real.display());
            let details = json!({ "path": real.display().to_string() });
            workspace.working_directory().set_next(real);
            Ok(ToolOutput::text(content).with_details(details))
        })
        .await
    }
}
