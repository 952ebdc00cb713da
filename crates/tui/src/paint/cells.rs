//! Converts a styled line to terminal cells: graphemes with their width and style.

use std::borrow::Cow;

use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style::CellStyle;
use crate::text::has_effect;

/// A grapheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) width: usize,
    pub(super) look: CellStyle,
}

impl Cell<'_> {
    /// True if terminals disagree on its width: joined and decorated emoji, flags, and all emoji newer than
    /// some terminals.
    pub(super) fn is_uncertain(&self) -> bool {
        if self.text.len() == 1 {
            return false;
        }
        let by_letter: usize = self.text.chars().filter_map(UnicodeWidthChar::width).sum();
        by_letter != self.width || self.text.chars().any(is_emoji)
    }

    fn is_blank(&self) -> bool {
        self.text == " " && !self.look.shows_on_blank()
    }
}

/// Returns the cells of a line, cut to the width and without trailing blanks. Removes control characters:
/// this is the last place where external text could still bring some in.
pub(super) fn cells<'a>(line: &'a Line<'_>, columns: usize) -> Vec<Cell<'a>> {
    let mut cells: Vec<Cell<'a>> = Vec::new();
    let mut used = 0;
    'line: for span in &line.spans {
        let look = CellStyle::from(line.style.patch(span.style));
        for grapheme in span.content.graphemes(true) {
            let text = harmless(grapheme);
            let width = text.width();
            if width == 0 {
                // A combining mark separated from its letter by a style change.
                if let Some(last) = cells.last_mut() {
                    last.text.to_mut().push_str(&text);
                }
                continue;
            }
            if used + width > columns {
                break 'line;
            }
            used += width;
            cells.push(Cell { text, width, look });
        }
    }
    while cells.last().is_some_and(Cell::is_blank) {
        cells.pop();
    }
    cells
}

/// Total width of the cells, in columns.
pub(super) fn width(cells: &[Cell<'_>]) -> usize {
    cells.iter().map(|cell| cell.width).sum()
}

/// Returns the row, from 0, in which a column ends up after a terminal of width `columns` rewraps these
/// cells.
pub(super) fn row_after_reflow(cells: &[Cell<'_>], column: usize, columns: usize) -> usize {
    let (mut row, mut used, mut passed) = (0, 0, 0);
    // Past the end of the text, the cursor moves as if there were blanks.
    let blanks = std::iter::repeat(1);
    for width in cells.iter().map(|cell| cell.width).chain(blanks) {
        if used + width > columns && used > 0 {
            row += 1;
            used = 0;
        }
        if passed + width > column {
            break;
        }
        used += width;
        passed += width;
    }
    row
}

fn harmless(grapheme: &str) -> Cow<'_, str> {
    if grapheme.chars().any(has_effect) {
        Cow::Owned(grapheme.chars().filter(|letter| !has_effect(*letter)).collect())
    } else {
        Cow::Borrowed(grapheme)
    }
}

fn is_emoji(letter: char) -> bool {
    matches!(letter, '\u{1f000}'..='\u{1ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a terminal that reflows wraps by columns and never splits a wide character.
    #[test]
    fn rows_after_a_reflow_are_counted() {
        // Text, column, columns, row.
        let cases = [
            ("", 0, 10, 0),
            ("abcdef", 0, 3, 0),
            ("abcdef", 2, 3, 0),
            ("abcdef", 3, 3, 1),
            ("abcdef", 5, 3, 1),
            ("abcdef", 6, 3, 2),
            ("abcdef", 5, 80, 0),
            ("日本語", 5, 3, 2),
            ("日本語", 4, 4, 1),
            ("ab", 7, 4, 1),
            ("日本", 2, 1, 1),
        ];
        for (text, column, columns, expected) in cases {
            let line = Line::raw(text);
            let row = row_after_reflow(&cells(&line, 80), column, columns);
            assert_eq!(row, expected, "column {column} of {text:?} at {columns}");
        }
    }

    /// UI-2: a line is cut between graphemes, and invisible trailing blanks are left out.
    #[test]
    fn lines_become_cells() {
        let texts = |line: Line<'static>, columns| -> Vec<String> {
            cells(&line, columns)
                .iter()
                .map(|cell| cell.text.to_string())
                .collect()
        };
        assert_eq!(texts(Line::raw("a日b"), 2), ["a"]);
        assert_eq!(texts(Line::raw("a日b"), 3), ["a", "日"]);
        assert_eq!(texts(Line::raw("日"), 1), [""; 0]);
        assert_eq!(texts(Line::raw("a b   "), 9), ["a", " ", "b"]);
        assert_eq!(texts(Line::raw("e\u{301}x"), 9), ["e\u{301}", "x"]);
        assert_eq!(
            texts(Line::from(vec!["e".into(), "\u{301}x".into()]), 9),
            ["e\u{301}", "x"]
        );
    }
}
