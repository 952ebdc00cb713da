//! The text, the cursor, and the undo history.

use std::ops::Range;

use super::cluster;

/// Maximum number of undo steps.
const STEPS: usize = 1_000;

/// Kind of an edit: consecutive edits of one kind are undone together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A typed letter. Typing is undone by words.
    Type,
    /// An erased letter.
    Erase,
    /// A step of its own.
    Whole,
}

#[derive(Debug)]
struct Edit {
    at: usize,
    removed: String,
    inserted: String,
    cursor: usize,
}

#[derive(Debug)]
struct Step {
    kind: Kind,
    edits: Vec<Edit>,
}

/// State of grouping edits into one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Hold {
    #[default]
    Off,
    /// The next edit starts the step.
    Begins,
    /// The next edit joins the step.
    Joins,
}

/// A text being edited. The cursor is always at a grapheme boundary.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    revision: u64,
    done: Vec<Step>,
    undone: Vec<Step>,
    hold: Hold,
}

impl Buffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Increases with every change of the text.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn move_to(&mut self, position: usize) {
        self.cursor = cluster::snap(&self.text, position);
    }

    /// Replaces a part of the text and moves the cursor behind it.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) {
        let Some(removed) = self.text.get(range.clone()) else {
            return;
        };
        if removed == with {
            return self.move_to(range.end);
        }
        let edit = Edit {
            at: range.start,
            removed: removed.to_owned(),
            inserted: with.to_owned(),
            cursor: self.cursor,
        };
        self.text.replace_range(range.clone(), with);
        self.revision += 1;
        self.undone.clear();
        self.remember(edit, kind);
        self.move_to(range.start + with.len());
    }

    /// Replaces the whole text and moves the cursor to its end.
    pub(super) fn replace_all(&mut self, with: &str) {
        self.replace(0..self.text.len(), with, Kind::Whole);
    }

    /// Takes the text with its undo history.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self {
            revision: self.revision + 1,
            ..Self::default()
        };
        std::mem::replace(self, empty)
    }

    /// True if the text contains this character, or would after undo or redo.
    pub(super) fn mentions(&self, letter: char) -> bool {
        let mut edits = self.done.iter().chain(&self.undone).flat_map(|step| &step.edits);
        let has = |edit: &Edit| edit.removed.contains(letter) || edit.inserted.contains(letter);
        self.text.contains(letter) || edits.any(has)
    }

    /// Groups all edits into one step until [`Self::release`].
    pub(super) fn hold(&mut self) {
        self.hold = Hold::Begins;
    }

    /// Ends the group started by [`Self::hold`].
    pub(super) fn release(&mut self) {
        self.hold = Hold::Off;
    }

    /// Undoes the last step, if there is one.
    pub(super) fn undo(&mut self) {
        self.release();
        let Some(step) = self.done.pop() else {
            return;
        };
        for edit in step.edits.iter().rev() {
            self.text
                .replace_range(edit.at..edit.at + edit.inserted.len(), &edit.removed);
            self.cursor = edit.cursor;
        }
        self.revision += 1;
        self.undone.push(step);
    }

    /// Redoes the last undone step, if there is one.
    pub(super) fn redo(&mut self) {
        self.release();
        let Some(step) = self.undone.pop() else {
            return;
        };
        for edit in &step.edits {
            self.text
                .replace_range(edit.at..edit.at + edit.removed.len(), &edit.inserted);
            self.cursor = cluster::snap(&self.text, edit.at + edit.inserted.len());
        }
        self.revision += 1;
        self.done.push(step);
    }

    fn remember(&mut self, edit: Edit, kind: Kind) {
        let hold = self.hold;
        if hold == Hold::Begins {
            self.hold = Hold::Joins;
        }
        match self.done.last_mut() {
            Some(step) if hold == Hold::Joins => step.edits.push(edit),
            Some(step) if hold == Hold::Off && step.continues(&edit, kind) => step.join(edit),
            _ => {
                if self.done.len() == STEPS {
                    self.done.remove(0);
                }
                let edits = vec![edit];
                self.done.push(Step { kind, edits });
            }
        }
    }
}

impl Step {
    fn continues(&self, edit: &Edit, kind: Kind) -> bool {
        let Some(last) = self.edits.last().filter(|_| self.kind == kind) else {
            return false;
        };
        match kind {
            Kind::Whole => false,
            Kind::Erase => edit.at == last.at || edit.at + edit.removed.len() == last.at,
            Kind::Type => {
                let ended = last.inserted.ends_with(char::is_whitespace);
                let begins = !edit.inserted.starts_with(char::is_whitespace);
                edit.at == last.at + last.inserted.len() && edit.removed.is_empty() && !(ended && begins)
            }
        }
    }

    fn join(&mut self, edit: Edit) {
        match self.edits.last_mut() {
            Some(last) if self.kind == Kind::Type => last.inserted.push_str(&edit.inserted),
            _ => self.edits.push(edit),
        }
    }
}
