//! Finished markdown as lines.
//!
//! Nested blocks are frames on a stack, not recursive calls: a text can nest them to any depth.

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::code;
use super::inline::{Inline, harmless};
use super::table::Table;
use crate::flow;
use crate::text::{one_line, width};
use crate::theme::{Theme, Tone};

/// Syntax highlighting of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    Shown,
    /// Off, for blocks that are redrawn often.
    LeftOut,
}

/// Renders a text of whole blocks.
pub(super) fn lines(source: &str, columns: usize, theme: Theme, colours: Colours) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    let mut parser = Parser::new_ext(source, options).into_offset_iter();
    let mut page = Page::new(columns, theme, colours);
    for (event, range) in parser.by_ref() {
        page.event(event, source.get(range).unwrap_or_default());
    }
    page.flush();
    // Link targets may be defined separately from the links. Definitions are known within one block only, so
    // they are shown as written.
    let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
    definitions.sort_by_key(|(_, definition)| definition.span.start);
    for (_, definition) in definitions {
        let text = one_line(source.get(definition.span.clone()).unwrap_or_default());
        page.add_text(&[Span::styled(text, theme.style(Tone::Dim))]);
    }
    page.frames.pop().map(|frame| frame.lines).unwrap_or_default()
}

struct Page {
    columns: usize,
    theme: Theme,
    colours: Colours,
    /// Open frames, the page first.
    frames: Vec<Frame>,
    inline: Inline,
    verbatim: Option<Verbatim>,
    table: Option<Table>,
}

/// A block that contains blocks.
struct Frame {
    kind: FrameKind,
    lines: Vec<Line<'static>>,
    /// Available width of its lines.
    columns: usize,
    /// True if its children are separated by blank lines.
    is_loose: bool,
}

enum FrameKind {
    Page,
    Quote,
    List {
        next: Option<u64>,
    },
    /// An item with the marker of its first line.
    Item(String),
}

/// Text collected verbatim.
enum Verbatim {
    Code { language: String, text: String },
    Html(String),
}

impl Page {
    fn new(columns: usize, theme: Theme, colours: Colours) -> Self {
        let page = Frame {
            kind: FrameKind::Page,
            lines: Vec::new(),
            columns,
            is_loose: true,
        };
        Self {
            columns,
            theme,
            colours,
            frames: vec![page],
            inline: Inline::new(theme),
            verbatim: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>, source: &str) {
        match (&mut self.verbatim, event) {
            (
                Some(Verbatim::Code { text, .. } | Verbatim::Html(text)),
                Event::Text(piece) | Event::Html(piece) | Event::InlineHtml(piece),
            ) => text.push_str(&piece),
            (_, Event::Start(tag)) => self.start(tag, source),
            (_, Event::End(tag)) => self.end(tag, source),
            (_, Event::Rule) => {
                self.flush();
                let sign = self.theme.sign("─", "-");
                let rule = Span::styled(sign.repeat(self.inner_columns()), self.theme.style(Tone::Dim));
                self.add(vec![Line::from(rule)], Space::Around);
            }
            (_, Event::TaskListMarker(is_done)) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.remark(mark.to_owned());
            }
            (_, event) => self.inline.event(event, source),
        }
    }

    fn start(&mut self, tag: Tag<'_>, source: &str) {
        match tag {
            Tag::Paragraph => {
                self.flush();
                if let Some(frame) = self.frames.last_mut() {
                    frame.is_loose = true;
                }
            }
            Tag::Heading { level, .. } => {
                self.flush();
                self.inline.set_base(heading(level, self.theme));
            }
            Tag::BlockQuote(kind) => {
                self.enter(FrameKind::Quote, width(self.bar()));
                if let Some(frame) = self.frames.last_mut() {
                    frame.is_loose = true;
                }
                self.add_title(kind);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => code::language(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                let text = String::new();
                self.verbatim = Some(Verbatim::Code { language, text });
            }
            Tag::HtmlBlock => {
                self.flush();
                self.verbatim = Some(Verbatim::Html(String::new()));
            }
            Tag::List(next) => self.enter(FrameKind::List { next }, 0),
            Tag::Item => {
                let mark = self.next_mark();
                self.enter_item(mark);
            }
            Tag::FootnoteDefinition(label) => self.enter_item(format!("[^{}]: ", harmless(&label))),
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => {}
            tag => self.inline.event(Event::Start(tag), source),
        }
    }

    fn end(&mut self, tag: TagEnd, source: &str) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => self.flush(),
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.leave();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                let lines = match self.verbatim.take() {
                    Some(Verbatim::Code { language, text }) => self.code_lines(&language, &text),
                    Some(Verbatim::Html(text)) => self.html_lines(&text),
                    None => Vec::new(),
                };
                self.add(lines, Space::Around);
            }
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.add_cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.inner_columns(), self.theme);
                    self.add(lines, Space::Around);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            tag => self.inline.event(Event::End(tag), source),
        }
    }

    /// Emits the collected text as a block of its own.
    fn flush(&mut self) {
        let spans = self.inline.take();
        if !spans.is_empty() {
            self.add_text(&spans);
        }
    }

    fn add_text(&mut self, spans: &[Span<'_>]) {
        let lines = flow::fill(spans, self.inner_columns());
        self.add(lines, Space::Around);
    }

    fn add(&mut self, lines: Vec<Line<'static>>, space: Space) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        if lines.is_empty() {
            return;
        }
        let is_apart =
            frame.is_loose && (space == Space::Around || !matches!(frame.kind, FrameKind::Item(_)));
        if is_apart && !frame.lines.is_empty() {
            frame.lines.push(Line::default());
        }
        frame.lines.extend(lines);
    }

    fn inner_columns(&self) -> usize {
        self.frames.last().map_or(self.columns, |frame| frame.columns)
    }

    fn bar(&self) -> &'static str {
        self.theme.sign("▌ ", "| ")
    }

    /// Opens a frame whose lines are indented by this many columns.
    fn enter(&mut self, kind: FrameKind, before: usize) {
        self.flush();
        let columns = self.narrowed(self.inner_columns(), before);
        self.frames.push(Frame {
            kind,
            lines: Vec::new(),
            columns,
            is_loose: false,
        });
    }

    /// Leaves half of the width for text however deep the nesting; deeper levels are not indented further.
    fn narrowed(&self, columns: usize, before: usize) -> usize {
        match columns.checked_sub(before) {
            Some(inner) if inner >= self.columns / 2 && inner > 0 => inner,
            _ => columns,
        }
    }

    fn enter_item(&mut self, mark: String) {
        let before = width(&mark);
        self.enter(FrameKind::Item(mark), before);
    }

    /// Replaces the marker of the item that just started.
    fn remark(&mut self, mark: String) {
        let outer = self
            .frames
            .iter()
            .rev()
            .nth(1)
            .map_or(self.columns, |frame| frame.columns);
        let columns = self.narrowed(outer, width(&mark));
        if let Some(Frame {
            kind: FrameKind::Item(old),
            columns: inner,
            ..
        }) = self.frames.last_mut()
        {
            *old = mark;
            *inner = columns;
        }
    }

    fn next_mark(&mut self) -> String {
        let is_list = |frame: &&Frame| matches!(frame.kind, FrameKind::List { .. });
        let depth = self.frames.iter().filter(is_list).count();
        let bullet = if depth % 2 == 1 { "• " } else { "◦ " };
        if let Some(Frame {
            kind: FrameKind::List { next: Some(next) },
            ..
        }) = self.frames.last_mut()
        {
            let mark = format!("{next}. ");
            *next = next.saturating_add(1);
            return mark;
        }
        self.theme.sign(bullet, "- ").to_owned()
    }

    /// Closes the last frame and adds its lines to the enclosing one.
    fn leave(&mut self) {
        self.flush();
        if self.frames.len() < 2 {
            return;
        }
        let Some(frame) = self.frames.pop() else { return };
        let is_moved = frame.columns < self.inner_columns();
        match frame.kind {
            FrameKind::Page => {}
            FrameKind::List { .. } => self.add(frame.lines, Space::AroundUnlessItem),
            FrameKind::Quote => {
                let bar = Span::styled(self.bar(), self.theme.style(Tone::Dim));
                let lines = match is_moved {
                    true => prefixed(frame.lines, &bar, &bar),
                    false => frame.lines,
                };
                self.add(lines, Space::Around);
            }
            FrameKind::Item(mark) => {
                let lines = self.item_lines(frame.lines, mark, is_moved);
                self.add_item(lines, frame.is_loose);
            }
        }
    }

    fn item_lines(&self, lines: Vec<Line<'static>>, mark: String, is_moved: bool) -> Vec<Line<'static>> {
        if is_moved && !lines.is_empty() {
            let indent = Span::raw(" ".repeat(width(&mark)));
            return prefixed(lines, &Span::raw(mark), &indent);
        }
        let mut all = flow::fill(&[Span::raw(mark)], self.inner_columns());
        all.extend(lines);
        all
    }

    fn add_item(&mut self, lines: Vec<Line<'static>>, is_loose: bool) {
        let Some(list) = self.frames.last_mut() else {
            return;
        };
        if !matches!(list.kind, FrameKind::List { .. }) {
            return self.add(lines, Space::Around);
        }
        // A blank line on either side of an item separates two items.
        let is_apart = list.is_loose || is_loose;
        if is_apart && !list.lines.is_empty() {
            list.lines.push(Line::default());
        }
        list.is_loose = is_loose;
        list.lines.extend(lines);
    }

    fn add_title(&mut self, kind: Option<BlockQuoteKind>) {
        let (title, tone) = match kind {
            None => return,
            Some(BlockQuoteKind::Note) => ("Note", Tone::Accent),
            Some(BlockQuoteKind::Tip) => ("Tip", Tone::Good),
            Some(BlockQuoteKind::Important) => ("Important", Tone::Accent),
            Some(BlockQuoteKind::Warning) => ("Warning", Tone::Warn),
            Some(BlockQuoteKind::Caution) => ("Caution", Tone::Bad),
        };
        let style = self.theme.style(tone).add_modifier(Modifier::BOLD);
        self.add_text(&[Span::styled(title, style)]);
    }

    fn code_lines(&self, language: &str, text: &str) -> Vec<Line<'static>> {
        let columns = self.inner_columns();
        let mut block = match self.colours {
            Colours::Shown => code::Block::new(language, self.theme),
            Colours::LeftOut => code::Block::uncoloured(),
        };
        let mut lines = code::Block::label(language, columns, self.theme);
        lines.extend(text.lines().flat_map(|line| block.line(line, columns)));
        lines
    }

    fn html_lines(&self, text: &str) -> Vec<Line<'static>> {
        let columns = self.inner_columns();
        let line = |line: &str| flow::fill(&[Span::raw(harmless(line))], columns);
        text.trim_end().lines().flat_map(line).collect()
    }
}

/// Placement of blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Around,
    /// A list follows the text of its item directly.
    AroundUnlessItem,
}

fn prefixed(
    mut lines: Vec<Line<'static>>,
    first: &Span<'static>,
    rest: &Span<'static>,
) -> Vec<Line<'static>> {
    for (index, line) in lines.iter_mut().enumerate() {
        let mut prefix = if index == 0 { first.clone() } else { rest.clone() };
        if line.spans.is_empty() {
            prefix.content = prefix.content.trim_end().to_owned().into();
        }
        if !prefix.content.is_empty() {
            line.spans.insert(0, prefix);
        }
    }
    lines
}

fn heading(level: HeadingLevel, theme: Theme) -> Style {
    let style = theme.style(Tone::Heading).add_modifier(Modifier::BOLD);
    match level {
        HeadingLevel::H1 => style.add_modifier(Modifier::UNDERLINED),
        HeadingLevel::H2 => style,
        HeadingLevel::H3 => style.add_modifier(Modifier::ITALIC),
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => {
            style.add_modifier(Modifier::ITALIC | Modifier::DIM)
        }
    }
}
