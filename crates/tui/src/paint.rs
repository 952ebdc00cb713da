//! From pictures to bytes: what is shown is known, and only what changed is written.
//!
//! Inline, finished conversation is printed into the terminal's own scrollback and a live area below it is redrawn; all
//! moves are relative, because where on the screen that area lies is not known. Full screen, every place is known.
//!
//! Nothing is read from the terminal and nothing is written to it here: a frame is a vector of bytes.

mod cells;
mod pen;
mod style;

use ratatui::text::Line;

use self::cells::{cells, row_after_reflow, width};
use self::pen::{Moves, Pen, Place};

/// A terminal that knows it shows a frame at once; others ignore it.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// The other screen, with keyboard flags of its own: terminals keep them per screen.
const ENTER_FULL: &str = "\u{1b}[?1049h\u{1b}[>1u";
const LEAVE_FULL: &str = "\u{1b}[<1u\u{1b}[?1049l";

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Picture {
    /// From the top, each as wide as the terminal at most.
    pub(crate) rows: Vec<Line<'static>>,
    /// The column and the row, within `rows`. Without one the cursor is hidden.
    pub(crate) cursor: Option<(u16, u16)>,
}

/// Knows what a terminal shows, and writes what makes it show something else.
#[derive(Debug)]
pub(crate) struct Painter {
    columns: usize,
    rows: usize,
    /// Whether the terminal breaks rows anew when its width changes.
    reflows: bool,
    /// `None` where nobody knows.
    cursor_shown: Option<bool>,
    live: Shown,
    full: Shown,
}

/// What is shown on one of the two screens.
#[derive(Debug, Default)]
struct Shown {
    rows: Vec<Line<'static>>,
    /// The width it was drawn for.
    columns: usize,
    /// Where the cursor was left, in rows from the first.
    place: Place,
    /// Whether the rows are on the screen as they are here.
    is_sure: bool,
}

/// The part of a picture that fits.
struct View<'a> {
    rows: &'a [Line<'static>],
    /// Column and row.
    cursor: Option<(usize, usize)>,
}

impl Painter {
    /// A painter for a terminal of so many columns and rows, with nothing shown. `reflows` says that the terminal breaks
    /// rows anew when its width changes.
    pub(crate) fn new((columns, rows): (u16, u16), reflows: bool) -> Self {
        Self {
            columns: usize::from(columns.max(1)),
            rows: usize::from(rows.max(1)),
            reflows,
            cursor_shown: None,
            live: Shown::default(),
            full: Shown::default(),
        }
    }

    /// Prints `above` into the scrollback above the live area and brings the live area to `live`. Empty when nothing
    /// changed.
    pub(crate) fn inline(&mut self, above: &[Line<'static>], live: &Picture) -> Vec<u8> {
        let view = self.view(live);
        let mut pen = Pen::new(self.columns, Moves::Relative, self.live.place);
        if !self.live.is_sure {
            pen.go_to_top(self.rows_above_cursor());
            pen.reset();
            pen.clear_below();
            self.live.rows.clear();
        }
        if above.is_empty() {
            self.change_rows(&mut pen, &view);
        } else {
            self.print_rows(&mut pen, above, &view);
        }
        let total = above.len() + view.rows.len();
        if self.live.rows.len() > total {
            pen.go(total, 0);
            pen.clear_below();
        }
        let is_painted = !pen.is_unused();
        let last = view.rows.len().saturating_sub(1);
        let (column, row) = view.cursor.unwrap_or((0, last));
        pen.draw_plainly();
        pen.go(above.len() + row, column);
        self.live.place = Place {
            row,
            column: Some(column),
        };
        self.live.take(view.rows, self.columns);
        self.frame(&pen.finish(), is_painted, view.cursor.is_some())
    }

    /// Brings the whole screen to `screen`. Empty when nothing changed.
    pub(crate) fn full(&mut self, screen: &Picture) -> Vec<u8> {
        let view = self.view(screen);
        let mut pen = Pen::new(self.columns, Moves::Absolute, self.full.place);
        if !self.full.is_sure {
            // The place is not known, and this says it.
            pen = Pen::new(self.columns, Moves::Absolute, Place { row: 1, column: None });
            pen.reset();
            pen.go(0, 0);
            pen.clear_below();
            self.full.rows.clear();
        }
        let blank = Line::default();
        for row in 0..self.full.rows.len().max(view.rows.len()) {
            let old = self.full.rows.get(row).unwrap_or(&blank);
            let new = view.rows.get(row).unwrap_or(&blank);
            if old != new {
                pen.change(row, &cells(old, self.columns), &cells(new, self.columns));
            }
        }
        let is_painted = !pen.is_unused();
        pen.draw_plainly();
        if let Some((column, row)) = view.cursor {
            pen.go(row, column);
        }
        self.full.place = pen.place();
        self.full.take(view.rows, self.columns);
        self.frame(&pen.finish(), is_painted, view.cursor.is_some())
    }

    /// Goes to the other screen. What is shown inline stays as it is and is there again afterwards.
    pub(crate) fn enter_full(&mut self) -> Vec<u8> {
        self.full = Shown::default();
        ENTER_FULL.into()
    }

    /// Comes back from the other screen.
    pub(crate) fn leave_full(&mut self) -> Vec<u8> {
        self.full = Shown::default();
        LEAVE_FULL.into()
    }

    /// The terminal has another size; the next frame repairs what that did.
    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) {
        let size = (usize::from(columns.max(1)), usize::from(rows.max(1)));
        if size == (self.columns, self.rows) {
            return;
        }
        (self.columns, self.rows) = size;
        // A lower terminal may have dropped rows below the cursor or pushed rows above it into the scrollback.
        self.live.is_sure = false;
        self.full.is_sure = false;
    }

    /// Others have written to the terminal: the next frame draws everything, from where the live area began if it was not
    /// erased before.
    pub(crate) fn forget(&mut self) {
        self.cursor_shown = None;
        self.live.is_sure = false;
        self.full.is_sure = false;
    }

    /// Removes the live area and leaves a shown cursor in its first column, for what comes after.
    pub(crate) fn erase(&mut self) -> Vec<u8> {
        let mut pen = Pen::new(self.columns, Moves::Relative, self.live.place);
        pen.go_to_top(self.rows_above_cursor());
        if !self.live.is_sure {
            pen.reset();
        }
        pen.clear_below();
        self.live = Shown {
            columns: self.columns,
            place: pen.place(),
            is_sure: true,
            rows: Vec::new(),
        };
        self.frame(&pen.finish(), false, true)
    }

    /// The part of a picture that fits: the rows that end at the bottom, or those from the cursor on.
    fn view<'a>(&self, picture: &'a Picture) -> View<'a> {
        let cursor = picture.cursor.map(|(column, row)| {
            let last = picture.rows.len().saturating_sub(1);
            (
                usize::from(column).min(self.columns - 1),
                usize::from(row).min(last),
            )
        });
        let mut first = picture.rows.len().saturating_sub(self.rows);
        if let Some((_, row)) = cursor {
            first = first.min(row);
        }
        let (_, rows) = picture.rows.split_at(first);
        View {
            rows: rows.get(..self.rows).unwrap_or(rows),
            cursor: cursor.map(|(column, row)| (column, row - first)),
        }
    }

    /// Rewrites what differs, row by row, and appends what is new.
    fn change_rows(&self, pen: &mut Pen, view: &View<'_>) {
        let old = &self.live.rows;
        for (row, new) in view.rows.iter().enumerate() {
            match old.get(row) {
                Some(old) if old == new => {}
                Some(old) => pen.change(row, &cells(old, self.columns), &cells(new, self.columns)),
                None => {
                    pen.begin_row(row);
                    pen.row(&cells(new, self.columns), false);
                }
            }
        }
    }

    /// Writes everything from the first row of the live area on, which moves the live area down.
    fn print_rows(&self, pen: &mut Pen, above: &[Line<'static>], view: &View<'_>) {
        pen.go(0, 0);
        let last = (above.len() + view.rows.len()).saturating_sub(1);
        for (row, line) in above.iter().chain(view.rows).enumerate() {
            pen.row(&cells(line, self.columns), row < self.live.rows.len());
            // Without a live area the cursor waits below what was printed.
            if row < last || view.rows.is_empty() {
                pen.next_row();
            }
        }
    }

    /// How many rows the cursor is below the first row of the live area, on the terminal as it is now.
    fn rows_above_cursor(&self) -> usize {
        let Place { row, column } = self.live.place;
        if !self.reflows || self.live.columns == self.columns {
            return row;
        }
        let drawn = |line| cells(line, self.live.columns);
        let rows_of = |line| {
            let cells = drawn(line);
            let last = width(&cells).saturating_sub(1);
            row_after_reflow(&cells, last, self.columns) + 1
        };
        let before: usize = self.live.rows.iter().take(row).map(rows_of).sum();
        let own = self.live.rows.get(row).map_or(0, |line| {
            row_after_reflow(&drawn(line), column.unwrap_or_default(), self.columns)
        });
        before + own
    }

    /// The frame around what was drawn: shown at once, and without a cursor that jumps about.
    fn frame(&mut self, body: &str, is_painted: bool, wants_cursor: bool) -> Vec<u8> {
        let mut shown = self.cursor_shown;
        let mut frame = String::from(BEGIN);
        if is_painted && shown != Some(false) {
            frame.push_str(HIDE_CURSOR);
            shown = Some(false);
        }
        frame.push_str(body);
        if shown != Some(wants_cursor) {
            frame.push_str(if wants_cursor { SHOW_CURSOR } else { HIDE_CURSOR });
        }
        if body.is_empty() && self.cursor_shown == Some(wants_cursor) {
            return Vec::new();
        }
        self.cursor_shown = Some(wants_cursor);
        frame.push_str(END);
        frame.into_bytes()
    }
}

impl Shown {
    /// These rows are on the screen now. Rows that were there already are not copied again.
    fn take(&mut self, rows: &[Line<'static>], columns: usize) {
        self.rows.truncate(rows.len());
        for (old, new) in self.rows.iter_mut().zip(rows) {
            if old != new {
                old.clone_from(new);
            }
        }
        self.rows.extend(rows.iter().skip(self.rows.len()).cloned());
        self.columns = columns;
        self.is_sure = true;
    }
}

#[cfg(test)]
#[path = "paint_tests.rs"]
mod tests;
