//! `write_file`: creates a file, or replaces its whole content.

use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::disk::{self, DiskError, Opened, Stamp, Target};
use crate::ledger::FileLedger;
use windlass_checkpoint::diff::Change;
use windlass_core::text;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{path_in, resolve_path, shown};
use windlass_sandbox::{Place, Roots};

/// Maximum size of the old content that is compared with the new one.
const MAX_COMPARED: u64 = 8_000_000;

/// Writes a whole file and makes its folders. Use edit_file to change part of a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFileInput {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    #[serde(alias = "contents", alias = "text")]
    content: String,
}

/// The tool.
pub(crate) struct WriteFile {
    pub(crate) ledger: FileLedger,
    pub(crate) workspace: Workspace,
}

impl Tool for WriteFile {
    type Input = WriteFileInput;
    const NAME: &'static str = "write_file";

    fn category(&self, _: &WriteFileInput) -> Category {
        Category::Write
    }

    fn judge(&self, input: &WriteFileInput) -> Judgement {
        self.workspace.writing(&input.path)
    }

    fn preview(&self, input: &WriteFileInput, execution: &ExecutionContext) -> Option<String> {
        let path = path_in(execution, &input.path).ok()?;
        let old = match disk::target(&self.workspace.files_at(&input.path), &path) {
            Ok(Target::There(found)) => {
                let mut old = Vec::new();
                found.1.file.take(MAX_COMPARED).read_to_end(&mut old).ok()?;
                String::from_utf8(old).ok()?
            }
            _ => String::new(),
        };
        Some(Change::between(&shown(&execution.cwd, &path), &old, &input.content).diff())
    }

    async fn run(&self, input: WriteFileInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.path.ends_with('/') {
            return Err(ToolError::Invalid(format!(
                "`path` names a folder: {}",
                input.path
            )));
        }
        let path = resolve_path(&cx, &input.path)?;
        self.workspace.settle(&cx).await;
        let (ledger, roots) = (self.ledger.clone(), self.workspace.files_of(&cx));
        blocking::change(move || {
            let name = shown(&cx.execution.cwd, &path);
            let written = match disk::target(&roots, &path) {
                Ok(Target::There(found)) => {
                    let (place, opened) = *found;
                    update(&place, opened, &name, &input.content, &ledger)
                }
                Ok(Target::Absent) => create(&roots, &path, &name, &input.content, &ledger).map(Ok),
                Err(error) => Err(error),
            };
            written.map_err(|error| error.about(&name))?
        })
        .await
    }
}

fn create(
    roots: &Roots,
    path: &Path,
    name: &str,
    content: &str,
    ledger: &FileLedger,
) -> Result<ToolOutput, DiskError> {
    let (real, stamp) = disk::create(roots, path, content.as_bytes())?;
    ledger.note(real, stamp);
    let change = Change::between(name, "", content);
    let lines = text::count(content.lines().count(), "line");
    Ok(ToolOutput::text(format!("Created {name} ({lines})")).with_details(change.details(name)))
}

fn update(
    place: &Place<'_>,
    opened: Opened,
    name: &str,
    content: &str,
    ledger: &FileLedger,
) -> Result<Result<ToolOutput, ToolError>, DiskError> {
    let Opened { file, data, real } = opened;
    let stamp = Stamp::of(&data);
    if ledger.is_stale(&real, stamp) {
        return Ok(Err(stale(name)));
    }
    let mut old = Vec::new();
    file.take(MAX_COMPARED + 1).read_to_end(&mut old)?;
    if old == content.as_bytes() {
        ledger.note(real, stamp);
        return Ok(Ok(ToolOutput::text(format!(
            "{name} already has this content; nothing was written."
        ))));
    }
    let stamp = disk::replace(place, stamp, content.as_bytes())?;
    ledger.note(real, stamp);
    let old = String::from_utf8(old).ok().filter(|_| data.len() <= MAX_COMPARED);
    Ok(Ok(match old {
        Some(old) => {
            let change = Change::between(name, &old, content);
            ToolOutput::text(format!("Updated {name} {}", change.counts())).with_details(change.details(name))
        }
        None => {
            let lines = text::count(content.lines().count(), "line");
            ToolOutput::text(format!("Replaced {name} ({lines})")).with_details(json!({ "path": name }))
        }
    }))
}

/// Returns the error for a file that was changed by something else.
pub(crate) fn stale(name: &str) -> ToolError {
    ToolError::Permanent(format!(
        "{name} was changed on disk after you read it. Read it again, then change it."
    ))
}
