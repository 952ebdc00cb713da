//! Line-by-line matching for text that does not match exactly: first ignoring blanks at line ends, then
//! indentation, and last the form of quotes and dashes.

use std::ops::Range;

use super::lookalike;
use super::matching::{Found, How, NoMatch, line_index, uses_crlf, with_crlf, with_lf};
use crate::indentation::reindent;
use crate::nearest::nearest;

/// A line of a file.
struct Line<'a> {
    text: &'a str,
    start: usize,
    /// End without the line break.
    end: usize,
    /// End with the line break.
    next: usize,
}

/// Finds the only similar place.
///
/// # Errors
/// When there is none, or more than one.
pub(super) fn find(text: &str, old: &str, new: &str) -> Result<Found, NoMatch> {
    let (old, new) = (with_lf(old), with_lf(new));
    let (body, takes_break) = match old.strip_suffix('\n') {
        Some(body) => (body, true),
        None => (old.as_str(), false),
    };
    let wanted: Vec<&str> = body.split('\n').collect();
    let nowhere = || NoMatch::Nowhere {
        nearest: nearest(text, &old),
    };
    if body.trim().is_empty() {
        return Err(nowhere());
    }
    let lines = lines(text);
    for how in [How::TrailingSpace, How::Indentation] {
        let starts = alike(&lines, &wanted, how);
        let start = match starts.as_slice() {
            [] => continue,
            [start] => *start,
            several => return Err(NoMatch::SeveralAlike { count: several.len() }),
        };
        let matched: Vec<&Line<'_>> = lines.iter().skip(start).take(wanted.len()).collect();
        let replacement = match how {
            How::Indentation => {
                let pairs = matched.iter().map(|line| line.text).zip(wanted.iter().copied());
                let lines = reindent(pairs, &new.split('\n').collect::<Vec<_>>());
                lines.ok_or_else(nowhere)?.join("\n")
            }
            How::Exact | How::TrailingSpace | How::Typography => new,
        };
        let (place, replacement) = placed(&matched, takes_break, replacement);
        let crlf = uses_crlf(text, text.get(place.clone()).unwrap_or_default());
        let replacement = if crlf {
            with_crlf(&replacement)
        } else {
            replacement
        };
        let first_line = line_index(text, place.start);
        return Ok(Found {
            places: vec![place],
            replacement,
            how,
            first_line,
        });
    }
    lookalike::find(text, &old, &new).unwrap_or_else(|| Err(nowhere()))
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        lines.push(Line {
            text: line,
            start,
            end: start + line.len(),
            next: start + whole.len(),
        });
        start += whole.len();
    }
    // A byte order mark is not part of the first line.
    if let Some(first) = lines.first_mut()
        && let Some(rest) = first.text.strip_prefix('\u{FEFF}')
    {
        first.start += first.text.len() - rest.len();
        first.text = rest;
    }
    lines
}

/// Returns the places where all wanted lines occur consecutively, after trimming.
fn alike(lines: &[Line<'_>], wanted: &[&str], how: How) -> Vec<usize> {
    let trim: fn(&str) -> &str = match how {
        How::Exact | How::Typography => |line| line,
        How::TrailingSpace => str::trim_end,
        How::Indentation => str::trim,
    };
    let wanted: Vec<&str> = wanted.iter().map(|line| trim(line)).collect();
    let is_alike = |part: &[Line<'_>]| {
        part.iter()
            .zip(&wanted)
            .all(|(line, wanted)| trim(line.text) == *wanted)
    };
    lines
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, part)| is_alike(part))
        .map(|(index, _)| index)
        .collect()
}

/// Returns the bytes to replace. They include the last line break if the old text had one.
fn placed(matched: &[&Line<'_>], takes_break: bool, mut replacement: String) -> (Range<usize>, String) {
    let start = matched.first().map_or(0, |line| line.start);
    let (end, next) = matched
        .last()
        .map_or((start, start), |line| (line.end, line.next));
    if !takes_break {
        return (start..end, replacement);
    }
    if end == next && replacement.ends_with('\n') {
        // The file ends without a line break and must stay that way.
        replacement.pop();
    }
    (start..next, replacement)
}
