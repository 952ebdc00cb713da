//! Matching that ignores the form of quotes, dashes and blanks.

use std::ops::Range;
use std::time::Duration;

use similar::{DiffTag, TextDiff};

use super::matching::{Found, How, NoMatch, exact, line_index, uses_crlf, with_crlf, with_lf};
use crate::typography::plain_text;

/// Time limit for determining the unchanged parts; only unrealistic texts reach it.
const TIME: Duration = Duration::from_millis(300);

/// Returns the only place that is equal in plain characters; `None` if there is none. Characters that the
/// edit does not change keep their form in the file. Both `old` and `new` have plain line breaks.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Result<Found, NoMatch>> {
    let there = with_lf(text);
    let (plain, wanted) = (plain_text(&there), plain_text(old));
    if *plain == *there && *wanted == *old {
        return None;
    }
    let starts = exact(&plain, &wanted, false);
    let start = match starts.as_slice() {
        [] => return None,
        [start] => start,
        several => return Some(Err(NoMatch::SeveralAlike { count: several.len() })),
    };
    let place = Range {
        start: unfolded(text, start.start),
        end: unfolded(text, start.end),
    };
    let matched = text.get(place.clone()).unwrap_or_default();
    let replacement = keeping(&with_lf(matched), old, new);
    let replacement = if uses_crlf(text, matched) {
        with_crlf(&replacement)
    } else {
        replacement
    };
    Some(Ok(Found {
        first_line: line_index(text, place.start),
        places: vec![place],
        replacement,
        how: How::Typography,
    }))
}

/// Returns the position in the text of the character at `at` in its plain form with plain line breaks.
fn unfolded(text: &str, at: usize) -> usize {
    let mut plain_at = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((index, letter)) = letters.next() {
        if plain_at >= at {
            return index;
        }
        let is_part_of_break = letter == '\r' && letters.peek().is_some_and(|(_, next)| *next == '\n');
        if !is_part_of_break {
            plain_at += crate::typography::plain(letter).len_utf8();
        }
    }
    text.len()
}

/// Returns the new text, with the parts it shares with the old one in the form of the file.
fn keeping(there: &str, old: &str, new: &str) -> String {
    let (there, letters): (Vec<char>, Vec<char>) = (there.chars().collect(), new.chars().collect());
    let diff = TextDiff::configure().timeout(TIME).diff_chars(old, new);
    let mut kept = String::with_capacity(new.len());
    for op in diff.ops() {
        let (tag, old, new) = op.as_tag_tuple();
        let letters = match tag {
            DiffTag::Equal => there.get(old),
            DiffTag::Insert | DiffTag::Replace | DiffTag::Delete => letters.get(new),
        };
        kept.extend(letters.unwrap_or_default());
    }
    kept
}
