//! Syntax highlighting, line by line.

mod grammar;
mod scan;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use self::scan::{Scanner, Token};

use crate::flow;
use crate::text::plain;
use crate::theme::{Palette, Theme, Tone};

/// Maximum number of lines that are highlighted; nobody reads further.
const MAX_LINES: usize = 2_000;
/// Maximum length of a line that is highlighted; longer ones are machine-generated.
const MAX_LINE_BYTES: usize = 4_000;
/// Indent of code.
const INDENT: &str = "  ";
/// Minimum width at which code is indented.
const MIN_COLUMNS: usize = 12;

/// A code block that is rendered line by line.
pub(super) struct Block {
    colouring: Colouring,
}

impl Block {
    pub(super) fn new(language: &str, theme: Theme) -> Self {
        Self {
            colouring: Colouring::new(language, theme),
        }
    }

    /// Creates a block without highlighting.
    pub(super) fn uncoloured() -> Self {
        Self {
            colouring: Colouring::none(),
        }
    }

    /// Returns the line above the code that names its language.
    pub(super) fn label(language: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        if language.is_empty() {
            return Vec::new();
        }
        indented(
            &[Span::styled(language.to_owned(), theme.style(Tone::Dim))],
            columns,
        )
    }

    pub(super) fn line(&mut self, line: &str, columns: usize) -> Vec<Line<'static>> {
        indented(&self.colouring.line(line), columns)
    }
}

/// Returns the language named by the info string of a fence.
pub(super) fn language(info: &str) -> String {
    let info = info.trim().trim_start_matches(['{', '.']);
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '{' | '}' | ':');
    let word = info.split(ends).next().unwrap_or_default();
    plain(word).replace(char::is_whitespace, "")
}

fn indented(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    let indent = if columns < MIN_COLUMNS { "" } else { INDENT };
    let mut lines = flow::chop(spans, columns - indent.len());
    for line in &mut lines {
        if !indent.is_empty() && !line.spans.is_empty() {
            line.spans.insert(0, Span::raw(indent));
        }
    }
    lines
}

/// Syntax highlighting of single lines outside a Markdown text.
pub(crate) struct Highlighter {
    language: String,
    theme: Theme,
    colouring: Colouring,
}

impl Highlighter {
    pub(crate) fn new(language: &str, theme: Theme) -> Self {
        Self {
            language: language.to_owned(),
            theme,
            colouring: Colouring::new(language, theme),
        }
    }

    /// Forgets the lines so far.
    pub(crate) fn reset(&mut self) {
        self.colouring = Colouring::new(&self.language, self.theme);
    }

    /// Returns the coloured line; `None` if the language is not known.
    pub(crate) fn spans(&mut self, line: &str) -> Option<Vec<Span<'static>>> {
        self.colouring.scanner.as_ref()?;
        Some(self.colouring.line(line))
    }
}

/// Highlighter for consecutive lines of one text: the meaning of a line depends on the lines before it.
struct Colouring {
    scanner: Option<Scanner>,
    theme: Theme,
    lines: usize,
}

impl Colouring {
    fn new(language: &str, theme: Theme) -> Self {
        let is_coloured = theme.palette != Palette::None;
        let grammar = grammar::named(language).filter(|_| is_coloured);
        Self {
            scanner: grammar.map(Scanner::new),
            theme,
            lines: 0,
        }
    }

    fn none() -> Self {
        Self {
            scanner: None,
            theme: Theme::default(),
            lines: 0,
        }
    }

    fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        let line = flow::without_tabs(&plain(line).replace('\n', " "));
        self.lines += 1;
        if self.lines > MAX_LINES || line.len() > MAX_LINE_BYTES {
            // The state is unknown from here on.
            self.scanner = None;
        }
        let parts = match &mut self.scanner {
            Some(scanner) => scanner.line(&line),
            None => vec![(Token::Plain, line.as_str())],
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (token, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            let style = style(token, self.theme);
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(part),
                _ => spans.push(Span::styled(part.to_owned(), style)),
            }
        }
        spans
    }
}

fn style(token: Token, theme: Theme) -> Style {
    let colours = match theme.palette {
        Palette::None => return Style::new(),
        Palette::Terminal => &TERMINAL,
        Palette::Dark => &DARK,
        Palette::Light => &LIGHT,
    };
    match token {
        Token::Plain => Style::new(),
        Token::Comment => theme.style(Tone::Dim),
        Token::Text => Style::new().fg(colours.text),
        Token::Value => Style::new().fg(colours.value),
        Token::Keyword => Style::new().fg(colours.keyword),
        Token::Type => Style::new().fg(colours.kind),
        Token::Name => Style::new().fg(colours.name),
        Token::Added => theme.style(Tone::Added),
        Token::Removed => theme.style(Tone::Removed),
    }
}

struct Colours {
    text: Color,
    value: Color,
    keyword: Color,
    kind: Color,
    name: Color,
}

const TERMINAL: Colours = Colours {
    text: Color::Green,
    value: Color::Cyan,
    keyword: Color::Magenta,
    kind: Color::Yellow,
    name: Color::Blue,
};

const DARK: Colours = Colours {
    text: Color::Rgb(0x98, 0xc3, 0x79),
    value: Color::Rgb(0xd1, 0x9a, 0x66),
    keyword: Color::Rgb(0xc6, 0x78, 0xdd),
    kind: Color::Rgb(0xe5, 0xc0, 0x7b),
    name: Color::Rgb(0x61, 0xaf, 0xef),
};

const LIGHT: Colours = Colours {
    text: Color::Rgb(0x3c, 0x7a, 0x39),
    value: Color::Rgb(0x98, 0x68, 0x01),
    keyword: Color::Rgb(0xa6, 0x26, 0xa4),
    kind: Color::Rgb(0x8f, 0x5d, 0x00),
    name: Color::Rgb(0x2f, 0x5f, 0xd0),
};

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
