//! Where the old text is, and what exactly takes its place.

use std::ops::Range;

use super::forgiving;

/// More places than this are not counted when one is wanted.
const MAX_COUNTED: usize = 1000;

/// The places to change and what comes there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Byte ranges, in order, not overlapping.
    pub(super) places: Vec<Range<usize>>,
    pub(super) replacement: String,
    pub(super) how: How,
    /// The index of the line where the first place begins.
    pub(super) first_line: usize,
}

/// How closely the old text was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Exact,
    TrailingSpace,
    Indentation,
    Typography,
}

/// Why there is nothing to change.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoMatch {
    /// More than one place, at these lines, from 1.
    #[error("{count} matches")]
    Several { lines: Vec<usize>, count: usize },
    /// More than one place is alike but not the same.
    #[error("{count} places are alike")]
    SeveralAlike { count: usize },
    /// No place. The nearest is at this line index and has this many lines.
    #[error("no match")]
    Nowhere { nearest: Option<(usize, usize)> },
}

impl Found {
    /// How long a text of this length is after the change.
    pub(super) fn length_after(&self, length: usize) -> usize {
        let gone: usize = self.places.iter().map(ExactSizeIterator::len).sum();
        let new = self.replacement.len().saturating_mul(self.places.len());
        length.saturating_sub(gone).saturating_add(new)
    }

    /// The text after the change.
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

/// Finds `old` exactly, or else but for line ends, or else but for blanks, or else but for the form of quotes and dashes.
///
/// # Errors
/// When it is nowhere, or in several places and not all of them are meant.
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
        // A spelling that had to be changed to match says how the new text must be changed.
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

/// Every place that matches. Overlapping places count, unless all are to be replaced: any of them may be meant. Then two
/// are too many, and they are counted only so far.
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

/// Whether new lines at this place end in CRLF: as the place itself, or else as most of the file.
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
