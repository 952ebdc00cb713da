//! `edit_file`: replaces one piece of a file by another.

mod forgiving;
mod matching;

use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use self::matching::{Found, How, NoMatch};
use crate::arguments::null_is_default;
use crate::blocking;
use crate::diff::Change;
use crate::disk::{self, DiskError, Opened, Stamp};
use crate::ground::Ground;
use crate::ledger::FileLedger;
use crate::path::{resolve_path, shown};
use crate::sandbox::{Parents, Place, Roots};
use crate::text;
use crate::write_file::stale;

const MAX_SIZE: u64 = 16_000_000;
/// Lines shown around a change, and of it.
const CONTEXT: usize = 3;
const MAX_SHOWN: usize = 20;
const MAX_SHOWN_CHARS: usize = 200;
/// Places that are named when there are several.
const MAX_PLACES: usize = 10;

/// Replaces old_string by new_string in a file. old_string must be in the file exactly once, with its indentation
/// and without line numbers; add lines around it until it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFileInput {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    #[serde(alias = "old_str", alias = "old_text")]
    old_string: String,
    #[serde(alias = "new_str", alias = "new_text")]
    new_string: String,
    /// Replace it everywhere.
    #[serde(default, deserialize_with = "null_is_default")]
    replace_all: bool,
}

/// The tool.
pub(crate) struct EditFile {
    pub(crate) ledger: FileLedger,
    pub(crate) ground: Ground,
}

impl Tool for EditFile {
    type Input = EditFileInput;
    const NAME: &'static str = "edit_file";

    fn category(&self, _: &EditFileInput) -> Category {
        Category::Write
    }

    fn judge(&self, input: &EditFileInput) -> Judgement {
        self.ground.writing(&input.path)
    }

    async fn run(&self, input: EditFileInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.old_string.is_empty() {
            return Err(ToolError::Invalid(
                "`old_string` is empty; write_file writes a whole file.".to_owned(),
            ));
        }
        if input.old_string == input.new_string {
            return Err(ToolError::Invalid(
                "`old_string` and `new_string` are the same.".to_owned(),
            ));
        }
        let path = resolve_path(&cx, &input.path)?;
        let (ledger, roots) = (self.ledger.clone(), self.ground.files());
        blocking::change(move || {
            let name = shown(&cx.execution.cwd, &path);
            edit(&roots, &path, &name, &input, &ledger)
        })
        .await
    }
}

fn edit(
    roots: &Roots,
    path: &Path,
    name: &str,
    input: &EditFileInput,
    ledger: &FileLedger,
) -> Result<ToolOutput, ToolError> {
    let about = |error: DiskError| error.about(name);
    let place = roots
        .locate(path, Parents::Exist)
        .map_err(|error| about(error.into()))?;
    let (old, stamp) = load(&place, name)?;
    if ledger.is_stale(place.path(), stamp) {
        return Err(stale(name));
    }
    let found = matching::find(&old, &input.old_string, &input.new_string, input.replace_all)
        .map_err(|error| not_found(&error, name, &old))?;
    let new = found.apply(&old);
    if new == old {
        return Err(ToolError::Invalid(format!(
            "The edit would leave {name} as it is."
        )));
    }
    let stamp = disk::replace(&place, stamp, new.as_bytes()).map_err(about)?;
    ledger.note(place.path().to_owned(), stamp);
    let change = Change::between(name, &old, &new);
    Ok(ToolOutput::text(report(name, &found, &change, &new)).with_details(change.details(name)))
}

fn load(place: &Place<'_>, name: &str) -> Result<(String, Stamp), ToolError> {
    let Opened { file, data, .. } = disk::open_at(place).map_err(|error| error.about(name))?;
    if data.len() > MAX_SIZE {
        let size = text::size(data.len());
        return Err(ToolError::Permanent(format!(
            "{name} is too large to edit ({size}); use bash."
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| DiskError::from(error).about(name))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, Stamp::of(&data))),
        Err(_) => Err(ToolError::Permanent(format!(
            "{name} is not UTF-8 text; use bash to change it."
        ))),
    }
}

fn report(name: &str, found: &Found, change: &Change, new: &str) -> String {
    let how = match found.how {
        How::Exact => "",
        How::TrailingSpace => ", matched but for blanks at line ends",
        How::Indentation => ", matched but for indentation, which was kept as in the file",
    };
    let places = match found.places.len() {
        1 => String::new(),
        number => format!(", {number} places"),
    };
    let first = found.first_line;
    let lines = found.replacement.lines().count();
    let from = first.saturating_sub(CONTEXT);
    let count = (first - from + lines + CONTEXT).min(MAX_SHOWN);
    format!(
        "Edited {name} {}{places}{how}\n{}",
        change.counts(),
        numbered(new, from, count)
    )
}

/// Lines of a text from the one with this index, with their numbers.
fn numbered(text: &str, from: usize, count: usize) -> String {
    let lines = text.lines().enumerate().skip(from).take(count);
    let lines = lines.map(|(index, line)| {
        let (line, cut) = text::shorten(line, MAX_SHOWN_CHARS);
        format!("{:>6}\t{line}{}", index + 1, if cut > 0 { "…" } else { "" })
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn not_found(error: &NoMatch, name: &str, text: &str) -> ToolError {
    ToolError::Invalid(match error {
        NoMatch::Several { lines, count } => {
            let lines: Vec<String> = lines.iter().take(MAX_PLACES).map(usize::to_string).collect();
            let more = if *count > lines.len() { ", …" } else { "" };
            format!(
                "`old_string` is in {name} {count} times (lines {}{more}). Add lines around it until it is unique, or set \
                 replace_all.",
                lines.join(", ")
            )
        }
        NoMatch::SeveralAlike { count } => format!(
            "`old_string` is not in {name}; {count} places are alike but for blanks. Copy one exactly, with lines around it."
        ),
        NoMatch::Nowhere {
            nearest: Some((from, count)),
        } => format!(
            "`old_string` is not in {name}. The nearest lines are:\n{}",
            numbered(text, *from, *count)
        ),
        NoMatch::Nowhere { nearest: None } => {
            format!("`old_string` is not in {name}, nor anything like it. Read the file again.")
        }
    })
}
