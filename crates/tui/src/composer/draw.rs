//! Rendering of the composer.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::chips::is_mark;
use super::layout::Layout;
use super::{Composer, Drawn, cluster};
use crate::text;
use crate::theme::{Theme, Tone};

/// Minimum columns for a prompt mark.
const MARK_FROM: usize = 8;

impl Composer {
    /// Renders at most the given number of lines and columns. Of a longer text, the part around the cursor is
    /// visible.
    pub(crate) fn render(&mut self, columns: usize, rows: usize, theme: Theme) -> Drawn {
        self.view.columns = columns;
        if columns == 0 || rows == 0 {
            return Drawn {
                lines: Vec::new(),
                cursor: (0, 0),
            };
        }
        let mut drawn = match self.search {
            Some(_) => self.draw_search(rows, theme),
            None => self.draw_text(rows, theme),
        };
        drawn.cursor.0 = drawn.cursor.0.min(columns - 1);
        drawn
    }

    fn draw_text(&mut self, rows: usize, theme: Theme) -> Drawn {
        let room = self.view.room();
        let indent = self.view.indent();
        if self.buffer.text().is_empty() {
            self.view.top = 0;
            let placeholder = Span::styled(text::cut(&self.placeholder, room), theme.style(Tone::Dim));
            return Drawn {
                lines: vec![Line::from(vec![beginning(indent, 0, theme), placeholder])],
                cursor: (indent, 0),
            };
        }
        let layout = Layout::new(self.buffer.text(), &self.chips, room);
        let (column, row) = layout.place(self.buffer.cursor());
        let lowest = (row + 1).saturating_sub(rows);
        let highest = row.min(layout.len().saturating_sub(rows));
        self.view.top = self.view.top.clamp(lowest.min(highest), highest);
        let top = self.view.top;
        let seen = top..layout.len().min(top + rows);
        let style = |at| self.style(self.buffer.text(), at, theme);
        Drawn {
            lines: seen
                .map(|row| draw_row(&layout, row, indent, theme, style))
                .collect(),
            cursor: (indent + column, row - top),
        }
    }

    /// Draws the match, and below it the query with the cursor.
    fn draw_search(&self, rows: usize, theme: Theme) -> Drawn {
        let room = self.view.room();
        let indent = self.view.indent();
        let (query, hit) = match &self.search {
            Some(search) => (search.query.as_str(), search.hit(&self.history)),
            None => ("", None),
        };
        let is_missing = hit.is_none() && !query.is_empty();
        let (found, hit) = hit.unwrap_or((self.buffer.text(), 0..0));
        let layout = Layout::new(found, &self.chips, room);
        let style = |at| match hit.contains(&at) {
            true => theme.style(Tone::Selected),
            false => self.style(found, at, theme),
        };
        // The match is visible, with as much text after it as fits.
        let top = layout
            .place(hit.start)
            .1
            .min(layout.len().saturating_sub(rows - 1));
        let seen = top..layout.len().min(top + rows - 1);
        let mut lines: Vec<_> = seen
            .map(|row| draw_row(&layout, row, indent, theme, style))
            .collect();

        let title = if is_missing { "not found: " } else { "search: " };
        let title = text::cut(title, room);
        let query = tail(query, room - text::width(&title));
        let cursor = indent + text::width(&title) + text::width(query);
        lines.push(Line::from(vec![
            Span::raw(" ".repeat(indent)),
            Span::styled(title, theme.style(Tone::Dim)),
            Span::raw(query.to_owned()),
        ]));
        let row = lines.len() - 1;
        Drawn {
            lines,
            cursor: (cursor, row),
        }
    }

    fn style(&self, text: &str, at: usize, theme: Theme) -> Style {
        let is_chip = cluster::at(text, at).contains(is_mark);
        theme.style(if is_chip { Tone::Accent } else { Tone::Text })
    }
}

/// Viewport of the composer.
#[derive(Debug)]
pub(super) struct View {
    /// Columns of the last frame.
    columns: usize,
    /// First visible row.
    top: usize,
    /// Column that vertical movements keep to, and the text revision it applies to.
    goal: Option<(usize, u64)>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            columns: 80,
            top: 0,
            goal: None,
        }
    }
}

impl View {
    /// Columns available for text in a row: the last one is reserved for the cursor.
    pub(super) fn room(&self) -> usize {
        self.columns.saturating_sub(self.indent() + 1).max(1)
    }

    /// Column that vertical movements keep to.
    pub(super) fn goal(&self, revision: u64) -> Option<usize> {
        self.goal
            .filter(|(_, of)| *of == revision)
            .map(|(column, _)| column)
    }

    /// Sets the column that vertical movements keep to.
    pub(super) fn keep(&mut self, column: usize, revision: u64) {
        self.goal = Some((column, revision));
    }

    /// Resets the column after a horizontal movement.
    pub(super) fn forget_column(&mut self) {
        self.goal = None;
    }

    fn indent(&self) -> usize {
        if self.columns < MARK_FROM { 0 } else { 2 }
    }
}

fn draw_row(
    layout: &Layout<'_>,
    row: usize,
    indent: usize,
    theme: Theme,
    style: impl Fn(usize) -> Style,
) -> Line<'static> {
    let mut spans = vec![beginning(indent, row, theme)];
    for (at, letter) in layout.letters(row) {
        let style = style(at);
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&letter),
            _ => spans.push(Span::styled(letter.into_owned(), style)),
        }
    }
    Line::from(spans)
}

fn beginning(indent: usize, row: usize, theme: Theme) -> Span<'static> {
    match row {
        _ if indent == 0 => Span::raw(""),
        0 => Span::styled(theme.sign("› ", "> "), theme.style(Tone::Accent)),
        _ => Span::raw(" ".repeat(indent)),
    }
}

/// Returns the end of the text that fits the columns.
fn tail(text: &str, columns: usize) -> &str {
    let mut start = text.len();
    let mut used = 0;
    while start > 0 {
        let letter = cluster::before(text, start);
        used += text::width(letter);
        if used > columns {
            break;
        }
        start -= letter.len();
    }
    cluster::slice(text, start..text.len())
}
