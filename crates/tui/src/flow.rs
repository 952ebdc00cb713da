//! Wraps styled text into lines.
//!
//! Words and graphemes are found in the joined text instead of span by span, so that a change of style within
//! a word or a grapheme is not a place to break and does not change the width of the text.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::text::width;

/// Replacement for a grapheme that is wider than the whole line.
const TOO_WIDE: &str = "?";

/// Wraps text between words where possible. Line breaks in the text are kept; trailing white space is not.
pub(crate) fn fill(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    set(spans, columns, Breaks::BetweenWords, "")
}

/// Like [`fill`], with an indent before every continuation line.
pub(crate) fn hang(spans: &[Span<'_>], columns: usize, indent: &str) -> Vec<Line<'static>> {
    // The widest grapheme must fit behind it.
    let indent = if width(indent) + 2 <= columns { indent } else { "" };
    set(spans, columns, Breaks::BetweenWords, indent)
}

/// Breaks lines exactly at the width and keeps all white space: for code.
pub(crate) fn chop(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    set(spans, columns, Breaks::Anywhere, "")
}

/// Returns the width of the text without wrapping, and the width of its widest word.
pub(crate) fn measure(spans: &[Span<'_>]) -> (usize, usize) {
    let text = joined(spans);
    let whole = text.lines().map(width).max().unwrap_or(0);
    let word = text.split_whitespace().map(width).max().unwrap_or(0);
    (whole, word)
}

/// A tab reaches to the next multiple of this number of columns.
const TAB: usize = 4;

/// Returns the text with tabs expanded to spaces.
pub(crate) fn without_tabs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for (index, part) in text.split('\t').enumerate() {
        if index > 0 {
            let gap = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', gap));
            column += gap;
        }
        out.push_str(part);
        column += width(part);
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    BetweenWords,
    Anywhere,
}

fn set(spans: &[Span<'_>], columns: usize, breaks: Breaks, indent: &str) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let text = joined(spans);
    let mut setter = Setter {
        columns,
        breaks,
        indent,
        done: Vec::new(),
        line: Vec::new(),
        used: 0,
        may_break: None,
        is_wrapped: false,
    };
    for letter in letters(&text, spans) {
        setter.put_fitting(letter);
    }
    setter.finish()
}

fn joined(spans: &[Span<'_>]) -> String {
    spans.iter().map(|span| span.content.as_ref()).collect()
}

/// A grapheme cluster.
#[derive(Clone, Copy)]
struct Letter<'a> {
    text: &'a str,
    columns: usize,
    style: Style,
}

impl Letter<'_> {
    fn is_space(&self) -> bool {
        let is_space =
            |letter: char| letter.is_whitespace() && !matches!(letter, '\u{a0}' | '\u{2007}' | '\u{202f}');
        self.text.chars().all(is_space)
    }

    /// True for scripts without spaces between words, and for emoji: a line may be broken next to them.
    fn stands_alone(&self) -> bool {
        self.columns > 1
    }

    fn closes(&self) -> bool {
        const CLOSING: &str = ",.;:!?)]}'\"…、。，．：；？！」』）】》〉〕ー";
        self.text
            .chars()
            .next()
            .is_some_and(|letter| CLOSING.contains(letter))
    }

    fn opens(&self) -> bool {
        const OPENING: &str = "([{'\"（「『【《〈〔";
        self.text
            .chars()
            .next()
            .is_some_and(|letter| OPENING.contains(letter))
    }
}

fn letters<'a>(text: &'a str, spans: &'a [Span<'_>]) -> impl Iterator<Item = Letter<'a>> {
    let mut rest = spans.iter();
    let mut end = 0;
    let mut style = Style::new();
    text.grapheme_indices(true).map(move |(at, grapheme)| {
        while at >= end {
            let Some(span) = rest.next() else { break };
            end += span.content.len();
            style = span.style;
        }
        Letter {
            text: grapheme,
            columns: width(grapheme),
            style,
        }
    })
}

struct Setter<'a> {
    columns: usize,
    breaks: Breaks,
    /// Text before every continuation line.
    indent: &'a str,
    done: Vec<Line<'static>>,
    line: Vec<Letter<'a>>,
    used: usize,
    /// Last position in the line where it may be broken.
    may_break: Option<usize>,
    /// True if the previous line was wrapped.
    is_wrapped: bool,
}

impl<'a> Setter<'a> {
    /// Adds a grapheme, or a replacement if it is wider than a line.
    fn put_fitting(&mut self, letter: Letter<'a>) {
        if letter.text == "\n" {
            self.end_line();
            return;
        }
        if letter.columns <= self.columns {
            return self.put(letter);
        }
        let mut is_shown = false;
        for part in letter.text.split_inclusive(|_: char| true) {
            let columns = width(part);
            // A zero-width character may widen the one before it.
            if (1..=self.columns).contains(&columns) {
                is_shown = true;
                self.put(Letter {
                    text: part,
                    columns,
                    ..letter
                });
            }
        }
        if !is_shown {
            self.put(Letter {
                text: TOO_WIDE,
                columns: 1,
                ..letter
            });
        }
    }

    fn put(&mut self, letter: Letter<'a>) {
        let is_space = self.breaks == Breaks::BetweenWords && letter.is_space();
        if is_space && self.is_wrapped && self.line.is_empty() {
            return;
        }
        if self.may_break_before(letter) {
            self.may_break = Some(self.line.len());
        }
        while self.used + letter.columns > self.columns {
            if is_space {
                return self.wrap(self.line.len());
            }
            self.wrap(self.may_break.unwrap_or(self.line.len()));
        }
        self.used += letter.columns;
        self.line.push(letter);
    }

    fn may_break_before(&self, letter: Letter<'_>) -> bool {
        let Some(last) = self.line.last() else {
            return false;
        };
        if self.breaks == Breaks::Anywhere || letter.is_space() {
            return false;
        }
        let is_between = (last.stands_alone() || letter.stands_alone()) && !letter.closes() && !last.opens();
        last.is_space() || is_between
    }

    fn wrap(&mut self, at: usize) {
        let rest = self.line.split_off(at);
        self.end_line();
        self.used = width(self.indent) + rest.iter().map(|letter| letter.columns).sum::<usize>();
        self.line = rest;
        self.is_wrapped = true;
    }

    fn end_line(&mut self) {
        let mut letters = std::mem::take(&mut self.line);
        if self.breaks == Breaks::BetweenWords {
            while letters.pop_if(|letter| letter.is_space()).is_some() {}
        }
        let mut line = line(&letters);
        if self.is_wrapped && !self.indent.is_empty() {
            line.spans.insert(0, Span::raw(self.indent.to_owned()));
        }
        self.done.push(line);
        self.used = 0;
        self.may_break = None;
        self.is_wrapped = false;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if !self.line.is_empty() || self.done.is_empty() {
            self.end_line();
        }
        self.done
    }
}

fn line(letters: &[Letter<'_>]) -> Line<'static> {
    let same_style = letters.chunk_by(|left, right| left.style == right.style);
    let span = |letters: &[Letter<'_>]| {
        let text: String = letters.iter().map(|letter| letter.text).collect();
        Span::styled(text, letters.first().map_or(Style::new(), |letter| letter.style))
    };
    Line::from(same_style.map(span).collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
