//! Reports for the model and for people.

use serde_json::{Value, json};
use windlass_core::tool::{ToolError, ToolOutput};

use super::apply::{Misfit, Note, Why};
use super::patch::{Action, FilePatch, Hunk};
use super::plan::{After, Plan, Touched};
use super::search::Closeness;
use crate::nearest::{nearest, numbered};
use windlass_checkpoint::diff::Change;
use windlass_core::text::count;

/// Maximum number of places named in a message.
const MAX_PLACES: usize = 10;

/// Maximum bytes of all diffs together.
const MAX_DIFFS: usize = 400_000;

/// Report on one file.
struct FileReport {
    /// Line in a list.
    short: String,
    diff: String,
    details: Value,
}

/// Reports the changes that were made.
pub(super) fn report(plan: &Plan) -> ToolOutput {
    let reports: Vec<FileReport> = file_reports(plan).collect();
    let list: Vec<&str> = reports.iter().map(|file| file.short.as_str()).collect();
    let mut text = format!("Patched {}: {}", count(reports.len(), "file"), list.join(", "));
    for (name, note) in &plan.notes {
        text.push_str(&format!("\n{name}: {}", noted(note)));
    }
    let mut left = MAX_DIFFS;
    let details = |mut file: FileReport| {
        // Longer diffs are not worth reading.
        match left.checked_sub(file.diff.len()) {
            Some(rest) => left = rest,
            None => file.details["diff"] = json!("[… diff left out …]\n"),
        }
        file.details
    };
    let files: Vec<Value> = reports.into_iter().map(details).collect();
    ToolOutput::text(text).with_details(json!({ "files": files }))
}

/// Returns the planned changes as one diff.
pub(super) fn diff(plan: &Plan) -> String {
    file_reports(plan).map(|file| file.diff).collect()
}

fn file_reports(plan: &Plan) -> impl Iterator<Item = FileReport> {
    plan.files
        .iter()
        .enumerate()
        .filter_map(|(index, file)| one(plan, index, file))
}

fn one(plan: &Plan, index: usize, file: &Touched) -> Option<FileReport> {
    let name = &file.name;
    let text = |file: &Touched| {
        let bytes = file.before.as_ref().map(|before| before.bytes.as_slice());
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    };
    let report = |short: String, kind: &str, diff: String, change: &Change| FileReport {
        short,
        details: json!({ "path": name, "kind": kind, "diff": diff, "added": change.added, "removed": change.removed }),
        diff,
    };
    let source = file
        .from
        .and_then(|from| plan.files.get(from))
        .filter(|source| source.before.is_some());
    match (&file.before, &file.after) {
        (_, After::Same) | (None, After::Gone) => None,
        // A moved file is reported at its target.
        (Some(_), After::Gone) if has_arrived(plan, index) => None,
        (Some(_), After::Gone) => {
            let change = Change::between(name, &text(file), "");
            let diff = named(change.text(), &format!("deleted {name}"));
            Some(report(format!("{name} (deleted)"), "delete", diff, &change))
        }
        (Some(_), After::Text(new)) => {
            let change = Change::between(name, &text(file), new);
            let short = format!("{name} {}", change.counts());
            Some(report(short, "update", change.text().to_owned(), &change))
        }
        (None, After::Text(new)) => match source {
            Some(source) => {
                let both = format!("{} → {name}", source.name);
                let change = Change::between(&both, &text(source), new);
                let short = format!("{both} (moved, +{} −{})", change.added, change.removed);
                let diff = named(change.text(), &format!("moved {both}"));
                let mut file = report(short, "move", diff, &change);
                file.details["from"] = json!(source.name);
                Some(file)
            }
            None => {
                let change = Change::between(name, "", new);
                let diff = named(change.text(), &format!("new {name}"));
                Some(report(
                    format!("{name} (new, +{})", change.added),
                    "add",
                    diff,
                    &change,
                ))
            }
        },
    }
}

/// Returns true if a file is reported at the target of its move.
fn has_arrived(plan: &Plan, from: usize) -> bool {
    let is_it = |file: &Touched| file.from == Some(from) && matches!(file.after, After::Text(_));
    plan.files.iter().any(is_it)
}

/// Adds a headline to an empty diff, so that it still names the change.
fn named(diff: &str, what: &str) -> String {
    if diff.is_empty() {
        format!("{what}\n")
    } else {
        diff.to_owned()
    }
}

fn noted(note: &Note) -> String {
    let mut parts = Vec::new();
    match note.closeness {
        Closeness::Exact | Closeness::LineEnds => {}
        Closeness::TrailingSpace => parts.push("matched except for blanks at line ends".to_owned()),
        Closeness::Indentation => {
            parts.push("matched except for indentation, which was kept as in the file".to_owned());
        }
        Closeness::Typography => {
            parts.push("matched except for the form of quotes, dashes or blanks".to_owned());
        }
    }
    if let Some(number) = note.among {
        parts.push(format!(
            "fits {number} places, the nearest to its line number was used"
        ));
    }
    if note.lost_anchor {
        parts.push("the text of its @@ line is not in the file".to_owned());
    }
    format!("hunk {} at line {}: {}", note.hunk, note.line, parts.join("; "))
}

/// Returns the error for a hunk that does not apply.
pub(super) fn misfit(patch: &FilePatch, misfit: &Misfit, name: &str, text: &str) -> ToolError {
    let hunks: &[Hunk] = match &patch.action {
        Action::Delete(hunks) | Action::Update { hunks, .. } => hunks,
        Action::Add(_) => &[],
    };
    let hunk = hunks.get(misfit.hunk);
    let line = hunk.map_or(patch.line, |hunk| hunk.line);
    let which = format!("{name}: hunk {} (line {line} of the patch)", misfit.hunk + 1);
    let places = |lines: &[usize]| {
        let shown: Vec<String> = lines
            .iter()
            .take(MAX_PLACES)
            .map(|line| (line + 1).to_string())
            .collect();
        let more = if lines.len() > shown.len() { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let why = match &misfit.why {
        Why::Nowhere => {
            let anchored = hunk.is_some_and(|hunk| !hunk.anchors.is_empty());
            let after = if anchored {
                " after the text of its @@ line"
            } else {
                ""
            };
            let old: Vec<&str> = hunk
                .into_iter()
                .flat_map(Hunk::old)
                .map(|line| line.text.as_str())
                .collect();
            let nearest = match nearest(text, &old.join("\n")) {
                Some((from, lines)) => format!("The nearest lines are:\n{}", numbered(text, from, lines)),
                None => "Nothing similar was found. Read the file again.".to_owned(),
            };
            format!("its lines are not in the file{after}. Nothing was changed. {nearest}")
        }
        Why::Several(lines) => format!(
            "fits {} places (lines {}), and nothing says which. Nothing was changed. Add lines around it, or an @@ line \
             that names what it is in.",
            lines.len(),
            places(lines)
        ),
        Why::NoAnchor => {
            "the text of its @@ line is not in the file. Nothing was changed. Read the file again.".to_owned()
        }
        Why::Overlap => {
            "changes lines that another hunk also changes. Nothing was changed. Combine them into one hunk.".to_owned()
        }
        Why::Remains => "the file has more lines than the patch removes. Nothing was changed. Read the file again, or use \
                         `*** Delete File: `."
            .to_owned(),
        Why::TooMuch => {
            "the file is too large or too repetitive to search. Nothing was changed. Use edit_file or bash.".to_owned()
        }
    };
    ToolError::Invalid(format!("{which} {why}"))
}
