//! `list_directory`: what is in one folder.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::ground::Ground;
use crate::path::{resolve_path, shown};
use crate::text;

const MAX_ENTRIES: usize = 500;

/// Lists a folder: its folders end in `/`, its files have a size.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListDirectoryInput {
    /// The working directory by default.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
}

/// The tool.
pub(crate) struct ListDirectory {
    pub(crate) ground: Ground,
}

impl Tool for ListDirectory {
    type Input = ListDirectoryInput;
    const NAME: &'static str = "list_directory";

    fn category(&self, _: &ListDirectoryInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &ListDirectoryInput) -> Judgement {
        self.ground.reading(input.path.as_deref().unwrap_or("."))
    }

    async fn run(&self, input: ListDirectoryInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let path = resolve_path(&cx, input.path.as_deref().unwrap_or("."))?;
        let cancel = cx.cancel.clone();
        let work = move || {
            let name = shown(&cx.execution.cwd, &path);
            list(&path, &name, &|| cx.cancel.is_cancelled()).map_err(|error| refused(&error, &path, &name))
        };
        blocking::look(&cancel, work).await
    }
}

fn refused(error: &io::Error, path: &Path, name: &str) -> ToolError {
    ToolError::Permanent(match error.kind() {
        io::ErrorKind::NotFound => format!("{name} does not exist."),
        io::ErrorKind::NotADirectory if path.is_file() => format!("{name} is a file; read_file shows it."),
        _ => format!("{name}: {error}"),
    })
}

fn list(path: &Path, name: &str, stopped: &dyn Fn() -> bool) -> io::Result<ToolOutput> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        if stopped() {
            break;
        }
        let entry = entry?;
        if entry.file_name() != ".git" {
            entries.push((entry.file_name(), entry));
        }
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let total = entries.len();
    let lines: Vec<String> = entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|(_, entry)| line(entry))
        .collect();
    let mut content = if lines.is_empty() {
        format!("({name} is empty)")
    } else {
        lines.join("\n")
    };
    if total > MAX_ENTRIES {
        content.push_str(&format!("\n[{} more entries left out]", total - MAX_ENTRIES));
    }
    Ok(ToolOutput::text(content).with_details(json!({ "path": name, "entries": total })))
}

fn line(entry: &DirEntry) -> String {
    let name = entry.file_name().to_string_lossy().into_owned();
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => format!("{name}/"),
        Ok(kind) if kind.is_symlink() => match fs::read_link(entry.path()) {
            Ok(target) => format!("{name} -> {}", target.display()),
            Err(_) => name,
        },
        Ok(kind) if kind.is_file() => match entry.metadata() {
            Ok(data) => format!("{name} ({})", text::size(data.len())),
            Err(_) => name,
        },
        _ => format!("{name} (special)"),
    }
}
