//! Text objects: words, quoted text, bracketed text.

use std::ops::Range;

use super::super::cluster::{self, Class};
use super::command::{Extent, Object, Words};
use super::motion;

/// Returns the range of the object at a position.
pub(super) fn range(text: &str, at: usize, extent: Extent, object: Object) -> Option<Range<usize>> {
    match object {
        Object::Word(words) => word(text, at, extent, words),
        Object::Quoted(quote) => inside(quoted(text, at, quote)?, extent),
        Object::Bracketed(open, close) => inside(bracketed(text, at, open, close)?, extent),
    }
}

/// Narrows a range to its inside. All quotes and brackets are one byte long.
fn inside(around: Range<usize>, extent: Extent) -> Option<Range<usize>> {
    Some(match extent {
        Extent::Around => around,
        Extent::Inner => around.start + 1..around.end - 1,
    })
}

fn word(text: &str, at: usize, extent: Extent, words: Words) -> Option<Range<usize>> {
    let line = motion::lines(text, at, at, 0);
    if line.is_empty() || !line.contains(&at) {
        return None;
    }
    let run = |at| {
        let start = motion::run_start(text, at, words).max(line.start);
        start..motion::run_end(text, at, words).min(line.end)
    };
    let here = run(at);
    if extent == Extent::Inner {
        return Some(here);
    }
    let is_space = |at| motion::class(text, at, words) == Class::Space;
    let beside_end = here.end < line.end && is_space(here.end) != is_space(at);
    if beside_end {
        return Some(here.start..run(here.end).end);
    }
    let before = cluster::previous(text, here.start);
    match here.start > line.start && is_space(before) {
        true => Some(run(before).start..here.end),
        false => Some(here),
    }
}

/// Range of the quoted text at the position in its line, or of the next one.
fn quoted(text: &str, at: usize, quote: char) -> Option<Range<usize>> {
    let line = motion::lines(text, at, at, 0);
    let mut is_escaped = false;
    let mut open = None;
    for (offset, letter) in cluster::slice(text, line.clone()).char_indices() {
        let here = line.start + offset;
        let was_escaped = is_escaped;
        is_escaped = letter == '\\' && !was_escaped;
        match (open, was_escaped) {
            (_, true) => {}
            _ if letter != quote => {}
            (Some(start), false) if here >= at => return Some(start..here + 1),
            (Some(_), false) => open = None,
            (None, false) => open = Some(here),
        }
    }
    None
}

/// Range of the innermost brackets around the position.
fn bracketed(text: &str, at: usize, open: char, close: char) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let before = cluster::slice(text, 0..cluster::next(text, at));
    let start = before.char_indices().rev().find(|(here, letter)| {
        if *letter == close && *here != at {
            depth += 1;
        } else if *letter == open && depth > 0 {
            depth -= 1;
        } else {
            return *letter == open;
        }
        false
    })?;
    let start = start.0;
    let mut depth = 0_usize;
    let after = cluster::slice(text, start..text.len());
    let end = after.char_indices().find(|(_, letter)| {
        if *letter == open {
            depth += 1;
        } else if *letter == close {
            depth -= 1;
            return depth == 0;
        }
        false
    })?;
    Some(start..start + end.0 + 1)
}
