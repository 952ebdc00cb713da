//! Computes the new text from an old text and a patch. Pure, and never partially applied.

use std::ops::Range;

use super::fit::{Before, Fit, NoFit, fit};
use super::patch::{Action, FilePatch, Hunk, HunkLine, Kind};
use super::search::{Closeness, Search};
use crate::indentation::reindent;

/// Maximum number of lines of a file that can be patched.
const MAX_LINES: usize = 2_000_000;
/// The byte order mark. It is not part of the first line.
const MARK: char = '\u{FEFF}';

/// The new text, and notes on how it was derived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(super) text: String,
    pub(super) notes: Vec<Note>,
}

/// Note on how a hunk was placed, if not exactly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Number of the hunk, from 1.
    pub(super) hunk: usize,
    /// Line of the file, from 1.
    pub(super) line: usize,
    pub(super) closeness: Closeness,
    pub(super) among: Option<usize>,
    pub(super) lost_anchor: bool,
}

/// Reason a patch does not apply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Index of the hunk.
    pub(super) hunk: usize,
    pub(super) why: Why,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    Nowhere,
    /// Lines of the file, as indexes.
    Several(Vec<usize>),
    NoAnchor,
    /// The hunk changes lines that another hunk changes.
    Overlap,
    /// The file is to be deleted but has more content than the hunks remove.
    Remains,
    /// The file has too many lines, or too many similar ones.
    TooMuch,
}

/// Applies the part of a patch that concerns one file. `old` is ignored if the file is new.
///
/// # Errors
/// When a hunk matches nowhere, or in several places.
pub(crate) fn apply(old: &str, patch: &FilePatch) -> Result<Applied, Misfit> {
    match &patch.action {
        Action::Add(content) => Ok(Applied {
            text: content.clone(),
            notes: Vec::new(),
        }),
        Action::Update { hunks, .. } => apply_hunks(old, hunks),
        Action::Delete(hunks) if hunks.is_empty() => Ok(Applied {
            text: String::new(),
            notes: Vec::new(),
        }),
        Action::Delete(hunks) => {
            let applied = apply_hunks(old, hunks)?;
            if applied.text.trim_start_matches(MARK).is_empty() {
                Ok(applied)
            } else {
                Err(Misfit {
                    hunk: hunks.len().saturating_sub(1),
                    why: Why::Remains,
                })
            }
        }
    }
}

fn apply_hunks(old: &str, hunks: &[Hunk]) -> Result<Applied, Misfit> {
    let says_mark = hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
        .any(|line| line.text.starts_with(MARK));
    let body = old.strip_prefix(MARK).filter(|_| !says_mark).unwrap_or(old);
    let file = Text::of(body);
    let too_much = |hunk| Misfit {
        hunk,
        why: Why::TooMuch,
    };
    if file.lines.len() > MAX_LINES {
        return Err(too_much(0));
    }
    let mut search = Search::new(&file.lines);
    let mut before = Before::default();
    let (mut edits, mut notes) = (Vec::new(), Vec::new());
    for (index, hunk) in hunks.iter().enumerate() {
        let misfit = |why| Misfit { hunk: index, why };
        let found = fit(&mut search, file.lines.len(), hunk, before).map_err(|error| {
            misfit(match error {
                NoFit::Nowhere => Why::Nowhere,
                NoFit::Several(lines) => Why::Several(lines),
                NoFit::NoAnchor => Why::NoAnchor,
                NoFit::Exhausted => Why::TooMuch,
            })
        })?;
        let added = file.added(hunk, &found).ok_or_else(|| misfit(Why::Nowhere))?;
        let of_hunk = edits_of(index, hunk, &found, added);
        let changed = Range {
            start: of_hunk.first().map_or(found.start, |edit| edit.range.start),
            end: of_hunk.last().map_or(found.start, |edit| edit.range.end),
        };
        edits.extend(of_hunk);
        before = before.and(hunk, &changed, found.start);
        let is_plain = matches!(found.closeness, Closeness::Exact | Closeness::LineEnds);
        if !is_plain || found.among.is_some() || found.lost_anchor {
            notes.push(Note {
                hunk: index + 1,
                line: found.start + 1,
                closeness: found.closeness,
                among: found.among,
                lost_anchor: found.lost_anchor,
            });
        }
    }
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let text = file.with(&edits)?;
    let mark = old.strip_suffix(body).unwrap_or_default();
    Ok(Applied {
        text: format!("{mark}{text}"),
        notes,
    })
}

/// Removed lines and their replacement.
struct Edit {
    hunk: usize,
    range: Range<usize>,
    lines: Vec<New>,
}

/// An added line.
struct New {
    text: String,
    crlf: bool,
    /// True if a line break follows; `None` means to follow the file's convention.
    ends: Option<bool>,
}

fn edits_of(index: usize, hunk: &Hunk, found: &Fit, added: Vec<New>) -> Vec<Edit> {
    let mut added = added.into_iter();
    let mut edits: Vec<Edit> = Vec::new();
    let mut at = found.start;
    // True while the last edit is still open: nothing came between it and the next line.
    let mut open = false;
    for line in &hunk.lines {
        if line.kind == Kind::Context {
            at += 1;
            open = false;
            continue;
        }
        if !open {
            edits.push(Edit {
                hunk: index,
                range: at..at,
                lines: Vec::new(),
            });
            open = true;
        }
        let Some(edit) = edits.last_mut() else { continue };
        if line.kind == Kind::Removed {
            at += 1;
            edit.range.end = at;
        } else {
            edit.lines.extend(added.next());
        }
    }
    edits
}

/// A text in lines, each without its `\n` but with its `\r`.
struct Text<'a> {
    lines: Vec<&'a str>,
    ends_with_break: bool,
    crlf: bool,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        // The text after the last line break is a line only if it is not empty.
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let ends_with_break = text.is_empty() || text.ends_with('\n');
        let mut file = Self {
            lines,
            ends_with_break,
            crlf: false,
        };
        file.crlf = file.ends_in_crlf(0..file.lines.len()).unwrap_or(false);
        file
    }

    /// Returns true if most of these lines end in CRLF; `None` if none of them has a line break.
    fn ends_in_crlf(&self, range: Range<usize>) -> Option<bool> {
        let last = self
            .lines
            .len()
            .saturating_sub(usize::from(!self.ends_with_break));
        let lines = self.lines.get(range.start..range.end.min(last))?;
        let crlf = lines.iter().filter(|line| line.ends_with('\r')).count();
        (!lines.is_empty()).then_some(crlf * 2 > lines.len())
    }

    /// Returns the new lines of a hunk, with the indentation and line ends of the surrounding file. `None` if
    /// the hunk's indentation does not correspond to the file's.
    fn added(&self, hunk: &Hunk, found: &Fit) -> Option<Vec<New>> {
        let added: Vec<&HunkLine> = hunk
            .lines
            .iter()
            .filter(|line| line.kind == Kind::Added)
            .collect();
        let range = found.start..found.start + hunk.old().count();
        let crlf = self.ends_in_crlf(range.clone()).unwrap_or(self.crlf);
        // Line ends that the hunk writes the way the file does are intended.
        let says_crlf = hunk.lines.iter().any(|line| line.text.ends_with('\r'));
        let spelled_out = says_crlf && found.closeness == Closeness::Exact;
        let text = |line: &&'_ HunkLine| match line.text.strip_suffix('\r') {
            Some(text) if !spelled_out => text.to_owned(),
            _ => line.text.clone(),
        };
        let mut texts: Vec<String> = added.iter().map(text).collect();
        if found.closeness == Closeness::Indentation {
            let there = self.lines.get(range)?.iter().map(|line| line.trim_end());
            let written: Vec<&str> = texts.iter().map(String::as_str).collect();
            texts = reindent(there.zip(hunk.old().map(|line| line.text.as_str())), &written)?;
        }
        let says_end = hunk.lines.iter().any(|line| line.bare);
        let new = texts.into_iter().zip(&added).map(|(text, line)| New {
            text,
            crlf: crlf && !spelled_out,
            ends: match line.bare {
                true => Some(false),
                false => says_end.then_some(true),
            },
        });
        Some(new.collect())
    }

    /// Returns the text with all edits applied, which must be in order.
    fn with(&self, edits: &[Edit]) -> Result<String, Misfit> {
        let mut out = Output {
            text: String::new(),
            is_open: false,
            crlf: self.crlf,
        };
        let count = self.lines.len();
        let copy = |out: &mut Output, range: Range<usize>| {
            let reaches_end = range.end == count && !self.ends_with_break;
            let lines = self.lines.get(range).unwrap_or_default();
            for (index, line) in lines.iter().enumerate() {
                let is_last = reaches_end && index + 1 == lines.len();
                out.push(line, if is_last { "" } else { "\n" });
            }
        };
        let mut at = 0;
        for edit in edits {
            if edit.range.start < at {
                return Err(Misfit {
                    hunk: edit.hunk,
                    why: Why::Overlap,
                });
            }
            copy(&mut out, at..edit.range.start);
            at = edit.range.end;
            let reaches_end = at == count && !self.ends_with_break;
            for (index, line) in edit.lines.iter().enumerate() {
                let is_last = index + 1 == edit.lines.len();
                let end = match line.ends.unwrap_or(!(reaches_end && is_last)) {
                    false => "",
                    true if line.crlf => "\r\n",
                    true => "\n",
                };
                out.push(&line.text, end);
            }
        }
        copy(&mut out, at..count);
        Ok(out.text)
    }
}

/// The text being built.
struct Output {
    text: String,
    /// True if the last line has no line break yet.
    is_open: bool,
    crlf: bool,
}

impl Output {
    fn push(&mut self, line: &str, end: &str) {
        if self.is_open {
            // It is no longer the last line.
            self.text.push_str(if self.crlf { "\r\n" } else { "\n" });
        }
        self.text.push_str(line);
        self.text.push_str(end);
        self.is_open = end.is_empty();
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
