//! Markdown and code on a terminal.
//!
//! A text is cut into blocks (`split`), and each block is set into lines by itself (`block`, `table`, `code`, all on
//! `flow`). A text that is still being received goes the same way as one that is complete, so both look the same.

mod block;
mod code;
mod inline;
mod split;
mod table;

use ratatui::text::Line;

use self::split::{Piece, Splitter};
use crate::text::plain;
use crate::theme::Theme;

/// How much of a long open block is drawn while it grows: more than a screen is seen of it by nobody, and it is drawn
/// again with every piece.
const TAIL: usize = 8 * 1024;

/// Markdown as lines of at most so many columns.
pub(crate) fn render(source: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    StreamingMarkdown::of(source).finish(columns, theme)
}

/// A markdown text that is still being received. What a piece costs depends on the open block, not on the whole text.
#[derive(Default)]
pub(crate) struct StreamingMarkdown {
    source: String,
    /// Where in the source the line begins that is not complete.
    partial: usize,
    splitter: Splitter,
    /// What is finished and was not handed out.
    pieces: Vec<Piece>,
    setter: Setter,
    shown: Option<Shown>,
}

/// The lines of the open block, and what they were made for.
struct Shown {
    columns: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
}

impl StreamingMarkdown {
    /// A text of which this much has been received.
    pub(crate) fn of(source: &str) -> Self {
        let mut text = Self::default();
        text.push(source);
        text
    }

    /// Takes the next piece of the text.
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

    /// The lines of what is finished and was not handed out yet. They will never change.
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

    /// The lines of the block that is still open. What is finished is not among them, so [`StreamingMarkdown::settle`] comes first.
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

    /// The text is complete: the lines of everything that was not handed out.
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

/// The end of a text, from a letter on.
fn end(text: &str) -> &str {
    let mut begin = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    text.get(begin..).unwrap_or_default()
}

/// The end of a block, from a line on. Of a table the head stays, so that it is still one.
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

/// Sets pieces into lines, one after the other.
#[derive(Default)]
struct Setter {
    /// Whether there is something above.
    has_lines: bool,
    /// Whether the next line has space above it.
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
