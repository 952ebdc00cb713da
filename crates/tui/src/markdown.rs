//! Markdown and code on a terminal.
//!
//! A text is split into blocks (`split`), and each block is laid out on its own (`block`, `table`, `code`,
//! all based on `flow`). A streaming text takes the same path as a complete one, so both look the same.

mod block;
mod code;
mod inline;
mod split;
mod table;

use ratatui::text::Line;

pub(crate) use self::code::Highlighter;
use self::split::{Piece, Splitter};
use crate::text::plain;
use crate::theme::Theme;

/// Maximum size of an open block that is drawn while it grows: no more than a screen of it is visible, and it
/// is redrawn with every delta.
const TAIL: usize = 8 * 1024;

/// Renders markdown as lines of at most the given width.
pub(crate) fn render(source: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    StreamingMarkdown::of(source).finish(columns, theme)
}

/// A markdown text that is still streaming. The cost of a delta depends on the open block, not on the whole
/// text.
#[derive(Default)]
pub(crate) struct StreamingMarkdown {
    source: String,
    /// Start of the incomplete line in the source.
    partial: usize,
    splitter: Splitter,
    /// Finished pieces that were not returned yet.
    pieces: Vec<Piece>,
    setter: Setter,
    shown: Option<Shown>,
}

/// Lines of the open block, and the input they were made for.
struct Shown {
    columns: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
}

impl StreamingMarkdown {
    /// Creates a stream that has received this much.
    pub(crate) fn of(source: &str) -> Self {
        let mut text = Self::default();
        text.push(source);
        text
    }

    /// Appends a delta.
    pub(crate) fn push(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.shown = None;
        let mut rest = piece;
        while let Some((end, next)) = rest.split_once('\n') {
            self.source.push_str(end);
            let line = self.source.get(self.partial..).unwrap_or_default();
            self.splitter.line(line, &mut self.pieces);
            self.source.push('\n');
            self.partial = self.source.len();
            rest = next;
        }
        self.source.push_str(rest);
    }

    /// Returns the finished lines that were not returned before. They never change.
    pub(crate) fn settle(&mut self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        if self.pieces.is_empty() {
            return Vec::new();
        }
        self.shown = None;
        let mut lines = Vec::new();
        for piece in self.pieces.drain(..) {
            self.setter.set(piece, columns.max(1), theme, &mut lines);
        }
        lines
    }

    /// Returns the lines of the open block. Finished lines are not among them, so call
    /// [`StreamingMarkdown::settle`] first.
    pub(crate) fn open(&mut self, columns: usize, theme: Theme) -> &[Line<'static>] {
        let is_current = |shown: &Shown| shown.columns == columns && shown.theme == theme;
        let shown = match self.shown.take().filter(is_current) {
            Some(shown) => shown,
            None => Shown {
                columns,
                theme,
                lines: self.open_lines(columns.max(1), theme),
            },
        };
        &self.shown.insert(shown).lines
    }

    /// Completes the text and returns all remaining lines.
    pub(crate) fn finish(mut self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let line = self.source.get(self.partial..).unwrap_or_default();
        if !line.is_empty() {
            self.splitter.line(line, &mut self.pieces);
        }
        self.splitter.finish(&mut self.pieces);
        self.settle(columns, theme)
    }

    /// Everything received so far.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    fn open_lines(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let partial = self.source.get(self.partial..).unwrap_or_default();
        let mut lines = Vec::new();
        if self.splitter.is_in_code() {
            let code = self.splitter.partial_code(partial);
            lines.extend(
                code.into_iter()
                    .flat_map(|line| code::Block::uncoloured().line(&line, columns)),
            );
        } else {
            let text = format!("{}{}", tail(self.splitter.open_text()), plain(end(partial)));
            lines.extend(block::lines(&text, columns, theme, block::Colours::LeftOut));
        }
        if self.setter.is_apart && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }
}

/// Returns the end of a text, at a character boundary.
fn end(text: &str) -> &str {
    let mut begin = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    text.get(begin..).unwrap_or_default()
}

/// Returns the end of a block, from a line start. A table keeps its header, so that it remains a table.
fn tail(text: &str) -> String {
    let last = end(text);
    if last.len() == text.len() {
        return text.to_owned();
    }
    let last = last.split_once('\n').map_or(last, |(_, rest)| rest);
    let mut lines = text.split_inclusive('\n');
    match (lines.next(), lines.next()) {
        (Some(head), Some(rule)) if rule.contains("---") && rule.contains('|') => {
            format!("{head}{rule}{last}")
        }
        _ => last.to_owned(),
    }
}

/// Lays out pieces one after another.
#[derive(Default)]
struct Setter {
    /// True if there are lines above.
    has_lines: bool,
    /// True if the next line needs a blank line above it.
    is_apart: bool,
    code: Option<code::Block>,
}

impl Setter {
    fn set(&mut self, piece: Piece, columns: usize, theme: Theme, out: &mut Vec<Line<'static>>) {
        match piece {
            Piece::Block(source) => {
                self.put(block::lines(&source, columns, theme, block::Colours::Shown), out);
                self.is_apart = self.has_lines;
            }
            Piece::CodeBegins { info } => {
                let language = code::language(&info);
                self.put(code::Block::label(&language, columns, theme), out);
                self.code = Some(code::Block::new(&language, theme));
            }
            Piece::CodeLine(line) => {
                let lines = match &mut self.code {
                    Some(code) => code.line(&line, columns),
                    None => Vec::new(),
                };
                self.put(lines, out);
            }
            Piece::CodeEnds => {
                self.code = None;
                self.is_apart = self.has_lines;
            }
        }
    }

    fn put(&mut self, lines: Vec<Line<'static>>, out: &mut Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_apart) {
            out.push(Line::default());
        }
        self.has_lines = true;
        out.extend(lines);
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
