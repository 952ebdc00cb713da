//! The page being written: the open elements, and the places where text is allowed.

/// A page under construction. Every opened element is closed.
#[derive(Default)]
pub(super) struct Draft {
    out: String,
    open: Vec<Open>,
}

/// An opened element.
#[derive(Debug, Clone, Copy)]
struct Open {
    part: Part,
    /// Start in the output.
    start: usize,
    /// Start of its content; `None` if there is content already.
    content: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Paragraph,
    Heading(u8),
    List { ordered: bool },
    Item(ItemText),
    Quote,
    Preformatted,
    Link,
    Strong,
    Emphasis,
    Code,
    Table { rows: bool },
    Caption,
    Row { head: bool },
    Cell,
}

/// Text directly inside a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemText {
    None,
    Some,
    /// A block followed it, so further text is a paragraph.
    Ended,
}

impl Part {
    fn end_tag(self) -> &'static str {
        match self {
            Self::Paragraph => "</p>",
            Self::Heading(1) => "</h1>",
            Self::Heading(2) => "</h2>",
            Self::Heading(3) => "</h3>",
            Self::Heading(4) => "</h4>",
            Self::Heading(5) => "</h5>",
            Self::Heading(_) => "</h6>",
            Self::List { ordered: false } => "</ul>",
            Self::List { ordered: true } => "</ol>",
            Self::Item(_) => "</li>",
            Self::Quote => "</blockquote>",
            Self::Preformatted => "</code></pre>",
            Self::Link => "</a>",
            Self::Strong => "</strong>",
            Self::Emphasis => "</em>",
            Self::Code => "</code>",
            Self::Table { .. } => "</table>",
            Self::Caption => "</caption>",
            Self::Row { head: true } => "</tr></thead>",
            Self::Row { head: false } => "</tr>",
            Self::Cell => "</td>",
        }
    }

    /// Returns the start tag of an element without attributes.
    pub(super) fn start_tag(self) -> String {
        match self {
            Self::Row { head: true } => "<thead><tr>".to_owned(),
            other => other.end_tag().replace('/', ""),
        }
    }

    fn is_inline(self) -> bool {
        matches!(self, Self::Link | Self::Strong | Self::Emphasis | Self::Code)
    }

    /// Returns true if the content is one line, in which blocks are not separated.
    pub(super) fn is_line(self) -> bool {
        matches!(self, Self::Heading(_) | Self::Link | Self::Caption | Self::Cell)
    }

    fn is_container(self) -> bool {
        matches!(self, Self::List { .. } | Self::Item(_) | Self::Quote)
    }
}

impl Draft {
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Closes all elements.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.pop();
        }
        self.out
    }

    /// Writes text, or an element without content.
    pub(super) fn write(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Opens an element; if the same element was just closed, reopens it instead.
    pub(super) fn resume(&mut self, part: Part) {
        let Some(start) = self.out.strip_suffix(part.end_tag()).map(str::len) else {
            return self.begin(part);
        };
        self.out.truncate(start);
        self.open.push(Open {
            part,
            start,
            content: None,
        });
    }

    /// Returns true if the innermost element has no content yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.content == Some(self.out.len()))
    }

    /// Starts a row of the innermost table. The first row is its head: markdown has no tables without one.
    pub(super) fn begin_row(&mut self) {
        self.pop_above(|part| matches!(part, Part::Table { .. }));
        let head = self.top() == Some(Part::Table { rows: false });
        if let Some(table) = self.open.last_mut() {
            table.part = Part::Table { rows: true };
        }
        self.begin(Part::Row { head });
    }

    /// Returns true if no element is open.
    pub(super) fn is_outside(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn line_break(&mut self) {
        let follows_text = match self.top() {
            Some(Part::Item(text)) => text == ItemText::Some,
            Some(part) => part == Part::Paragraph || part.is_inline(),
            None => false,
        };
        if follows_text {
            self.out.push_str("<br>");
        }
    }

    pub(super) fn space(&mut self) {
        let takes_text = match self.top() {
            Some(Part::Item(text)) => text == ItemText::Some,
            Some(part) => part == Part::Paragraph || part.is_inline() || part.is_line(),
            None => false,
        };
        if takes_text && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    /// Makes room for text here. Returns false between the cells of a table, where text is not allowed.
    pub(super) fn make_place(&mut self) -> bool {
        match self.top() {
            None | Some(Part::Quote | Part::Item(ItemText::Ended)) => self.begin(Part::Paragraph),
            Some(Part::List { .. }) => self.begin(Part::Item(ItemText::Some)),
            Some(Part::Item(_)) => self.set_item(ItemText::Some),
            Some(Part::Table { .. } | Part::Row { .. }) => return false,
            Some(_) => {}
        }
        true
    }

    /// Ends the paragraph.
    pub(super) fn end_block(&mut self) {
        while self
            .top()
            .is_some_and(|part| part == Part::Paragraph || part.is_inline())
        {
            self.pop();
        }
        if self.top() == Some(Part::Item(ItemText::Some)) {
            self.set_item(ItemText::Ended);
        }
    }

    fn set_item(&mut self, text: ItemText) {
        if let Some(item) = self.open.last_mut() {
            item.part = Part::Item(text);
        }
    }

    pub(super) fn top(&self) -> Option<Part> {
        self.open.last().map(|open| open.part)
    }

    pub(super) fn is_open(&self, fits: impl Fn(Part) -> bool) -> bool {
        self.open.iter().any(|open| fits(open.part))
    }

    pub(super) fn in_line(&self) -> bool {
        self.is_open(Part::is_line)
    }

    pub(super) fn in_table(&self) -> bool {
        self.is_open(|part| matches!(part, Part::Table { .. }))
    }

    pub(super) fn depth(&self) -> usize {
        let is_level = |open: &&Open| matches!(open.part, Part::List { .. } | Part::Quote);
        self.open.iter().filter(is_level).count()
    }

    pub(super) fn nearest_is_item(&self) -> bool {
        let mut containers = self.open.iter().rev().filter(|open| open.part.is_container());
        matches!(containers.next().map(|open| open.part), Some(Part::Item(_)))
    }

    pub(super) fn begin(&mut self, part: Part) {
        self.push(part, &part.start_tag());
    }

    pub(super) fn push(&mut self, part: Part, tag: &str) {
        let start = self.out.len();
        self.out.push_str(tag);
        let content = Some(self.out.len());
        self.open.push(Open { part, start, content });
    }

    /// Closes the innermost element. An element without content is removed, unless it holds a place.
    pub(super) fn pop(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let content = open.content.and_then(|content| self.out.get(content..));
        let is_empty = content.is_some_and(|content| content.trim().is_empty());
        if !is_empty || open.part == Part::Cell {
            if !open.part.is_inline() && open.part != Part::Preformatted {
                let end = self.out.trim_end().len();
                self.out.truncate(end);
            }
            self.out.push_str(open.part.end_tag());
            return;
        }
        let had_space = content.is_some_and(|content| !content.is_empty());
        self.out.truncate(open.start);
        if had_space && open.part.is_inline() {
            self.space();
        }
    }

    /// Closes the innermost element that fits, and everything in it, if there is one.
    pub(super) fn pop_to(&mut self, fits: impl Fn(Part) -> bool) {
        if let Some(place) = self.open.iter().rposition(|open| fits(open.part)) {
            while self.open.len() > place {
                self.pop();
            }
        }
    }

    /// Closes everything in the innermost element that fits, if there is one.
    pub(super) fn pop_above(&mut self, fits: impl Fn(Part) -> bool) {
        if let Some(place) = self.open.iter().rposition(|open| fits(open.part)) {
            while self.open.len() > place + 1 {
                self.pop();
            }
        }
    }
}
