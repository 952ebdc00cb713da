//! Code in colours, one line after the other.

use std::sync::OnceLock;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use syntect::easy::HighlightLines;
use syntect::highlighting::{Color as SyntaxColor, FontStyle, Style as SyntaxStyle, Theme as SyntaxTheme};
use syntect::parsing::{SyntaxReference, SyntaxSet};
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

use super::flow;
use crate::text::plain;
use crate::theme::{Palette, Theme, Tone};

/// Nobody reads on in colour, and colouring takes longer than everything else.
const MAX_LINES: usize = 2_000;
/// Such a line was made by a machine; patterns take long on it.
const MAX_LINE_BYTES: usize = 4_000;
/// How far code is moved to the right.
const INDENT: &str = "  ";
/// Code is not moved to the right on a narrower screen.
const MIN_COLUMNS: usize = 12;

/// Code with colours, one line per source line, tabs expanded, not wrapped.
pub(crate) fn highlight(code: &str, language: &str, theme: Theme) -> Vec<Line<'static>> {
    let mut colouring = Colouring::new(language, theme);
    code.lines()
        .map(|line| Line::from(colouring.line(line)))
        .collect()
}

/// A code block that is set line by line.
pub(super) struct Block {
    colouring: Colouring,
}

impl Block {
    pub(super) fn new(language: &str, theme: Theme) -> Self {
        Self {
            colouring: Colouring::new(language, theme),
        }
    }

    /// A block without colours.
    pub(super) fn uncoloured() -> Self {
        Self {
            colouring: Colouring::none(),
        }
    }

    /// The line above the code that names its language.
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

/// What the info string of a fence names as the language.
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

/// Colours for the lines of one text, in their order: what a line means depends on the lines before it.
struct Colouring {
    highlighter: Option<HighlightLines<'static>>,
    lines: usize,
    palette: Palette,
}

impl Colouring {
    fn new(language: &str, theme: Theme) -> Self {
        Self {
            highlighter: highlighter(language, theme.palette),
            lines: 0,
            palette: theme.palette,
        }
    }

    fn none() -> Self {
        Self {
            highlighter: None,
            lines: 0,
            palette: Palette::None,
        }
    }

    fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        let line = flow::without_tabs(&plain(line).replace('\n', " "));
        self.lines += 1;
        if self.lines > MAX_LINES || line.len() > MAX_LINE_BYTES {
            // From here on nothing is known about what a line means.
            self.highlighter = None;
        }
        let Some(highlighter) = &mut self.highlighter else {
            return uncoloured(line);
        };
        let ended = format!("{line}\n");
        let Ok(pieces) = highlighter.highlight_line(&ended, syntaxes()) else {
            self.highlighter = None;
            return uncoloured(line);
        };
        let palette = self.palette;
        let span = |(style, text): (SyntaxStyle, &str)| {
            let text = text.trim_end_matches('\n');
            (!text.is_empty()).then(|| Span::styled(text.to_owned(), converted(style, palette)))
        };
        pieces.into_iter().filter_map(span).collect()
    }
}

fn uncoloured(line: String) -> Vec<Span<'static>> {
    if line.is_empty() {
        Vec::new()
    } else {
        vec![Span::raw(line)]
    }
}

fn highlighter(language: &str, palette: Palette) -> Option<HighlightLines<'static>> {
    let theme = match palette {
        Palette::None => return None,
        Palette::Terminal => EmbeddedThemeName::Ansi,
        Palette::Dark => EmbeddedThemeName::OneHalfDark,
        Palette::Light => EmbeddedThemeName::OneHalfLight,
    };
    let syntax = syntax(language)?;
    Some(HighlightLines::new(syntax, themes().get(theme)))
}

/// The syntax of a language as people name it in a fence. The definitions are loaded when one is asked for.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language.to_lowercase();
    let name = match name.as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "none" | "output" | "log" | "ascii" | "mermaid" => {
            return None;
        }
        "golang" => "go",
        "csharp" | "c#" => "cs",
        "node" | "mjs" | "cjs" | "jsx" => "js",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "shell" | "console" | "shellsession" | "shell-session" | "terminal" => "sh",
        "python3" | "pycon" => "py",
        "objc" | "objective-c" => "m",
        "docker" => "dockerfile",
        "proto" => "protobuf",
        "patch" => "diff",
        name => name,
    };
    syntaxes().find_syntax_by_token(name)
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

fn themes() -> &'static EmbeddedLazyThemeSet {
    static THEMES: OnceLock<EmbeddedLazyThemeSet> = OnceLock::new();
    THEMES.get_or_init(two_face::theme::extra)
}

fn converted(style: SyntaxStyle, palette: Palette) -> Style {
    let mut converted = Style::new();
    if let Some(colour) = colour(style.foreground, palette) {
        converted = converted.fg(colour);
    }
    for (font, modifier) in [
        (FontStyle::BOLD, Modifier::BOLD),
        (FontStyle::ITALIC, Modifier::ITALIC),
        (FontStyle::UNDERLINE, Modifier::UNDERLINED),
    ] {
        if style.font_style.contains(font) {
            converted = converted.add_modifier(modifier);
        }
    }
    converted
}

/// The colour on a terminal, or none where the terminal's own text colour is meant.
fn colour(colour: SyntaxColor, palette: Palette) -> Option<Color> {
    if palette != Palette::Terminal {
        let is_text = Some(colour) == text_colour(palette);
        return (!is_text).then_some(Color::Rgb(colour.r, colour.g, colour.b));
    }
    // The theme for terminals has no colours of its own: without opacity its red part is an index into the terminal's
    // colours, with the least opacity it is the text colour.
    let named = match colour.r {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        index => Color::Indexed(index),
    };
    (colour.a == 0).then_some(named)
}

fn text_colour(palette: Palette) -> Option<SyntaxColor> {
    let theme: &SyntaxTheme = match palette {
        Palette::Dark => themes().get(EmbeddedThemeName::OneHalfDark),
        Palette::Light => themes().get(EmbeddedThemeName::OneHalfLight),
        Palette::Terminal | Palette::None => return None,
    };
    theme.settings.foreground
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
