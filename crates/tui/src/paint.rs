//! Turns pictures into bytes: tracks what the terminal shows and writes only the differences.
//!
//! Inline, the finished conversation is printed into the terminal's own scrollback and a live area below it
//! is redrawn; all cursor movements are relative, because the position of that area on the screen is unknown.
//! In full screen, every position is known.
//!
//! Nothing is read from or written to the terminal here: a frame is a vector of bytes.

mod cells;
mod floor;
mod pen;
mod style;

use ratatui::text::Line;

use self::cells::{cells, row_after_reflow, width};
use self::floor::Floor;
use self::pen::{Moves, Pen, Place};

/// Starts a synchronised update; terminals without support ignore it.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// Enters the alternate screen, with its own keyboard flags: terminals keep them per screen.
const ENTER_FULL: &str = "\u{1b}[?1049h\u{1b}[>1u";
const LEAVE_FULL: &str = "\u{1b}[<1u\u{1b}[?1049l";

/// Content of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Picture {
    /// Rows from the top, each at most as wide as the terminal.
    pub(crate) rows: Vec<Line<'static>>,
    /// Column and row within `rows`. `None` hides the cursor.
    pub(crate) cursor: Option<(u16, u16)>,
}

/// Tracks what a terminal shows, and computes the bytes for the next frame.
#[derive(Debug)]
pub(crate) struct Painter {
    columns: usize,
    rows: usize,
    /// True if the terminal rewraps lines when its width changes.
    reflows: bool,
    /// `None` if unknown.
    cursor_shown: Option<bool>,
    live: Shown,
    floor: Floor,
    full: Shown,
}

/// Content of one of the two screens.
#[derive(Debug, Default)]
struct Shown {
    rows: Vec<Line<'static>>,
    /// Width it was drawn for.
    columns: usize,
    /// Last cursor position, in rows from the first.
    place: Place,
    /// False if the screen may differ from these rows.
    is_sure: bool,
}

/// Part of a picture that fits the terminal.
struct View<'a> {
    rows: &'a [Line<'static>],
    /// Column and row.
    cursor: Option<(usize, usize)>,
}

impl Painter {
    /// Creates a painter for an empty terminal. `reflows` is true if the terminal rewraps lines when its
    /// width changes.
    pub(crate) fn new((columns, rows): (u16, u16), reflows: bool) -> Self {
        Self {
            columns: usize::from(columns.max(1)),
            rows: usize::from(rows.max(1)),
            reflows,
            cursor_shown: None,
            live: Shown::default(),
            floor: Floor::default(),
            full: Shown::default(),
        }
    }

    /// Prints `above` into the scrollback and updates the live area to `live`. Empty if nothing changed. `past` returns
    /// the last rows that were printed, at most as many as it is asked for.
    pub(crate) fn inline(
        &mut self,
        above: &[Line<'static>],
        live: &Picture,
        past: impl FnOnce(usize) -> Vec<Line<'static>>,
    ) -> Vec<u8> {
        let view = self.view(live);
        let old = self.live.rows.len();
        if !self.live.is_sure {
            self.floor = Floor::default();
        }
        let mut body = self.floor.make_room(old, above.len() + view.rows.len());
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
        body.push_str(&pen.finish());
        self.floor.painted(old, above.len(), view.rows.len(), self.rows);
        if self.floor.is_open() {
            let size = (self.columns, self.rows);
            body.push_str(&self.floor.fill(&past(self.rows), view.rows.len(), size));
        }
        self.frame(&body, is_painted, view.cursor.is_some())
    }

    /// Updates the full screen to `screen`. Empty if nothing changed.
    pub(crate) fn full(&mut self, screen: &Picture) -> Vec<u8> {
        let view = self.view(screen);
        let mut pen = Pen::new(self.columns, Moves::Absolute, self.full.place);
        if !self.full.is_sure {
            // The position is unknown; this sequence sets it.
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

    /// Enters the alternate screen. The inline content stays and is back afterwards.
    pub(crate) fn enter_full(&mut self) -> Vec<u8> {
        self.full = Shown::default();
        ENTER_FULL.into()
    }

    /// Leaves the alternate screen.
    pub(crate) fn leave_full(&mut self) -> Vec<u8> {
        self.full = Shown::default();
        LEAVE_FULL.into()
    }

    /// Sets a new terminal size; the next frame repairs the damage.
    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) {
        let size = (usize::from(columns.max(1)), usize::from(rows.max(1)));
        if size == (self.columns, self.rows) {
            return;
        }
        (self.columns, self.rows) = size;
        self.floor = Floor::default();
        // A shorter terminal may have dropped rows below the cursor or pushed rows above it into the
        // scrollback.
        self.live.is_sure = false;
        self.full.is_sure = false;
    }

    /// Forgets the screen after other programs wrote to the terminal: the next frame draws everything, from
    /// the start of the live area unless it was erased.
    pub(crate) fn forget(&mut self) {
        self.cursor_shown = None;
        self.floor = Floor::default();
        self.live.is_sure = false;
        self.full.is_sure = false;
    }

    /// Erases the live area and leaves a visible cursor in its first column for later output.
    pub(crate) fn erase(&mut self) -> Vec<u8> {
        let mut body = self.floor.delete_all();
        self.floor = Floor::default();
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
        body.push_str(&pen.finish());
        self.frame(&body, false, true)
    }

    /// Returns the part of a picture that fits: the last rows, or those from the cursor on.
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

    /// Rewrites changed rows and appends new ones.
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
            // Without a live area, the cursor stays below the printed lines.
            if row < last || view.rows.is_empty() {
                pen.next_row();
            }
        }
    }

    /// Number of rows from the first row of the live area to the cursor, on the terminal as it is now.
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

    /// Wraps drawn content in a synchronised update with a hidden cursor.
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
    /// Records the rows now on screen, without copying unchanged rows.
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
