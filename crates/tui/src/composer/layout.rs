//! Wraps the text into screen rows, and maps between text positions and screen cells.
//!
//! The last column of a row stays free, so that the cursor fits behind a full row, and every position has
//! exactly one cell: where two rows meet, it is the start of the second.

use std::borrow::Cow;
use std::ops::Range;

use super::chips::{Chips, is_mark};
use super::cluster;
use crate::text;

/// A tab is drawn as this many spaces.
const TAB: &str = "    ";

/// A text wrapped into rows.
pub(super) struct Layout<'a> {
    text: &'a str,
    chips: &'a Chips,
    /// Columns available for text in a row.
    room: usize,
    rows: Vec<Range<usize>>,
}

impl<'a> Layout<'a> {
    /// Wraps a text into rows, between words where possible.
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
                // White space that does not fit is hidden, and the next row starts behind it.
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

    /// Cell of a position, as (column, row).
    pub(super) fn place(&self, position: usize) -> (usize, usize) {
        let row = self.rows.partition_point(|row| row.start <= position);
        let row = row.saturating_sub(1);
        let start = self.rows.get(row).map_or(0, |row| row.start);
        let letters = cluster::all(self.text, start..position);
        let column: usize = letters.map(|(_, letter)| self.measure(letter)).sum();
        (column.min(self.room), row)
    }

    /// Position in a row at or before a column.
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

    /// Graphemes of a row with their positions, as drawn.
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

/// A row being filled.
#[derive(Default)]
struct Open {
    start: usize,
    used: usize,
    /// Position where the row can be broken, and the columns used up to there.
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

    /// Ends the row at its last break opportunity, or here, and continues with the rest.
    fn split(&mut self, here: usize) -> Range<usize> {
        let (at, used) = self.chance.take().unwrap_or((here, self.used));
        let finished = self.start..at;
        self.start = at;
        self.used -= used;
        finished
    }
}
