//! `read_file`: returns a page of a text file with line numbers. Shows images, and renders notebooks as text.

mod nearby;
mod notebook;
pub(crate) mod page;
mod picture;

use std::io::{Cursor, Read};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::message::Binary;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use self::page::{Page, Total};
use self::picture::Picture;
use crate::blocking;
use crate::disk::{self, DiskError, Opened, Stamp};
use crate::ledger::FileLedger;
use windlass_core::text;
use windlass_sandbox::Roots;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};

const DEFAULT_LINES: u64 = 2000;
/// Number of bytes that determine how a file is shown.
const BEGINNING: u64 = 8192;

/// Reads a text file and numbers its lines. Reads 2000 lines unless told otherwise. Shows images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFileInput {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    /// The first line, from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// Number of lines.
    #[serde(default)]
    limit: Option<u64>,
}

/// The tool.
pub(crate) struct ReadFile {
    pub(crate) ledger: FileLedger,
    pub(crate) workspace: Workspace,
}

impl Tool for ReadFile {
    type Input = ReadFileInput;
    const NAME: &'static str = "read_file";

    fn category(&self, _: &ReadFileInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &ReadFileInput) -> Judgement {
        self.workspace.reading(&input.path)
    }

    async fn run(&self, input: ReadFileInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.limit == Some(0) {
            return Err(ToolError::Invalid("`limit` must be at least 1.".to_owned()));
        }
        let path = resolve_path(&cx, &input.path)?;
        let (ledger, roots) = (self.ledger.clone(), self.workspace.files_of(&cx));
        let cancel = cx.cancel.clone();
        let work = move || {
            let name = shown(&cx.execution.cwd, &path);
            read(&roots, &path, &name, &input, &ledger, &cx.cancel).map_err(|error| match error {
                DiskError::Missing => nearby::missing(&roots, &path, &name),
                other => other.about(&name),
            })?
        };
        blocking::look(&cancel, work).await
    }
}

fn read(
    roots: &Roots,
    path: &Path,
    name: &str,
    input: &ReadFileInput,
    ledger: &FileLedger,
    cancel: &CancellationToken,
) -> Result<Result<ToolOutput, ToolError>, DiskError> {
    let Opened { mut file, data, real } = disk::open(roots, path)?;
    let mut beginning = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut beginning)?;
    if picture::may_be(&beginning) && beginning.contains(&0) {
        file.by_ref()
            .take(picture::MAX_BYTES)
            .read_to_end(&mut beginning)?;
        if let Some(picture) = Picture::of(&beginning) {
            return Ok(Ok(show(&picture, name, &beginning, data.len())));
        }
    }
    if notebook::is_named(path) && data.len() <= notebook::MAX_BYTES {
        file.by_ref()
            .take(notebook::MAX_BYTES)
            .read_to_end(&mut beginning)?;
        let rendered = std::str::from_utf8(&beginning).ok().and_then(notebook::render);
        beginning = rendered.map_or(beginning, String::into_bytes);
    }
    let first = input.offset.unwrap_or(1).max(1);
    let limit = input.limit.unwrap_or(DEFAULT_LINES);
    let page = page::read(Cursor::new(beginning).chain(file), first, limit, &|| {
        cancel.is_cancelled()
    });
    let page = match page? {
        Some(page) => page,
        None => return Ok(Err(ToolError::Canceled(String::new()))),
    };
    if let Page::Text { .. } = page {
        ledger.note(real, Stamp::of(&data));
    }
    Ok(answer(page, name, first, data.len()))
}

/// Returns the image for models that can see it, and a description for all others.
fn show(picture: &Picture, name: &str, bytes: &[u8], size: u64) -> ToolOutput {
    let Picture {
        mime,
        kind,
        width,
        height,
    } = picture;
    // The file may have grown while it was read.
    let shown = picture.fits(size.max(bytes.len() as u64));
    let why = if shown { "" } else { "; it is too large to show" };
    let content = format!("{name} is {kind}, {width}×{height}, {}{why}.", text::size(size));
    let details = json!({ "path": name, "binary": true, "size": size, "image": { "mime": mime, "width": width, "height": height } });
    let mut output = ToolOutput::text(content).with_details(details);
    if shown {
        output.images.push(Binary {
            path: name.to_owned(),
            mime: (*mime).to_owned(),
            data: picture::base64(bytes),
        });
    }
    output
}

fn answer(page: Page, name: &str, first: u64, size: u64) -> Result<ToolOutput, ToolError> {
    let (mut content, lines, total) = match page {
        Page::Binary(kind) => {
            let content = format!("{name} is {kind}, {}; it is not shown.", text::size(size));
            return Ok(
                ToolOutput::text(content).with_details(json!({ "path": name, "binary": true, "size": size }))
            );
        }
        Page::Text {
            content,
            lines,
            total,
        } => (content, lines, total),
    };
    let last = (first + lines).saturating_sub(1);
    match total {
        Total::Exactly(0) => content = format!("({name} is empty)"),
        Total::Exactly(total) if lines == 0 => {
            let lines = text::count(usize::try_from(total).unwrap_or(usize::MAX), "line");
            return Err(ToolError::Invalid(format!(
                "`offset` is {first}, but {name} has only {lines}."
            )));
        }
        Total::Exactly(total) if first == 1 && last == total => {}
        Total::Exactly(total) if last == total => {
            content.push_str(&format!("[showing lines {first}-{last} of {total}]"));
        }
        more => content.push_str(&format!(
            "[showing lines {first}-{last} of {more}; use offset={}]",
            last + 1
        )),
    }
    content.truncate(content.trim_end_matches('\n').len());
    let details = json!({ "path": name, "first_line": first, "last_line": last, "size": size });
    Ok(ToolOutput::text(content).with_details(details))
}
