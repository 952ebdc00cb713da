//! Writes a plan to disk. If a step fails, the steps before it are undone.

use windlass_core::tool::ToolError;

use super::plan::{After, Plan, Touched};
use crate::disk::{self, DiskError, Stamp};
use crate::ledger::FileLedger;
use windlass_core::text::count;
use windlass_sandbox::Roots;

/// A completed step.
enum Done {
    Written(Stamp),
    Created(Stamp),
    Removed,
}

/// Writes all files, or none.
///
/// # Errors
/// When a file could not be written; the message describes the state of the others.
pub(super) fn commit(roots: &Roots, ledger: &FileLedger, plan: &Plan) -> Result<(), ToolError> {
    let mut done: Vec<(&Touched, Done)> = Vec::new();
    // Removals come last: until then, all content still exists somewhere.
    let is_removal = |file: &&Touched| file.after == After::Gone;
    let (removals, writes): (Vec<&Touched>, Vec<&Touched>) = plan.files.iter().partition(is_removal);
    for file in writes.into_iter().chain(removals) {
        match write(roots, ledger, plan, file) {
            Ok(Some(step)) => done.push((file, step)),
            Ok(None) => {}
            Err(error) => return Err(undone(roots, ledger, file, &error, &done)),
        }
    }
    Ok(())
}

fn write(roots: &Roots, ledger: &FileLedger, plan: &Plan, file: &Touched) -> Result<Option<Done>, DiskError> {
    match (&file.before, &file.after) {
        (None, After::Same | After::Gone) | (Some(_), After::Same) => Ok(None),
        (Some(before), After::Text(text)) => {
            let (real, stamp) = disk::rewrite(roots, &file.path, before.stamp, text.as_bytes())?;
            ledger.note(real, stamp);
            Ok(Some(Done::Written(stamp)))
        }
        (None, After::Text(text)) => {
            // A moved file keeps its mode.
            let source = file.from.and_then(|from| plan.files.get(from)?.before.as_ref());
            let permissions = source.map(|before| before.permissions.clone());
            let (real, stamp) = disk::create_as(roots, &file.path, text.as_bytes(), permissions)?;
            ledger.note(real, stamp);
            Ok(Some(Done::Created(stamp)))
        }
        (Some(before), After::Gone) => {
            disk::remove(roots, &file.path, before.stamp)?;
            Ok(Some(Done::Removed))
        }
    }
}

/// Undoes all steps, the last one first, and reports the result.
fn undone(
    roots: &Roots,
    ledger: &FileLedger,
    failed: &Touched,
    error: &DiskError,
    done: &[(&Touched, Done)],
) -> ToolError {
    let mut lost = Vec::new();
    for (file, step) in done.iter().rev() {
        match put_back(roots, file, step) {
            Ok(Some((real, stamp))) => ledger.note(real, stamp),
            Ok(None) => {}
            Err(error) => lost.push(format!("{} ({error})", file.name)),
        }
    }
    let rest = match (done.len(), lost.is_empty()) {
        (0, _) => "Nothing was changed.".to_owned(),
        (number, true) => format!(
            "The {} changed before it were restored; nothing was changed.",
            count(number, "file")
        ),
        (_, false) => format!("These files could not be restored: {}.", lost.join(", ")),
    };
    match error.about(&failed.name) {
        ToolError::Transient(text) => ToolError::Transient(format!("{text}. {rest}")),
        other => ToolError::Permanent(format!("{other}. {rest}")),
    }
}

fn put_back(
    roots: &Roots,
    file: &Touched,
    step: &Done,
) -> Result<Option<(std::path::PathBuf, Stamp)>, DiskError> {
    match (step, &file.before) {
        (Done::Created(stamp), _) => disk::remove(roots, &file.path, *stamp).map(|()| None),
        (Done::Written(stamp), Some(before)) => {
            disk::rewrite(roots, &file.path, *stamp, &before.bytes).map(Some)
        }
        (Done::Removed, Some(before)) => {
            let permissions = Some(before.permissions.clone());
            disk::create_as(roots, &file.path, &before.bytes, permissions).map(Some)
        }
        (Done::Written(_) | Done::Removed, None) => Ok(None),
    }
}
