//! `list_directory`: lists one folder.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::disk::{self, DiskError};
use windlass_core::text;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};
use windlass_sandbox::{OpenMode, Roots, is_placeholder};

const MAX_ENTRIES: usize = 500;

/// Lists a folder: folders end in `/`, files have a size.
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
        let (cancel, roots) = (cx.cancel.clone(), self.workspace.files_of(&cx));
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
    for entry in Dir::read_from(&folder)? {
        if stopped() {
            break;
        }
        let name = entry?.file_name().to_owned();
        let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(name.to_bytes(), b"." | b".." | b".git")
            && !found.is_ok_and(|found| is_placeholder(&found))
        {
            entries.push(name);
        }
    }
    entries.sort();
    let total = entries.len();
    let lines: Vec<String> = entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|entry| line(&folder, entry))
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

fn line(folder: &File, entry: &CStr) -> String {
    let name = entry.to_string_lossy().into_owned();
    let Ok(found) = statat(folder, entry, AtFlags::SYMLINK_NOFOLLOW) else {
        return name;
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => format!("{name}/"),
        FileType::Symlink => match readlinkat(folder, entry, Vec::new()) {
            Ok(target) => format!("{name} -> {}", target.to_string_lossy()),
            Err(_) => name,
        },
        FileType::RegularFile => {
            let size = u64::try_from(found.st_size).unwrap_or_default();
            format!("{name} ({})", text::size(size))
        }
        _ => format!("{name} (special)"),
    }
}
