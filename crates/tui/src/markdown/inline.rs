//! Inline text of a block: spans with their styles.

use pulldown_cmark::{Event, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use crate::text::plain;
use crate::theme::{Theme, Tone};

/// Collects the text of one block.
pub(super) struct Inline {
    theme: Theme,
    spans: Vec<Span<'static>>,
    /// Style of the block, followed by the styles of all open inline elements.
    styles: Vec<Style>,
    targets: Vec<Target>,
}

/// An open link or image.
struct Target {
    /// Number of spans before it.
    begin: usize,
    destination: String,
    is_image: bool,
}

impl Inline {
    pub(super) fn new(theme: Theme) -> Self {
        Self {
            theme,
            spans: Vec::new(),
            styles: vec![Style::new()],
            targets: Vec::new(),
        }
    }

    /// Sets the style of the following text, up to the end of the block.
    pub(super) fn set_base(&mut self, style: Style) {
        self.styles = vec![style];
    }

    /// Takes the collected spans and starts the next block.
    pub(super) fn take(&mut self) -> Vec<Span<'static>> {
        self.set_base(Style::new());
        self.targets.clear();
        std::mem::take(&mut self.spans)
    }

    /// Handles an inline event. `source` is its source text.
    pub(super) fn event(&mut self, event: Event<'_>, source: &str) {
        match event {
            Event::Start(tag) => self.start(tag, source),
            Event::End(tag) => self.end(tag, source),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Code(code) => {
                let style = self.style().patch(self.theme.style(Tone::Code));
                self.push(&code, style);
            }
            Event::InlineHtml(html) | Event::Html(html) if is_line_break(&html) => self.line_break(),
            Event::InlineHtml(html) | Event::Html(html) => self.text(&html),
            Event::FootnoteReference(label) => self.text(&format!("[^{label}]")),
            // Models write lists without markers and mean the line breaks, as people do in chats.
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            // These are block elements.
            Event::Rule | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, source: &str) {
        match tag {
            Tag::Emphasis => self.open(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.open(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough if is_struck(source) => {
                self.open(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Strikethrough => self.text("~"),
            Tag::Link { dest_url, .. } => {
                self.target(&dest_url, false);
                self.open(self.theme.style(Tone::Link));
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image: ");
                self.target(&dest_url, true);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, source: &str) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong => self.close(),
            TagEnd::Strikethrough if is_struck(source) => self.close(),
            TagEnd::Strikethrough => self.text("~"),
            TagEnd::Link => {
                self.close();
                self.end_target();
            }
            TagEnd::Image => self.end_target(),
            _ => {}
        }
    }

    fn target(&mut self, destination: &str, is_image: bool) {
        self.targets.push(Target {
            begin: self.spans.len(),
            destination: harmless(destination),
            is_image,
        });
    }

    /// Appends the target of a link, unless its text already shows it.
    fn end_target(&mut self) {
        let Some(target) = self.targets.pop() else { return };
        let inside = self.spans.iter().skip(target.begin);
        let text: String = inside.map(|span| span.content.as_ref()).collect();
        if target.is_image {
            self.text("]");
        }
        let says_it = text == target.destination || target.destination == format!("mailto:{text}");
        if !says_it && !target.destination.is_empty() {
            let gap = if text.is_empty() && !target.is_image {
                ""
            } else {
                " "
            };
            let style = self.theme.style(Tone::Dim);
            self.push(&format!("{gap}({})", target.destination), style);
        }
    }

    fn open(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn close(&mut self) {
        // The style of the block stays.
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        self.push(text, self.style());
    }

    fn line_break(&mut self) {
        self.spans.push(Span::raw("\n"));
    }

    fn push(&mut self, text: &str, style: Style) {
        let text = harmless(text);
        if !text.is_empty() {
            self.spans.push(Span::styled(text, style));
        }
    }
}

/// Removes control characters and line breaks from external text. A character reference can stand for any of
/// them, so checking the source is not enough.
pub(super) fn harmless(text: &str) -> String {
    let text = plain(text);
    if text.contains(BREAKS) {
        text.replace(BREAKS, " ")
    } else {
        text
    }
}

const BREAKS: [char; 4] = ['\n', '\t', '\u{2028}', '\u{2029}'];

/// Requires two tildes: a single one is more often a home folder or "about" than strikethrough.
fn is_struck(source: &str) -> bool {
    source.starts_with("~~")
}

fn is_line_break(html: &str) -> bool {
    let inner = html
        .trim()
        .strip_prefix('<')
        .and_then(|html| html.strip_suffix('>'));
    inner.is_some_and(|tag| tag.trim_end_matches(['/', ' ']).eq_ignore_ascii_case("br"))
}
