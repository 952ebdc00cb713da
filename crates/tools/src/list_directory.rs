//! `list_directory`: lists one folder.

use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::disk::{self, DiskError};
use windlass_core::text;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};
use windlass_sandbox::{OpenMode, Roots};

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
    pub(crate) workspace: Workspace,
}

impl Tool for ListDirectory {
    type Input = ListDirectoryInput;
    const NAME: &'static str = "list_directory";

    fn category(&self, _: &ListDirectoryInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &ListDirectoryInput) -> Judgement {
        self.workspace.reading(input.path.as_deref().unwrap_or("."))
    }

    async fn run(&self, input: ListDirectoryInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let path = resolve_path(&cx, input.path.as_deref().unwrap_or("."))?;
        let (cancel, roots) = (cx.cancel.clone(), self.workspace.files());
        let work = move || {
            let name = shown(&cx.execution.cwd, &path);
            match disk::real(&roots, &path) {
                Ok((real, FileType::Directory)) => list(&roots, &real, &name, &|| cx.cancel.is_cancelled())
                    .map_err(|error| DiskError::from(error).about(&name)),
                Ok(_) => Err(ToolError::Permanent(format!(
                    "{name} is a file; use read_file to read it."
                ))),
                Err(error) => Err(error.about(&name)),
            }
        };
        blocking::look(&cancel, work).await
    }
}

fn list(roots: &Roots, real: &Path, name: &str, stopped: &dyn Fn() -> bool) -> io::Result<ToolOutput> {
    let mut entries = Vec::new();
    // Through a handle: the folder that is read is the folder that was checked.
    let folder = roots.open(real, OpenMode::Read).map_err(io::Error::other)?;
    for entry in fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))? {
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
