//! Steps through a text by what people see as one letter, and by words.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::chips::is_mark;

/// What a letter is to movements by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Space,
    Word,
    Sign,
    /// A chip is a word of its own, also beside another one.
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

/// The part of the text; nothing where the range does not fit.
pub(super) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// The letter that begins here; empty at the end.
pub(super) fn at(text: &str, position: usize) -> &str {
    let bytes = text.as_bytes();
    // Nothing joins two ASCII characters where there are no carriage returns, and finding out is the slow part.
    let is_alone = |position: usize| bytes.get(position).is_none_or(u8::is_ascii);
    if is_alone(position) && is_alone(position + 1) {
        return text.get(position..position + 1).unwrap_or_default();
    }
    let rest = slice(text, position..text.len());
    rest.graphemes(true).next().unwrap_or_default()
}

/// Where the next letter begins.
pub(super) fn next(text: &str, position: usize) -> usize {
    (position + at(text, position).len()).min(text.len())
}

/// Where the letter before begins.
pub(super) fn previous(text: &str, position: usize) -> usize {
    let mut cursor = GraphemeCursor::new(position, text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The letter that ends here; empty at the beginning.
pub(super) fn before(text: &str, position: usize) -> &str {
    slice(text, previous(text, position)..position)
}

/// The position itself if it is between two letters, else the next one that is.
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

/// The letters of a part of the text, with where they begin.
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

/// Where the line of the position begins.
pub(super) fn line_start(text: &str, position: usize) -> usize {
    slice(text, 0..position).rfind('\n').map_or(0, |at| at + 1)
}

/// Where the line of the position ends, before its line break.
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

/// The beginning of the word at or before the position.
pub(super) fn word_left(text: &str, position: usize) -> usize {
    left_over(text, position, |class| class == Class::Word)
}

/// The beginning of what white space ends, at or before the position.
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
