//! Keeps the live area at the bottom of the screen. When it shrinks, rows that scrolled away are drawn above the
//! conversation again; they are in the scrollback as well, so they are deleted, not scrolled, when room is needed.

use ratatui::text::Line;

use super::cells::cells;
use super::pen::{Moves, Pen, Place};

/// Number of empty rows below the live area from which they are filled.
const FILL_FROM: usize = 3;
const SAVE_CURSOR: &str = "\u{1b}7";
const RESTORE_CURSOR: &str = "\u{1b}8";

/// Position of the live area on the screen, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Floor {
    /// Rows printed since the position became unknown.
    printed: usize,
    /// Empty rows below the live area; `None` while the position is unknown.
    gap: Option<usize>,
    /// Rows at the top of the screen that are in the scrollback as well.
    repeated: usize,
}

impl Floor {
    /// Deletes repeated rows before `new` rows take the place of the `old` rows of the live area.
    pub(super) fn make_room(&mut self, old: usize, new: usize) -> String {
        let room = old + self.gap.unwrap_or_default();
        self.delete(new.saturating_sub(room))
    }

    /// Deletes all repeated rows.
    pub(super) fn delete_all(&mut self) -> String {
        self.delete(self.repeated)
    }

    fn delete(&mut self, most: usize) -> String {
        let rows = most.min(self.repeated);
        if rows == 0 {
            return String::new();
        }
        self.repeated -= rows;
        self.gap = self.gap.map(|gap| gap + rows);
        format!("{SAVE_CURSOR}\u{1b}[H\u{1b}[{rows}M{RESTORE_CURSOR}\u{1b}[{rows}A")
    }

    /// Records that `printed` rows and a live area of `live` rows took the place of `old` rows.
    pub(super) fn painted(&mut self, old: usize, printed: usize, live: usize, screen: usize) {
        self.printed = self.printed.saturating_add(printed);
        self.gap = match self.gap {
            Some(gap) => Some((old + gap).saturating_sub(printed + live)),
            // As many rows do not fit above the bottom, wherever the first one was.
            None => (self.printed + live >= screen).then_some(0),
        };
    }

    /// True if rows are missing below the live area.
    pub(super) fn is_open(&self) -> bool {
        self.gap.is_some_and(|gap| gap >= FILL_FROM)
    }

    /// Draws the rows of the conversation that precede the visible ones, which moves all others down. `past` ends with
    /// the last row above the live area.
    pub(super) fn fill(
        &mut self,
        past: &[Line<'static>],
        live: usize,
        (columns, screen): (usize, usize),
    ) -> String {
        let Some(gap) = self.gap.filter(|_| self.is_open()) else {
            return String::new();
        };
        let visible = screen.saturating_sub(live + gap);
        let end = past.len().saturating_sub(visible);
        let rows = past.get(end.saturating_sub(gap)..end).unwrap_or_default();
        if rows.is_empty() {
            return String::new();
        }
        let count = rows.len();
        let start = Place {
            row: 0,
            column: Some(0),
        };
        let mut pen = Pen::new(columns, Moves::Absolute, start);
        for (row, line) in rows.iter().enumerate() {
            pen.go(row, 0);
            pen.row(&cells(line, columns), false);
        }
        pen.draw_plainly();
        self.repeated += count;
        self.gap = Some(gap - count);
        let drawn = pen.finish();
        format!("{SAVE_CURSOR}\u{1b}[H\u{1b}[{count}L{drawn}{RESTORE_CURSOR}\u{1b}[{count}B")
    }
}
