//! Finds the old text, and determines its exact replacement.

use std::ops::Range;

use super::forgiving;

/// Maximum number of places counted when only one is wanted.
const MAX_COUNTED: usize = 1000;

/// Places to change, and their replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Byte ranges, in order, not overlapping.
    pub(super) places: Vec<Range<usize>>,
    pub(super) replacement: String,
    pub(super) how: How,
    /// Index of the line where the first place starts.
    pub(super) first_line: usize,
}

/// Strictness with which the old text was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Exact,
    TrailingSpace,
    Indentation,
    Typography,
}

/// Reason there is nothing to change.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoMatch {
    /// More than one place, at these lines, from 1.
    #[error("{count} matches")]
    Several { lines: Vec<usize>, count: usize },
    /// More than one place is similar but not equal.
    #[error("{count} places are similar")]
    SeveralAlike { count: usize },
    /// No place. The nearest one is at this line index and has this many lines.
    #[error("no match")]
    Nowhere { nearest: Option<(usize, usize)> },
}

impl Found {
    /// Returns the length after the change of a text of this length.
    pub(super) fn length_after(&self, length: usize) -> usize {
        let gone: usize = self.places.iter().map(ExactSizeIterator::len).sum();
        let new = self.replacement.len().saturating_mul(self.places.len());
        length.saturating_sub(gone).saturating_add(new)
    }

    /// Returns the text after the change.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len() + self.replacement.len());
        let mut from = 0;
        for place in &self.places {
            changed.push_str(text.get(from..place.start).unwrap_or_default());
            changed.push_str(&self.replacement);
            from = place.end;
        }
        changed.push_str(text.get(from..).unwrap_or_default());
        changed
    }
}

/// Finds `old` exactly, or else ignoring line ends, or else ignoring blanks, or else ignoring the form of
/// quotes and dashes.
///
/// # Errors
/// When it is nowhere, or in several places and not all of them are intended.
pub(super) fn find(text: &str, old: &str, new: &str, replace_all: bool) -> Result<Found, NoMatch> {
    if old.is_empty() {
        return Err(NoMatch::Nowhere { nearest: None });
    }
    for spelling in [old.to_owned(), with_crlf(old), with_lf(old)] {
        let places = exact(text, &spelling, replace_all);
        let Some(first) = places.first() else { continue };
        if places.len() > 1 && !replace_all {
            let lines = places
                .iter()
                .take(50)
                .map(|place| line_index(text, place.start) + 1)
                .collect();
            return Err(NoMatch::Several {
                lines,
                count: places.len(),
            });
        }
        let first_line = line_index(text, first.start);
        let matched = text.get(first.clone()).unwrap_or_default();
        // If the spelling had to be changed to match, the new text is changed in the same way.
        let replacement = match () {
            () if uses_crlf(text, matched) => with_crlf(new),
            () if spelling != old => with_lf(new),
            () => new.to_owned(),
        };
        return Ok(Found {
            places,
            replacement,
            how: How::Exact,
            first_line,
        });
    }
    forgiving::find(text, old, new)
}

/// Returns every matching place. Overlapping places count, unless all are to be replaced: any of them may be
/// intended. Two are then too many already, so counting stops early.
pub(super) fn exact(text: &str, old: &str, replace_all: bool) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text
        .get(from..)
        .and_then(|rest| rest.find(old))
        .map(|index| from + index)
    {
        places.push(start..start + old.len());
        if !replace_all && places.len() >= MAX_COUNTED {
            break;
        }
        let first_char = old.chars().next().map_or(1, char::len_utf8);
        from = start + if replace_all { old.len() } else { first_char };
    }
    places
}

/// Returns true if new lines at this place end in CRLF: like the place itself, or else like most of the file.
pub(super) fn uses_crlf(text: &str, matched: &str) -> bool {
    if matched.contains('\n') {
        return matched.contains("\r\n");
    }
    let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    crlf * 2 > all
}

pub(super) fn with_crlf(text: &str) -> String {
    with_lf(text).replace('\n', "\r\n")
}

pub(super) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

pub(super) fn line_index(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
