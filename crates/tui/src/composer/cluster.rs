//! Steps through a text by grapheme clusters and by words.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::chips::is_mark;

/// Class of a grapheme in movements by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Space,
    Word,
    Sign,
    /// A chip is a word of its own, even next to another chip.
    Chip,
}

impl Class {
    pub(super) fn of(cluster: &str) -> Self {
        if cluster.contains(is_mark) {
            return Self::Chip;
        }
        match cluster.chars().next() {
            None => Self::Space,
            Some(letter) if letter.is_whitespace() => Self::Space,
            Some(letter) if letter.is_alphanumeric() || letter == '_' => Self::Word,
            Some(_) => Self::Sign,
        }
    }
}

/// Slice of the text; empty if the range does not fit.
pub(super) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Grapheme at this position; empty at the end.
pub(super) fn at(text: &str, position: usize) -> &str {
    let bytes = text.as_bytes();
    // Two ASCII characters never join without a carriage return, and the general check is slow.
    let is_alone = |position: usize| bytes.get(position).is_none_or(u8::is_ascii);
    if is_alone(position) && is_alone(position + 1) {
        return text.get(position..position + 1).unwrap_or_default();
    }
    let rest = slice(text, position..text.len());
    rest.graphemes(true).next().unwrap_or_default()
}

/// Start of the next grapheme.
pub(super) fn next(text: &str, position: usize) -> usize {
    (position + at(text, position).len()).min(text.len())
}

/// Start of the previous grapheme.
pub(super) fn previous(text: &str, position: usize) -> usize {
    let mut cursor = GraphemeCursor::new(position, text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// Grapheme before this position; empty at the start.
pub(super) fn before(text: &str, position: usize) -> &str {
    slice(text, previous(text, position)..position)
}

/// The position itself if it is a grapheme boundary, otherwise the next boundary.
pub(super) fn snap(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position += 1;
    }
    let mut cursor = GraphemeCursor::new(position, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        _ => position,
    }
}

/// Graphemes of a part of the text, with their positions.
pub(super) fn all(text: &str, range: Range<usize>) -> impl Iterator<Item = (usize, &str)> {
    let mut position = range.start;
    std::iter::from_fn(move || {
        let cluster = at(text, position);
        if position >= range.end || cluster.is_empty() {
            return None;
        }
        position += cluster.len();
        Some((position - cluster.len(), cluster))
    })
}

/// Start of the line at this position.
pub(super) fn line_start(text: &str, position: usize) -> usize {
    slice(text, 0..position).rfind('\n').map_or(0, |at| at + 1)
}

/// End of the line at this position, before its line break.
pub(super) fn line_end(text: &str, position: usize) -> usize {
    let rest = slice(text, position..text.len());
    rest.find('\n').map_or(text.len(), |at| position + at)
}

/// The end of the word at or after the position.
pub(super) fn word_right(text: &str, position: usize) -> usize {
    let mut position = position;
    let mut inside = false;
    while position < text.len() {
        match Class::of(at(text, position)) {
            Class::Word => inside = true,
            _ if inside => break,
            Class::Chip => return next(text, position),
            Class::Space | Class::Sign => {}
        }
        position = next(text, position);
    }
    position
}

/// The start of the word at or before the position.
pub(super) fn word_left(text: &str, position: usize) -> usize {
    left_over(text, position, |class| class == Class::Word)
}

/// The start of the whitespace-delimited word at or before the position.
pub(super) fn blank_left(text: &str, position: usize) -> usize {
    left_over(text, position, |class| class != Class::Space)
}

fn left_over(text: &str, position: usize, is_word: impl Fn(Class) -> bool) -> usize {
    let mut position = position;
    let mut inside = false;
    while position > 0 {
        match Class::of(before(text, position)) {
            Class::Chip if inside => break,
            Class::Chip => return previous(text, position),
            class if is_word(class) => inside = true,
            _ if inside => break,
            _ => {}
        }
        position = previous(text, position);
    }
    position
}
