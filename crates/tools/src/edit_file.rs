//! `edit_file`: replaces pieces of a file, all or nothing.

mod forgiving;
mod input;
mod lookalike;
mod matching;
mod report;

use std::io::Read;
use std::path::Path;

use windlass_core::tool::{Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use self::input::EditFileInput;
use self::matching::Found;
use self::report::{not_found, report};
use crate::blocking;
use crate::disk::{self, DiskError, Opened, Stamp};
use crate::ledger::FileLedger;
use crate::write_file::stale;
use windlass_checkpoint::diff::Change;
use windlass_core::text;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{path_in, resolve_path, shown};
use windlass_sandbox::{Parents, Place, Roots};

const MAX_SIZE: u64 = 16_000_000;
/// Maximum size of a file after an edit.
const MAX_RESULT: usize = 64_000_000;

/// The tool.
pub(crate) struct EditFile {
    pub(crate) ledger: FileLedger,
    pub(crate) workspace: Workspace,
}

impl Tool for EditFile {
    type Input = EditFileInput;
    const NAME: &'static str = "edit_file";

    fn category(&self, _: &EditFileInput) -> Category {
        Category::Write
    }

    fn judge(&self, input: &EditFileInput) -> Judgement {
        self.workspace.writing(&input.path)
    }

    fn preview(&self, input: &EditFileInput, execution: &ExecutionContext) -> Option<String> {
        let path = path_in(execution, &input.path).ok()?;
        let name = shown(&execution.cwd, &path);
        let roots = self.workspace.files_at(&input.path);
        let plan = Plan::make(&roots, &path, &name, input, &self.ledger).ok()?;
        Some(Change::between(&name, &plan.old, &plan.new).diff())
    }

    async fn run(&self, input: EditFileInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let path = resolve_path(&cx, &input.path)?;
        self.workspace.settle(&cx).await;
        let (ledger, roots) = (self.ledger.clone(), self.workspace.files_of(&cx));
        blocking::change(move || {
            let name = shown(&cx.execution.cwd, &path);
            let plan = Plan::make(&roots, &path, &name, &input, &ledger)?;
            let stamp = disk::replace(&plan.place, plan.stamp, plan.new.as_bytes())
                .map_err(|error| error.about(&name))?;
            ledger.note(plan.place.path().to_owned(), stamp);
            let change = Change::between(&name, &plan.old, &plan.new);
            let text = report(&name, &plan.found, &change, &plan.new);
            Ok(ToolOutput::text(text).with_details(change.details(&name)))
        })
        .await
    }
}

/// Effect of a call.
struct Plan<'a> {
    place: Place<'a>,
    stamp: Stamp,
    old: String,
    new: String,
    /// Places of each edit, in the text that the previous edits produced.
    found: Vec<Found>,
}

impl<'a> Plan<'a> {
    fn make(
        roots: &'a Roots,
        path: &Path,
        name: &str,
        input: &EditFileInput,
        ledger: &FileLedger,
    ) -> Result<Self, ToolError> {
        let place = roots
            .locate(path, Parents::Exist)
            .map_err(|error| DiskError::from(error).about(name))?;
        let (old, stamp) = load(&place, name)?;
        if ledger.is_stale(place.path(), stamp) {
            return Err(stale(name));
        }
        let mut new = old.clone();
        let mut found = Vec::with_capacity(input.edits.len());
        for (index, edit) in input.edits.iter().enumerate() {
            let one = matching::find(&new, &edit.old_string, &edit.new_string, edit.replace_all)
                .map_err(|error| not_found(&error, input, index, name, &new))?;
            if one.length_after(new.len()) > MAX_RESULT {
                return Err(ToolError::Invalid(format!(
                    "`{}new_string` would make {name} too large; use bash.",
                    input.place(index)
                )));
            }
            new = one.apply(&new);
            found.push(one);
        }
        if new == old {
            let edit = if input.listed { "edits together" } else { "edit" };
            return Err(ToolError::Invalid(format!("The {edit} would not change {name}.")));
        }
        Ok(Self {
            place,
            stamp,
            old,
            new,
            found,
        })
    }
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

/// Finds and replaces without a disk, for fuzzing: text outside the places stays unchanged, and the message
/// can be built.
pub(crate) fn fuzz(file: &str, old: &str, new: &str, replace_all: bool) {
    let found = match matching::find(file, old, new, replace_all) {
        Ok(found) => found,
        Err(error) => {
            let input = EditFileInput {
                path: String::new(),
                edits: Vec::new(),
                listed: false,
            };
            let _ = not_found(&error, &input, 0, "file", file);
            return;
        }
    };
    assert!(
        replace_all || found.places.len() == 1,
        "one place is intended: {:?}",
        found.places
    );
    let mut kept = String::new();
    let mut from = 0;
    for place in &found.places {
        let piece = file.get(from..place.start);
        assert!(
            piece.is_some() && file.get(place.clone()).is_some_and(|piece| !piece.is_empty()),
            "places are in order, and each is a piece of the text: {:?}",
            found.places
        );
        kept.push_str(piece.unwrap_or_default());
        kept.push_str(&found.replacement);
        from = place.end;
    }
    kept.push_str(file.get(from..).unwrap_or_default());
    if found.length_after(file.len()) <= MAX_RESULT {
        let changed = found.apply(file);
        assert_eq!(changed, kept, "text outside the places stays unchanged");
        assert_eq!(changed.len(), found.length_after(file.len()));
        let change = Change::between("file", file, &changed);
        let _ = report("file", &[found], &change, &changed);
    }
}
