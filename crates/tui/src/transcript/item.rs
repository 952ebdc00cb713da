//! Items of a conversation and their lines.

use std::borrow::Cow;

use ratatui::text::{Line, Span};
use windlass_core::text::count;

use super::card::{Card, folded};
use crate::header::Header;
use crate::markdown::{self, StreamingMarkdown};
use crate::text::{cut, one_line, plain, wrap};
use crate::theme::{Theme, Tone};

/// Maximum length of a line in a shortened item.
pub(super) const SHORT_COLUMNS: usize = 400;

/// Maximum number of rows shown of a user message.
const USER_ROWS: usize = 40;
/// Number of rows shown at either end of a longer message.
const USER_ENDS: usize = 10;

/// Options for rendering items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RenderOptions {
    pub(crate) columns: usize,
    pub(crate) theme: Theme,
    /// True to show long items in full.
    pub(crate) unfolded: bool,
    /// True if ctrl+o shows them in full.
    pub(crate) is_unfoldable: bool,
}

/// An item and its sequence number in the log.
pub(super) struct Placed {
    pub(super) seq: u64,
    pub(super) item: Item,
    /// Cached lines, while the user scrolls back.
    drawn: Option<(RenderOptions, Vec<Line<'static>>)>,
}

impl Placed {
    pub(super) fn new(seq: u64, item: Item) -> Self {
        Self {
            seq,
            item,
            drawn: None,
        }
    }

    /// Returns all lines. `now_ms` is needed for running calls.
    pub(super) fn lines(&mut self, options: RenderOptions, now_ms: u64) -> Cow<'_, [Line<'static>]> {
        if !self.item.is_finished() {
            return Cow::Owned(self.item.lines(options, now_ms));
        }
        let drawn = match self.drawn.take() {
            Some((drawn, lines)) if drawn == options => lines,
            _ => self.item.lines(options, now_ms),
        };
        Cow::Borrowed(&self.drawn.insert((options, drawn)).1)
    }

    /// Drops long content of a finished item.
    pub(super) fn shorten(&mut self) {
        if self.item.is_finished() {
            self.item.shorten();
            self.drawn = None;
        }
    }

    /// Drops the cached lines.
    pub(super) fn forget_lines(&mut self) {
        self.drawn = None;
    }
}

/// An item of a conversation.
pub(crate) enum Item {
    /// Message of the user.
    User { text: String, images: Vec<String> },
    /// Answer of the model. `rest` is the part that was not printed yet.
    Answer {
        text: String,
        rest: Option<Box<StreamingMarkdown>>,
        begun: bool,
    },
    /// Reasoning of the model.
    Thought { text: String, for_ms: Option<u64> },
    /// Tool call.
    Call(Box<Card>),
    /// Message about the turn.
    Note { tone: Tone, text: String },
    /// Output of a command.
    Told { text: String },
    /// A command as it was typed.
    Command { line: String },
    /// Header of the conversation.
    Header(Box<Header>),
}

impl Item {
    /// True if the item does not change any more.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Call(card) => card.is_finished(),
            _ => true,
        }
    }

    /// Returns the lines that were not printed yet, and marks all as printed.
    pub(crate) fn rest(&mut self, options: RenderOptions) -> Vec<Line<'static>> {
        match self {
            Self::Answer { rest, .. } => match rest.take() {
                Some(growing) => growing.finish(options.columns, options.theme),
                None => Vec::new(),
            },
            _ => self.lines(options, 0),
        }
    }

    /// Drops what the folded form does not need. Messages stay: they have no other form.
    fn shorten(&mut self) {
        match self {
            Self::Call(card) => card.shorten(),
            Self::Thought { text, .. } => *text = first_line(text),
            Self::User { .. }
            | Self::Answer { .. }
            | Self::Note { .. }
            | Self::Told { .. }
            | Self::Command { .. }
            | Self::Header(_) => {}
        }
    }

    /// Marks the item as not printed, after the screen was cleared.
    pub(crate) fn start_over(&mut self) {
        if let Self::Answer { text, rest, begun } = self
            && std::mem::take(begun)
        {
            *rest = Some(Box::new(StreamingMarkdown::of(text)));
        }
    }

    /// Returns all lines. `now_ms` is needed for running calls.
    pub(crate) fn lines(&self, options: RenderOptions, now_ms: u64) -> Vec<Line<'static>> {
        let RenderOptions { columns, theme, .. } = options;
        match self {
            Self::User { text, images } => user(text, images, options),
            Self::Answer { text, .. } => markdown::render(text, columns, theme),
            Self::Thought { text, for_ms } => thought(text, *for_ms, options),
            Self::Call(card) => card.lines(options, now_ms),
            Self::Note { tone, text } => {
                let sign = match tone {
                    Tone::Bad => theme.sign("✗ ", "x "),
                    Tone::Warn => theme.sign("▲ ", "! "),
                    _ => theme.sign("· ", "- "),
                };
                block(sign, text, theme.style(*tone), columns)
            }
            Self::Told { text } => preformatted(text, columns),
            Self::Command { line } => {
                let mark = theme.sign("› ", "> ");
                block(
                    mark,
                    &cut(&one_line(line), SHORT_COLUMNS),
                    theme.style(Tone::Dim),
                    columns,
                )
            }
            Self::Header(header) => header.lines(columns, theme),
        }
    }
}

/// Returns the first line that is not blank, shortened.
pub(super) fn first_line(text: &str) -> String {
    let text = plain(text);
    let first = text.lines().find(|line| !line.trim().is_empty());
    cut(&one_line(first.unwrap_or_default()), SHORT_COLUMNS)
}

fn user(text: &str, images: &[String], options: RenderOptions) -> Vec<Line<'static>> {
    let mark = options.theme.sign("› ", "> ");
    let mut lines = block(
        mark,
        &plain(text),
        options.theme.style(Tone::User),
        options.columns,
    );
    if lines.len() > USER_ROWS && !options.unfolded {
        let left_out = USER_ENDS..lines.len() - USER_ENDS;
        let how = if options.is_unfoldable {
            " (ctrl+o shows all)"
        } else {
            ""
        };
        let more = folded(&format!("… {}{how}", count(left_out.len(), "more line")), options);
        lines.splice(left_out, [more]);
    }
    for image in images {
        let text = format!("  [image: {}]", one_line(image));
        lines.push(Line::styled(
            cut(&text, options.columns),
            options.theme.style(Tone::Dim),
        ));
    }
    lines
}

/// Formats lines after a mark, indented like the first.
fn block(mark: &str, text: &str, style: ratatui::style::Style, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mark = if index == 0 { mark } else { "  " };
        let line = Line::from(vec![
            Span::styled(mark.to_owned(), style),
            Span::styled(line.to_owned(), style),
        ]);
        lines.extend(wrap(&line, columns, "  "));
    }
    lines
}

/// Wraps text whose line breaks and columns are significant.
fn preformatted(text: &str, columns: usize) -> Vec<Line<'static>> {
    let lines = text.lines().map(|line| Line::raw(line.to_owned()));
    lines.flat_map(|line| wrap(&line, columns, "    ")).collect()
}

fn thought(text: &str, for_ms: Option<u64>, options: RenderOptions) -> Vec<Line<'static>> {
    let style = options.theme.style(Tone::Dim);
    let took = for_ms
        .filter(|ms| *ms >= 100)
        .map(|ms| format!(" for {}", super::card::duration(ms)))
        .unwrap_or_default();
    let sign = options.theme.sign("∴", "~");
    let head = format!("{sign} thought{took}");
    if !options.unfolded {
        let first = first_line(text);
        let line = if first.is_empty() {
            head
        } else {
            format!("{head}: {first}")
        };
        return vec![Line::styled(cut(&line, options.columns), style)];
    }
    let mut lines = vec![Line::styled(head, style)];
    for line in plain(text).lines() {
        let line = Line::styled(format!("  {line}"), style);
        lines.extend(wrap(&line, options.columns, "  "));
    }
    lines
}
