//! Tables: columns side by side where there is room, a list of rows where there is not.

use pulldown_cmark::Alignment;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::flow;
use crate::text::width;
use crate::theme::{Theme, Tone};

/// Minimum width of a shrunk column.
const MIN_COLUMN: usize = 6;
/// Columns between two cells.
const GAP: usize = 3;

type Cell = Vec<Span<'static>>;

/// A table that is collected cell by cell. The first row is the header.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        let rows = Vec::new();
        Self { alignments, rows }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn add_cell(&mut self, mut cell: Cell) {
        if self.rows.len() == 1 {
            for span in &mut cell {
                span.style = span.style.add_modifier(Modifier::BOLD);
            }
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        match self.widths(columns) {
            Some(widths) => self.grid(&widths, theme),
            None => self.list(columns),
        }
    }

    fn count(&self) -> usize {
        self.alignments.len()
    }

    fn cell(row: &[Cell], index: usize) -> &[Span<'static>] {
        row.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the column widths, or `None` if the columns do not fit side by side.
    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let gaps = GAP * self.count().saturating_sub(1);
        let room = columns.checked_sub(gaps).filter(|room| *room > 0)?;
        let measure = |index: usize| {
            let sizes = self.rows.iter().map(|row| flow::measure(Self::cell(row, index)));
            sizes.fold((1, 1), |(whole, word), size| {
                (whole.max(size.0), word.max(size.1))
            })
        };
        let sizes: Vec<(usize, usize)> = (0..self.count()).map(measure).collect();
        let wanted: Vec<usize> = sizes.iter().map(|(whole, _)| *whole).collect();
        if wanted.iter().sum::<usize>() <= room {
            return Some(wanted);
        }
        let words: Vec<usize> = sizes.iter().map(|(_, word)| *word).collect();
        let least: Vec<usize> = wanted.iter().map(|whole| (*whole).min(MIN_COLUMN)).collect();
        let floors = [words, least]
            .into_iter()
            .find(|floors| floors.iter().sum::<usize>() <= room)?;
        Some(share(&wanted, &floors, room))
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Tone::Dim);
        let rule = |cross: &str, sign: &str| {
            let parts: Vec<String> = widths.iter().map(|wide| sign.repeat(*wide)).collect();
            Line::from(Span::styled(parts.join(cross), dim))
        };
        let rule = rule(theme.sign("─┼─", "-+-"), theme.sign("─", "-"));
        let gap = Span::styled(theme.sign(" │ ", " | "), dim);
        let rows: Vec<Vec<Line<'static>>> = self.rows.iter().map(|row| self.row(row, widths, &gap)).collect();
        // If rows take several lines, rules show which lines form a row.
        let is_ruled = rows.iter().any(|lines| lines.len() > 1);
        let mut lines = Vec::new();
        for (index, row) in rows.into_iter().enumerate() {
            if index == 1 || (index > 1 && is_ruled) {
                lines.push(rule.clone());
            }
            lines.extend(row);
            if index == 0 && self.rows.len() == 1 {
                lines.push(rule.clone());
            }
        }
        lines
    }

    fn row(&self, row: &[Cell], widths: &[usize], gap: &Span<'static>) -> Vec<Line<'static>> {
        let set = |(index, wide): (usize, &usize)| flow::fill(Self::cell(row, index), *wide);
        let cells: Vec<Vec<Line<'static>>> = widths.iter().enumerate().map(set).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|at| {
                let mut spans = Vec::new();
                for (index, (cell, wide)) in cells.iter().zip(widths).enumerate() {
                    if index > 0 {
                        spans.push(gap.clone());
                    }
                    let text = cell.get(at).map(|line| line.spans.clone()).unwrap_or_default();
                    let alignment = self.alignments.get(index).copied().unwrap_or(Alignment::None);
                    let is_last = index + 1 == widths.len();
                    spans.extend(aligned(text, *wide, alignment, is_last));
                }
                Line::from(spans)
            })
            .collect()
    }

    /// Renders the rows below each other, each cell with its column header.
    fn list(&self, columns: usize) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        if rows.is_empty() {
            lines.extend(head.iter().flat_map(|cell| flow::fill(cell, columns)));
        }
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(Line::default());
            }
            for index in 0..self.count() {
                let mut spans = Self::cell(head, index).to_vec();
                if !spans.is_empty() {
                    spans.push(Span::raw(": "));
                }
                spans.extend(Self::cell(row, index).iter().cloned());
                lines.extend(flow::fill(&spans, columns));
            }
        }
        lines
    }
}

/// Distributes the width fairly: every column gets at least its floor and at most what it wants, and
/// otherwise an equal share.
fn share(wanted: &[usize], floors: &[usize], room: usize) -> Vec<usize> {
    let at = |level: usize| -> Vec<usize> {
        let sizes = wanted.iter().zip(floors);
        sizes
            .map(|(wanted, floor)| level.clamp((*floor).min(*wanted), *wanted))
            .collect()
    };
    let fits = |level: &usize| at(*level).iter().sum::<usize>() <= room;
    let level = (1..=room).take_while(fits).last().unwrap_or(0);
    let mut widths = at(level);
    let mut left = room.saturating_sub(widths.iter().sum());
    for (width, wanted) in widths.iter_mut().zip(wanted) {
        if left > 0 && *width < *wanted && *width <= level {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

fn aligned(
    text: Vec<Span<'static>>,
    columns: usize,
    alignment: Alignment,
    is_last: bool,
) -> Vec<Span<'static>> {
    let content: String = text.iter().map(|span| span.content.as_ref()).collect();
    let free = columns.saturating_sub(width(&content));
    let before = match alignment {
        _ if text.is_empty() => 0,
        Alignment::Right => free,
        Alignment::Center => free / 2,
        Alignment::Left | Alignment::None => 0,
    };
    // Trailing space is useless.
    let after = if is_last { 0 } else { free - before };
    let space = |columns: usize| (columns > 0).then(|| Span::raw(" ".repeat(columns)));
    let mut spans: Vec<Span<'static>> = space(before).into_iter().collect();
    spans.extend(text);
    spans.extend(space(after));
    spans
}
