//! `write_file`: a whole new file, or a whole new content.

use std::fs;
use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::diff::Change;
use crate::disk::{self, DiskError, Stamp};
use crate::ground::Ground;
use crate::ledger::FileLedger;
use crate::path::{resolve_path, shown};
use crate::text;

/// An older content that is longer is not compared with the new one.
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
    pub(crate) ground: Ground,
}

impl Tool for WriteFile {
    type Input = WriteFileInput;
    const NAME: &'static str = "write_file";

    fn category(&self, _: &WriteFileInput) -> Category {
        Category::Write
    }

    fn judge(&self, input: &WriteFileInput) -> Judgement {
        self.ground.writing(&input.path)
    }

    async fn run(&self, input: WriteFileInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.path.ends_with('/') {
            return Err(ToolError::Invalid(format!(
                "`path` names a folder: {}",
                input.path
            )));
        }
        let path = resolve_path(&cx, &input.path)?;
        let ledger = self.ledger.clone();
        blocking::change(move || {
            let name = shown(&cx.execution.cwd, &path);
            let written = match disk::existing(&path) {
                Ok(Some(real)) => update(&real, &name, &input.content, &ledger),
                Ok(None) => create(&path, &name, &input.content, &ledger).map(Ok),
                Err(error) => Err(error),
            };
            written.map_err(|error| error.about(&name))?
        })
        .await
    }
}

fn create(path: &Path, name: &str, content: &str, ledger: &FileLedger) -> Result<ToolOutput, DiskError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let stamp = disk::replace(path, None, content.as_bytes())?;
    ledger.note(path.canonicalize()?, stamp);
    let change = Change::between(name, "", content);
    let lines = text::count(content.lines().count(), "line");
    Ok(ToolOutput::text(format!("Created {name} ({lines})")).with_details(change.details(name)))
}

fn update(
    real: &Path,
    name: &str,
    content: &str,
    ledger: &FileLedger,
) -> Result<Result<ToolOutput, ToolError>, DiskError> {
    let (file, data) = disk::open(real)?;
    let stamp = Stamp::of(&data);
    if ledger.is_stale(real, stamp) {
        return Ok(Err(stale(name)));
    }
    let mut old = Vec::new();
    file.take(MAX_COMPARED + 1).read_to_end(&mut old)?;
    if old == content.as_bytes() {
        ledger.note(real.to_owned(), stamp);
        return Ok(Ok(ToolOutput::text(format!(
            "{name} already has this content; nothing was written."
        ))));
    }
    let stamp = disk::replace(real, Some(stamp), content.as_bytes())?;
    ledger.note(real.to_owned(), stamp);
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

/// The answer for a file that somebody else changed.
pub(crate) fn stale(name: &str) -> ToolError {
    ToolError::Permanent(format!(
        "{name} was changed on disk after you read it. Read it again, then change it."
    ))
}
