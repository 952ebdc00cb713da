//! The effect of a patch on the existing files: computed, but not written.

use std::fs::Permissions;
use std::io::Read;
use std::path::{Path, PathBuf};

use windlass_core::tool::{ExecutionContext, ToolError};

use super::apply::{Note, apply};
use super::patch::{Action, FilePatch};
use super::report;
use crate::disk::{self, DiskError, Opened, Stamp, Target};
use crate::ledger::FileLedger;
use crate::write_file::stale;
use windlass_core::text;
use windlass_sandbox::Roots;
use windlass_sandbox::path::{path_in, shown};

/// Maximum size of a file that can be patched.
const MAX_SIZE: u64 = 16_000_000;
/// Maximum size of all files together, counted as often as the patch names them.
const MAX_TOTAL: usize = 128_000_000;

/// Every file that a patch touches, before and after.
pub(super) struct Plan {
    pub(super) files: Vec<Touched>,
    /// Notes on how hunks were placed, by file, if not exactly.
    pub(super) notes: Vec<(String, Note)>,
    /// Number of bytes read.
    bytes: usize,
}

/// One file.
pub(super) struct Touched {
    pub(super) path: PathBuf,
    /// Name as shown to the model.
    pub(super) name: String,
    /// Current state of the file, if it exists.
    pub(super) before: Option<Before>,
    pub(super) after: After,
    /// Index of the source file, if this file is the target of a move.
    pub(super) from: Option<usize>,
}

pub(super) struct Before {
    pub(super) bytes: Vec<u8>,
    pub(super) stamp: Stamp,
    pub(super) permissions: Permissions,
    real: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    Same,
    Text(String),
    Gone,
}

impl Touched {
    fn exists(&self) -> bool {
        match self.after {
            After::Same => self.before.is_some(),
            After::Text(_) => true,
            After::Gone => false,
        }
    }

    /// Returns the content so far.
    fn text(&self) -> Result<&str, ToolError> {
        match (&self.after, &self.before) {
            (After::Text(text), _) => Ok(text),
            (After::Same, Some(before)) => std::str::from_utf8(&before.bytes)
                .map_err(|_| permanent(format!("{} is not UTF-8 text; use bash to change it.", self.name))),
            (After::Same, None) | (After::Gone, _) => Ok(""),
        }
    }
}

fn permanent(text: String) -> ToolError {
    ToolError::Permanent(format!("{text} Nothing was changed."))
}

fn invalid(text: String) -> ToolError {
    ToolError::Invalid(format!("{text} Nothing was changed."))
}

impl Plan {
    /// Computes the plan.
    ///
    /// # Errors
    /// When a file does not match the patch, changed since it was read, or must not be used.
    pub(super) fn make(
        roots: &Roots,
        ledger: &FileLedger,
        execution: &ExecutionContext,
        patches: &[FilePatch],
    ) -> Result<Self, ToolError> {
        let mut plan = Self {
            files: Vec::new(),
            notes: Vec::new(),
            bytes: 0,
        };
        let desk = Desk {
            roots,
            ledger,
            execution,
        };
        for patch in patches {
            plan.add(&desk, patch)?;
        }
        Ok(plan)
    }

    fn add(&mut self, desk: &Desk<'_>, patch: &FilePatch) -> Result<(), ToolError> {
        let index = self.open(desk, &patch.path, patch.line)?;
        let file = self.file(index)?;
        let name = file.name.clone();
        match &patch.action {
            Action::Add(_) if file.exists() => {
                return Err(invalid(format!(
                    "{name} exists already (line {} of the patch); change it with `*** Update File: {name}`.",
                    patch.line
                )));
            }
            Action::Delete(_) | Action::Update { .. } if !file.exists() => {
                return Err(permanent(format!(
                    "{name} does not exist (line {} of the patch).",
                    patch.line
                )));
            }
            Action::Delete(hunks) if hunks.is_empty() => {
                file.not_a_link()?;
                file.after = After::Gone;
                return Ok(());
            }
            Action::Add(_) | Action::Delete(_) | Action::Update { .. } => {}
        }
        let old = file.text()?;
        let applied = apply(old, patch).map_err(|misfit| report::misfit(patch, &misfit, &name, old))?;
        self.notes
            .extend(applied.notes.into_iter().map(|note| (name.clone(), note)));
        let file = self.file(index)?;
        match &patch.action {
            Action::Delete(_) => {
                file.not_a_link()?;
                file.after = After::Gone;
            }
            Action::Update {
                move_to: Some(to), ..
            } => {
                file.not_a_link()?;
                file.after = After::Gone;
                self.arrive(desk, index, to, patch.line, applied.text)?;
            }
            Action::Update { move_to: None, .. } if file.text()? == applied.text => {
                return Err(invalid(format!(
                    "The patch would not change {name} (line {}).",
                    patch.line
                )));
            }
            Action::Add(_) | Action::Update { move_to: None, .. } => file.after = After::Text(applied.text),
        }
        Ok(())
    }

    /// Handles the target of a move.
    fn arrive(
        &mut self,
        desk: &Desk<'_>,
        from: usize,
        to: &str,
        line: usize,
        text: String,
    ) -> Result<(), ToolError> {
        let index = self.open(desk, to, line)?;
        let target = self.file(index)?;
        if index == from || target.exists() {
            return Err(invalid(format!(
                "{} exists already; a file cannot be moved over it (line {line} of the patch).",
                target.name
            )));
        }
        target.after = After::Text(text);
        target.from = Some(from);
        Ok(())
    }

    fn file(&mut self, index: usize) -> Result<&mut Touched, ToolError> {
        let lost = || ToolError::Permanent("a file of the patch was lost".to_owned());
        self.files.get_mut(index).ok_or_else(lost)
    }

    /// Returns the entry of a path, reading the file if it is not in the plan yet.
    fn open(&mut self, desk: &Desk<'_>, path: &str, line: usize) -> Result<usize, ToolError> {
        let place = path_in(desk.execution, path)
            .map_err(|error| invalid(format!("Line {line} of the patch: {error}")))?;
        if path.ends_with('/') {
            return Err(invalid(format!(
                "Line {line} of the patch names a folder: {path}"
            )));
        }
        let name = shown(&desk.execution.cwd, &place);
        let before = desk.read(&place, &name)?;
        self.bytes += before.as_ref().map_or(0, |before| before.bytes.len());
        if self.bytes > MAX_TOTAL {
            return Err(permanent(
                "The files of the patch are too large together; send it in parts.".to_owned(),
            ));
        }
        let is_same = |known: &Touched| match (&known.before, &before) {
            (Some(known), Some(new)) => known.real == new.real,
            (None, None) => known.path == place,
            _ => false,
        };
        if let Some(index) = self.files.iter().position(is_same) {
            return Ok(index);
        }
        self.files.push(Touched {
            path: place,
            name,
            before,
            after: After::Same,
            from: None,
        });
        Ok(self.files.len() - 1)
    }
}

impl Touched {
    /// Refuses a link: its path and its target are different files, and removing one would remove the other.
    fn not_a_link(&self) -> Result<(), ToolError> {
        if self.before.is_some() && self.path.is_symlink() {
            return Err(permanent(format!(
                "{} is a link; name the file itself, or use bash.",
                self.name
            )));
        }
        Ok(())
    }
}

/// Context needed to read a file.
struct Desk<'a> {
    roots: &'a Roots,
    ledger: &'a FileLedger,
    execution: &'a ExecutionContext,
}

impl Desk<'_> {
    fn read(&self, path: &Path, name: &str) -> Result<Option<Before>, ToolError> {
        let about = |error: DiskError| error.about(name);
        let Opened { file, data, real } = match disk::target(self.roots, path).map_err(about)? {
            Target::There(there) => there.1,
            Target::Absent => return Ok(None),
        };
        let stamp = Stamp::of(&data);
        if self.ledger.is_stale(&real, stamp) {
            return Err(stale(name));
        }
        if data.len() > MAX_SIZE {
            let size = text::size(data.len());
            return Err(permanent(format!(
                "{name} is too large to patch ({size}); use bash."
            )));
        }
        let mut bytes = Vec::new();
        file.take(MAX_SIZE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| about(error.into()))?;
        Ok(Some(Before {
            bytes,
            stamp,
            permissions: data.permissions(),
            real,
        }))
    }
}
