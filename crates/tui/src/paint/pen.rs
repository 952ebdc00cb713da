//! Writes cells, and tracks the terminal's cursor position and style.

use super::cells::{Cell, width};
use super::style::CellStyle;

/// Addressing of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// Relative to the cursor: the position on the screen is unknown.
    Relative,
    /// From the corner of the screen.
    Absolute,
}

/// Cursor position. The column is unknown after the last column of a row, where a terminal delays the wrap,
/// and after a grapheme of uncertain width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) column: Option<usize>,
}

/// Bytes of a frame being composed.
#[derive(Debug)]
pub(super) struct Pen {
    out: String,
    place: Place,
    look: CellStyle,
    columns: usize,
    moves: Moves,
}

impl Pen {
    /// Creates a pen with the default style.
    pub(super) fn new(columns: usize, moves: Moves, place: Place) -> Self {
        Self {
            out: String::new(),
            place,
            look: CellStyle::default(),
            columns,
            moves,
        }
    }

    /// True if nothing was written yet.
    pub(super) fn is_unused(&self) -> bool {
        self.out.is_empty()
    }

    /// Current cursor position.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns the bytes written.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Moves the cursor to an existing row.
    pub(super) fn go(&mut self, row: usize, column: usize) {
        if row == self.place.row + 1 && column == 0 {
            return self.next_row();
        }
        if row != self.place.row {
            match self.moves {
                Moves::Relative => self.go_to_row(row),
                Moves::Absolute => {
                    self.out.push_str(&format!("\u{1b}[{};{}H", row + 1, column + 1));
                    self.place = Place {
                        row,
                        column: Some(column),
                    };
                }
            }
        }
        self.go_to_column(column);
    }

    /// Moves to the first column of a row that may not exist yet, below one that does.
    pub(super) fn begin_row(&mut self, row: usize) {
        match row.checked_sub(1) {
            Some(above) => {
                self.go_to_row(above);
                self.next_row();
            }
            None => self.go(0, 0),
        }
    }

    /// Moves up by this many rows, at most to the top of the screen, and numbers that row as the first.
    pub(super) fn go_to_top(&mut self, rows: usize) {
        self.up(rows);
        self.out.push('\r');
        self.place = Place {
            row: 0,
            column: Some(0),
        };
    }

    /// Moves to the first column of the next row, which may not exist yet: only a line break creates one.
    pub(super) fn next_row(&mut self) {
        // A terminal fills a row that scrolls in with the current background.
        self.draw_plainly();
        self.out.push_str("\r\n");
        self.place = Place {
            row: self.place.row + 1,
            column: Some(0),
        };
    }

    /// Clears from the cursor to the end of the screen.
    pub(super) fn clear_below(&mut self) {
        self.draw_plainly();
        self.out.push_str("\u{1b}[J");
    }

    /// Resets the style whatever it was.
    pub(super) fn reset(&mut self) {
        self.out.push_str("\u{1b}[m");
        self.look = CellStyle::default();
    }

    /// Switches to the default style.
    pub(super) fn draw_plainly(&mut self) {
        self.draw_as(CellStyle::default());
    }

    /// Writes a whole row from its first column; `over` is true if the row may have other content.
    pub(super) fn row(&mut self, new: &[Cell<'_>], over: bool) {
        self.put(new);
        if over || new.iter().any(Cell::is_uncertain) {
            self.clear_after(new);
        }
    }

    /// Updates a row from `old` to `new`.
    pub(super) fn change(&mut self, row: usize, old: &[Cell<'_>], new: &[Cell<'_>]) {
        let same = |(one, other): &(&Cell<'_>, &Cell<'_>)| one == other;
        let before = old.iter().zip(new).take_while(same).count();
        if before == old.len() && before == new.len() {
            return;
        }
        let (kept, new_rest) = new.split_at(before);
        let (_, old_rest) = old.split_at(before);
        let is_uncertain = old_rest.iter().chain(new_rest).any(Cell::is_uncertain);
        let (old_width, new_width) = (width(old_rest), width(new_rest));
        self.go(row, width(kept));
        if is_uncertain || old_width != new_width {
            self.put(new_rest);
            if new_width < old_width || new.iter().chain(old).any(Cell::is_uncertain) {
                self.clear_after(new);
            }
            return;
        }
        let backwards = old_rest.iter().rev().zip(new_rest.iter().rev());
        let after = backwards.take_while(same).count();
        self.put(new_rest.split_at(new_rest.len() - after).0);
    }

    fn put(&mut self, cells: &[Cell<'_>]) {
        for cell in cells {
            self.draw_as(cell.look);
            if cell.is_uncertain() {
                self.put_uncertain(cell);
            } else {
                self.out.push_str(&cell.text);
                self.advance(cell.width);
            }
        }
    }

    /// Writes a grapheme of uncertain width: over cleared cells in case it is narrower, and without wrapping
    /// in case it is wider. The following cells are positioned by column.
    fn put_uncertain(&mut self, cell: &Cell<'_>) {
        let column = self.place.column.unwrap_or_default();
        let next = column + cell.width;
        self.out.push_str(&format!("\u{1b}[{}X", cell.width));
        let reach: usize = cell.text.chars().count() * 2;
        if column + reach > self.columns {
            self.out.push_str("\u{1b}[?7l");
            self.out.push_str(&cell.text);
            self.out.push_str("\u{1b}[?7h");
        } else {
            self.out.push_str(&cell.text);
        }
        self.place.column = None;
        if next < self.columns {
            self.go_to_column(next);
        }
    }

    fn advance(&mut self, columns: usize) {
        self.place.column = self
            .place
            .column
            .map(|column| column + columns)
            .filter(|column| *column < self.columns);
    }

    /// Clears the row to the right of the cells just written. In a full row there is nothing to clear, and
    /// the terminal would clear the last character.
    fn clear_after(&mut self, cells: &[Cell<'_>]) {
        if width(cells) < self.columns {
            self.draw_plainly();
            self.out.push_str("\u{1b}[K");
        }
    }

    fn up(&mut self, rows: usize) {
        match rows {
            0 => {}
            1 => self.out.push_str("\u{1b}[A"),
            rows => self.out.push_str(&format!("\u{1b}[{rows}A")),
        }
    }

    fn go_to_row(&mut self, row: usize) {
        match row.checked_sub(self.place.row) {
            None => self.up(self.place.row - row),
            Some(0) => {}
            Some(1) => self.out.push_str("\u{1b}[B"),
            Some(rows) => self.out.push_str(&format!("\u{1b}[{rows}B")),
        }
        self.place.row = row;
    }

    fn go_to_column(&mut self, column: usize) {
        if self.place.column == Some(column) {
            return;
        }
        match column {
            0 => self.out.push('\r'),
            column => self.out.push_str(&format!("\u{1b}[{}G", column + 1)),
        }
        self.place.column = Some(column);
    }

    fn draw_as(&mut self, look: CellStyle) {
        self.out.push_str(&self.look.sequence_to(look));
        self.look = look;
    }
}
