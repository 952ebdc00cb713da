//! Splits a text into blocks, line by line, so that the text before a block never has to be parsed again.
//!
//! It knows just enough markdown to find the end of a block; the parser handles the contents. Where it
//! misjudges an odd text, the text is read slightly differently, but always in the same way, however it
//! arrived.

mod line;

use self::line::{Fence, Kind};
use crate::text::plain;

/// Piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// One or a few blocks, as markdown.
    Block(String),
    /// Start of a fenced code block, which is split into lines because it can be long.
    CodeBegins {
        info: String,
    },
    CodeLine(String),
    CodeEnds,
}

/// Takes whole lines and returns pieces.
#[derive(Default)]
pub(super) struct Splitter {
    open: Open,
    /// Lines of the open block, except for a fenced one.
    text: String,
}

#[derive(Default)]
enum Open {
    #[default]
    Nothing,
    /// A paragraph, a table, a heading with an underline, or HTML that ends with a blank line.
    Prose,
    Quote,
    List(List),
    IndentedCode,
    /// HTML that ends with a line containing this text.
    Html(&'static str),
    Fenced(Fence),
}

impl Splitter {
    /// Takes the next line, without its line break.
    pub(super) fn line(&mut self, line: &str, pieces: &mut Vec<Piece>) {
        let line = plain(line);
        if let Open::Fenced(fence) = &self.open {
            if fence.is_closed_by(&line) {
                self.close(pieces);
            } else {
                pieces.push(Piece::CodeLine(fence.content(&line)));
            }
            return;
        }
        match self.fate(&line) {
            Fate::Continues => self.append(&line),
            Fate::Ends => {
                self.append(&line);
                self.close(pieces);
            }
            Fate::IsNext => {
                self.close(pieces);
                self.begin(&line, pieces);
            }
        }
    }

    /// Completes the text.
    pub(super) fn finish(&mut self, pieces: &mut Vec<Piece>) {
        self.close(pieces);
    }

    /// Lines of the unfinished block.
    pub(super) fn open_text(&self) -> &str {
        &self.text
    }

    /// True inside a fenced code block.
    pub(super) fn is_in_code(&self) -> bool {
        matches!(self.open, Open::Fenced(_))
    }

    /// Returns the part of the open code block's incomplete last line that can be shown.
    pub(super) fn partial_code(&self, line: &str) -> Option<String> {
        let Open::Fenced(fence) = &self.open else {
            return None;
        };
        let line = plain(line);
        (!fence.may_be_closed_by(&line)).then(|| fence.content(&line))
    }

    fn append(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn close(&mut self, pieces: &mut Vec<Piece>) {
        if self.is_in_code() {
            pieces.push(Piece::CodeEnds);
        } else if !self.text.is_empty() {
            pieces.push(Piece::Block(std::mem::take(&mut self.text)));
        }
        self.open = Open::Nothing;
    }

    /// Determines the effect of a line on the open block.
    fn fate(&mut self, line: &str) -> Fate {
        let kind = Kind::of(line);
        match &mut self.open {
            Open::Nothing | Open::Fenced(_) => Fate::IsNext,
            Open::Prose if line::is_underline(line) => Fate::Ends,
            Open::Prose => kind.after_paragraph(),
            Open::Quote if kind == Kind::Quote => Fate::Continues,
            Open::Quote => kind.after_paragraph(),
            Open::List(list) => list.fate(line, &kind),
            Open::IndentedCode => match kind {
                Kind::Blank | Kind::IndentedCode => Fate::Continues,
                _ => Fate::IsNext,
            },
            Open::Html(end) if line::contains(line, end) => Fate::Ends,
            Open::Html(_) => Fate::Continues,
        }
    }

    fn begin(&mut self, line: &str, pieces: &mut Vec<Piece>) {
        let open = match Kind::of(line) {
            Kind::Blank => return,
            Kind::Heading | Kind::Rule => {
                self.append(line);
                return self.close(pieces);
            }
            Kind::Fence(fence) => {
                pieces.push(Piece::CodeBegins {
                    info: fence.info(line),
                });
                self.open = Open::Fenced(fence);
                return;
            }
            Kind::Html { end, is_closed } => {
                self.append(line);
                self.open = Open::Html(end);
                if is_closed {
                    self.close(pieces);
                }
                return;
            }
            Kind::Quote => Open::Quote,
            Kind::Item { .. } | Kind::Footnote => Open::List(List::beginning_with(line)),
            Kind::IndentedCode => Open::IndentedCode,
            Kind::Text => Open::Prose,
        };
        self.append(line);
        self.open = open;
    }
}

/// Effect of the next line on the open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The line belongs to the block.
    Continues,
    /// The line is the last one of the block.
    Ends,
    /// The line belongs to the next block.
    IsNext,
}

impl Kind {
    /// Returns the effect of a line of this kind on an open paragraph.
    fn after_paragraph(&self) -> Fate {
        match self {
            Self::Blank | Self::Heading | Self::Rule | Self::Fence(_) | Self::Html { .. } | Self::Quote => {
                Fate::IsNext
            }
            Self::Item { may_interrupt: true } => Fate::IsNext,
            Self::Item { may_interrupt: false } | Self::Footnote | Self::IndentedCode | Self::Text => {
                Fate::Continues
            }
        }
    }
}

/// An open list. Only its end tells whether blank lines separate its items, so it is one block.
#[derive(Default)]
struct List {
    /// Text columns of the open items, the outermost first.
    columns: Vec<usize>,
    /// A fence within an item, and the column of that item's text.
    fence: Option<(Fence, usize)>,
    is_after_blank: bool,
}

impl List {
    /// Indent of a footnote's further paragraphs.
    const FOOTNOTE_INDENT: usize = 4;

    fn beginning_with(line: &str) -> Self {
        let mut list = Self::default();
        list.enter(line);
        if list.columns.is_empty() {
            list.columns.push(Self::FOOTNOTE_INDENT);
        }
        list
    }

    fn fate(&mut self, line: &str, kind: &Kind) -> Fate {
        if *kind == Kind::Blank {
            self.is_after_blank = true;
            return Fate::Continues;
        }
        let indent = line::indent(line);
        let mut is_after_blank = std::mem::take(&mut self.is_after_blank);
        if let Some((fence, column)) = &self.fence {
            if indent >= *column {
                if fence.is_closed_within(line, *column) {
                    self.fence = None;
                }
                return Fate::Continues;
            }
            self.fence = None;
            is_after_blank = true;
        }
        let is_inside = self.columns.first().is_some_and(|column| indent >= *column);
        if is_inside || matches!(kind, Kind::Item { .. }) {
            self.enter(line);
            return Fate::Continues;
        }
        if is_after_blank {
            Fate::IsNext
        } else {
            kind.after_paragraph()
        }
    }

    /// Updates the open items and the open fence after this line.
    fn enter(&mut self, line: &str) {
        let (mut column, mut rest) = line::indented(line, 0);
        self.columns.retain(|open| *open <= column);
        while let Some((text_column, text)) = line::item(rest, column) {
            self.columns.push(text_column);
            (column, rest) = line::indented(text, text_column);
        }
        let item = self.columns.last().copied().unwrap_or(0);
        if column < item + line::CODE_INDENT {
            self.fence = Fence::opened_by(rest, column - item.min(column)).map(|fence| (fence, item));
        }
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
