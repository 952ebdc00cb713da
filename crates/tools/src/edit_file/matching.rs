//! Where the old text is, and what exactly takes its place.

use std::collections::HashSet;
use std::ops::Range;

use super::forgiving;

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

/// Finds `old` exactly, or else but for line ends, or else but for blanks.
///
/// # Errors
/// When it is nowhere, or in several places and not all of them are meant.
pub(super) fn find(text: &str, old: &str, new: &str, replace_all: bool) -> Result<Found, NoMatch> {
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

/// Every place that matches. Overlapping places count, unless all are to be replaced: any of them may be meant.
fn exact(text: &str, old: &str, replace_all: bool) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text
        .get(from..)
        .and_then(|rest| rest.find(old))
        .map(|index| from + index)
    {
        places.push(start..start + old.len());
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

/// The lines that share most words with `old`, if they share enough.
pub(super) fn nearest(text: &str, old: &str) -> Option<(usize, usize)> {
    const SHOWN: usize = 8;
    let wanted: HashSet<&str> = words(old).collect();
    let scores: Vec<usize> = text
        .lines()
        .map(|line| words(line).filter(|word| wanted.contains(word)).count())
        .collect();
    let window = old.lines().count().clamp(1, SHOWN);
    let sums = scores
        .windows(window.min(scores.len().max(1)))
        .map(|part| part.iter().sum::<usize>());
    // The first of the best, so that the answer does not depend on luck.
    let (index, best) = sums
        .enumerate()
        .max_by_key(|(index, sum)| (*sum, std::cmp::Reverse(*index)))?;
    let of_window: usize = old.lines().take(window).map(|line| words(line).count()).sum();
    (best > 0 && best * 3 >= of_window).then_some((index, window))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
