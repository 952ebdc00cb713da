//! The text broken into rows of a screen, and positions in it as places on that screen.
//!
//! A row leaves its last column free, so that the cursor has a place behind a full row, and every position has exactly
//! one place: the one where two rows meet is the beginning of the second.

use std::borrow::Cow;
use std::ops::Range;

use super::chips::{Chips, is_mark};
use super::cluster;
use crate::text;

/// A tab is drawn as so many spaces.
const TAB: &str = "    ";

/// A text in rows.
pub(super) struct Layout<'a> {
    text: &'a str,
    chips: &'a Chips,
    /// How many columns of a row text can take.
    room: usize,
    rows: Vec<Range<usize>>,
}

impl<'a> Layout<'a> {
    /// Breaks a text into rows, between words where it can.
    pub(super) fn new(text: &'a str, chips: &'a Chips, room: usize) -> Self {
        let mut layout = Self {
            text,
            chips,
            room: room.max(1),
            rows: Vec::new(),
        };
        let mut row = Open::default();
        for (at, letter) in cluster::all(text, 0..text.len()) {
            if letter == "\n" {
                layout.rows.push(row.start..at);
                row = Open::from(at + 1);
                continue;
            }
            let wide = layout.measure(letter);
            let end = at + letter.len();
            let is_space = letter.starts_with(char::is_whitespace);
            if row.used + wide > layout.room && is_space {
                // White space that does not fit is not seen, and the next row begins behind it.
                layout.rows.push(row.start..end);
                row = Open::from(end);
                continue;
            }
            let stands_alone = wide > 1;
            if stands_alone {
                row.offer(at);
            }
            if row.used + wide > layout.room {
                let finished = row.split(at);
                layout.rows.push(finished);
            }
            row.used += wide;
            if is_space || stands_alone {
                row.offer(end);
            }
        }
        layout.rows.push(row.start..text.len());
        layout
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The place of a position, as (column, row).
    pub(super) fn place(&self, position: usize) -> (usize, usize) {
        let row = self.rows.partition_point(|row| row.start <= position);
        let row = row.saturating_sub(1);
        let start = self.rows.get(row).map_or(0, |row| row.start);
        let letters = cluster::all(self.text, start..position);
        let column: usize = letters.map(|(_, letter)| self.measure(letter)).sum();
        (column.min(self.room), row)
    }

    /// The position in a row that is nearest to a column, not behind it.
    pub(super) fn position(&self, column: usize, row: usize) -> Option<usize> {
        let range = self.rows.get(row)?.clone();
        let meets_next = self.rows.get(row + 1).is_some_and(|next| next.start == range.end);
        let mut used = 0;
        let mut position = range.start;
        for (at, letter) in cluster::all(self.text, range.clone()) {
            position = at;
            used += self.measure(letter);
            if used > column {
                return Some(position);
            }
        }
        Some(if meets_next { position } else { range.end })
    }

    /// The letters of a row with where they begin, as they are drawn.
    pub(super) fn letters(&self, row: usize) -> impl Iterator<Item = (usize, Cow<'a, str>)> {
        let range = self.rows.get(row).cloned().unwrap_or_default();
        let letters = cluster::all(self.text, range).map(|(at, letter)| (at, self.drawn(letter)));
        let mut used = 0;
        letters.take_while(move |(_, letter)| {
            used += text::width(letter);
            used <= self.room
        })
    }

    fn measure(&self, letter: &str) -> usize {
        match letter.as_bytes() {
            [b' '..=b'~'] => 1,
            _ => text::width(&self.drawn(letter)),
        }
    }

    fn drawn<'b>(&self, letter: &'b str) -> Cow<'b, str> {
        let drawn = match letter {
            "\t" => Cow::Borrowed(TAB),
            letter if letter.contains(is_mark) => self.chips.show(letter),
            letter => Cow::Borrowed(letter),
        };
        match letter.len() {
            1 if letter != "\t" => drawn,
            _ if text::width(&drawn) <= self.room => drawn,
            _ => Cow::Owned(text::cut(&drawn, self.room)),
        }
    }
}

/// A row that is being filled.
#[derive(Default)]
struct Open {
    start: usize,
    used: usize,
    /// Where the row can be broken, and how many columns were used up to there.
    chance: Option<(usize, usize)>,
}

impl Open {
    fn from(start: usize) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    fn offer(&mut self, at: usize) {
        if self.used > 0 {
            self.chance = Some((at, self.used));
        }
    }

    /// Ends the row at its last chance, or here, and goes on with what is left.
    fn split(&mut self, here: usize) -> Range<usize> {
        let (at, used) = self.chance.take().unwrap_or((here, self.used));
        let finished = self.start..at;
        self.start = at;
        self.used -= used;
        finished
    }
}
