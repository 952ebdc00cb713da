//! Reduces a page to what a reader needs: few kinds of elements, nested a few levels deep, each closed in the
//! right place.
//!
//! The parser reproduces this output element for element: it repairs, moves and copies nothing. Elements
//! without meaning to a reader are left out, and so are most attributes.

use reqwest::Url;

use super::draft::{Draft, ItemText, Part};
use super::scan::{Attributes, Scanner, Token};
use super::tag::{Role, role};
use windlass_core::text::boundary_before;

/// Maximum nesting of lists and quotes; deeper ones are flattened.
const MAX_DEPTH: usize = 8;
const MAX_TITLE: usize = 500;
const MAX_ADDRESS: usize = 2000;

/// Rewrites a page; the flag is true if it was cut after `most` bytes.
pub(super) fn clean(html: &str, base: &Url, most: usize) -> (String, bool) {
    let mut cleaner = Cleaner::new(base, most);
    let mut scanner = Scanner::new(html);
    while let Some(token) = scanner.next() {
        match token {
            Token::Text(text) => cleaner.text(text),
            Token::Title(text) => cleaner.title(text),
            Token::Open { name, attributes } => {
                if let Some(role) = role(&name) {
                    cleaner.open(role, attributes, scanner);
                }
            }
            Token::Close { name } => {
                if let Some(role) = role(&name) {
                    cleaner.close(role);
                }
            }
        }
        if cleaner.draft.len() >= most {
            return (cleaner.finish(), true);
        }
    }
    (cleaner.finish(), false)
}

struct Cleaner {
    draft: Draft,
    most: usize,
    base: Url,
    title: Option<String>,
    /// Number of lists and quotes that are open on the page but not in the output.
    left_out: usize,
    /// Tables inside a table cell, which are flattened as well.
    inner_tables: usize,
}

impl Cleaner {
    fn new(base: &Url, most: usize) -> Self {
        Self {
            draft: Draft::default(),
            most,
            base: base.clone(),
            title: None,
            left_out: 0,
            inner_tables: 0,
        }
    }

    fn finish(self) -> String {
        let page = self.draft.finish();
        match self.title {
            Some(title) if !page.contains("<h1>") => format!("<h1>{title}</h1>{page}"),
            _ => page,
        }
    }

    fn title(&mut self, text: &str) {
        let text = text.trim();
        if self.title.is_none() && !text.is_empty() {
            let (text, _) = text.split_at(boundary_before(text, MAX_TITLE));
            self.title = Some(escaped(text));
        }
    }

    fn text(&mut self, text: &str) {
        let room = self.most.saturating_sub(self.draft.len());
        let (text, _) = text.split_at(boundary_before(text, room));
        if self.draft.top() == Some(Part::Preformatted) {
            let at_start = self.draft.is_at_start();
            let text = text.strip_prefix('\n').filter(|_| at_start).unwrap_or(text);
            self.draft.write(&escaped(text));
        } else if text.trim().is_empty() {
            self.draft.space();
        } else if self.draft.make_place() {
            self.draft.write(&escaped(text));
        }
    }

    fn open(&mut self, role: Role, attributes: Attributes<'_>, ahead: Scanner<'_>) {
        if self.draft.top() == Some(Part::Preformatted) {
            if role == Role::LineBreak {
                self.draft.write("\n");
            }
            return;
        }
        match role {
            Role::Table | Role::Caption | Role::Row | Role::Cell => self.open_table(role, ahead),
            Role::Link => self.open_link(attributes),
            Role::Strong => self.open_inline(Part::Strong),
            Role::Emphasis => self.open_inline(Part::Emphasis),
            Role::Code => self.open_inline(Part::Code),
            Role::Image => self.image(attributes),
            Role::Base => self.rebase(attributes),
            Role::Heading(_) => {
                self.draft.pop_to(|part| matches!(part, Part::Heading(_)));
                self.open_block(role, attributes, ahead);
            }
            role => self.open_block(role, attributes, ahead),
        }
    }

    fn open_block(&mut self, role: Role, attributes: Attributes<'_>, ahead: Scanner<'_>) {
        if self.draft.in_line() {
            return self.draft.space();
        }
        match role {
            Role::LineBreak => self.draft.line_break(),
            Role::Item => self.open_item(),
            Role::List { .. } | Role::Quote if self.draft.depth() >= MAX_DEPTH => {
                self.left_out += 1;
                self.draft.end_block();
            }
            Role::List { ordered } => {
                self.draft.end_block();
                let start = attributes
                    .get("start")
                    .and_then(|start| start.parse::<u16>().ok());
                let tag = match start.filter(|_| ordered) {
                    Some(start) => format!("<ol start=\"{start}\">"),
                    None => Part::List { ordered }.start_tag(),
                };
                self.draft.push(Part::List { ordered }, &tag);
            }
            Role::Quote => {
                self.draft.end_block();
                self.draft.begin(Part::Quote);
            }
            Role::Heading(level) => {
                self.draft.end_block();
                self.draft.begin(Part::Heading(level));
            }
            Role::Preformatted => {
                self.draft.end_block();
                self.open_preformatted(attributes, ahead);
            }
            Role::Line => {
                self.draft.end_block();
                if self.draft.is_outside() {
                    self.draft.write("<hr>");
                }
            }
            _ => self.draft.end_block(),
        }
    }

    fn close(&mut self, role: Role) {
        if self.draft.top() == Some(Part::Preformatted) && role != Role::Preformatted {
            return;
        }
        match role {
            Role::Link => self.draft.pop_to(|part| part == Part::Link),
            Role::Strong => self.draft.pop_to(|part| part == Part::Strong),
            Role::Emphasis => self.draft.pop_to(|part| part == Part::Emphasis),
            Role::Code => self.draft.pop_to(|part| part == Part::Code),
            Role::Preformatted => self.draft.pop_to(|part| part == Part::Preformatted),
            Role::Heading(_) => self.draft.pop_to(|part| matches!(part, Part::Heading(_))),
            Role::Table if self.inner_tables > 0 => {
                self.inner_tables -= 1;
                self.draft.space();
            }
            Role::Caption | Role::Row | Role::Cell if self.inner_tables > 0 => self.draft.space(),
            Role::Table if self.draft.in_table() => {
                self.draft.pop_to(|part| matches!(part, Part::Table { .. }));
            }
            Role::Caption => self.draft.pop_to(|part| part == Part::Caption),
            Role::Row if self.draft.in_table() => self.draft.pop_to(|part| matches!(part, Part::Row { .. })),
            Role::Cell if self.draft.in_table() => self.draft.pop_to(|part| part == Part::Cell),
            Role::LineBreak | Role::Line | Role::Image | Role::Base => {}
            Role::List { .. } | Role::Quote if self.left_out > 0 => self.left_out -= 1,
            // Lists and quotes are never inside tables here.
            Role::List { .. } if !self.draft.in_table() => {
                self.draft.pop_to(|part| matches!(part, Part::List { .. }));
            }
            Role::Quote if !self.draft.in_table() => self.draft.pop_to(|part| part == Part::Quote),
            Role::Item if !self.draft.in_table() && self.draft.nearest_is_item() => {
                self.draft.pop_to(|part| matches!(part, Part::Item(_)));
            }
            _ if self.draft.in_line() => self.draft.space(),
            _ => self.draft.end_block(),
        }
    }

    fn open_table(&mut self, role: Role, ahead: Scanner<'_>) {
        let is_table = |part| matches!(part, Part::Table { .. });
        match role {
            Role::Table if self.draft.in_table() => {
                self.inner_tables += 1;
                self.draft.space();
            }
            _ if self.draft.in_table() && self.inner_tables > 0 => self.draft.space(),
            Role::Table if !self.draft.in_line() && has_header(ahead.rest()) => {
                self.draft.end_block();
                self.draft.begin(Part::Table { rows: false });
            }
            Role::Caption if self.draft.in_table() => {
                self.draft.pop_above(is_table);
                if self.draft.top() == Some(Part::Table { rows: false }) {
                    self.draft.begin(Part::Caption);
                }
            }
            Role::Row if self.draft.in_table() => self.draft.begin_row(),
            Role::Cell if self.draft.in_table() => {
                if !self.draft.is_open(|part| matches!(part, Part::Row { .. })) {
                    self.draft.begin_row();
                }
                self.draft.pop_above(|part| matches!(part, Part::Row { .. }));
                self.draft.begin(Part::Cell);
            }
            // The cells of a layout table are placed next to each other.
            Role::Cell => self.draft.space(),
            _ if self.draft.in_line() => self.draft.space(),
            _ => self.draft.end_block(),
        }
    }

    fn open_item(&mut self) {
        if self.draft.nearest_is_item() {
            self.draft.pop_to(|part| matches!(part, Part::Item(_)));
        }
        self.draft.end_block();
        if !matches!(self.draft.top(), Some(Part::List { .. })) {
            if self.draft.depth() >= MAX_DEPTH {
                return;
            }
            self.draft.begin(Part::List { ordered: false });
        }
        self.draft.begin(Part::Item(ItemText::None));
    }

    /// Opens preformatted text. The language is a class of `pre`, or of the `code` in it.
    fn open_preformatted(&mut self, attributes: Attributes<'_>, ahead: Scanner<'_>) {
        let mut inner = ahead.filter(|token| !matches!(token, Token::Text(text) if text.trim().is_empty()));
        let inner = match inner.next() {
            Some(Token::Open { name, attributes }) if name == "code" => attributes.get("class"),
            _ => None,
        };
        let classes = [attributes.get("class"), inner];
        let mut classes = classes
            .into_iter()
            .flatten()
            .flat_map(str::split_ascii_whitespace);
        let language = classes.find_map(|class| {
            let name = class
                .strip_prefix("language-")
                .or_else(|| class.strip_prefix("lang-"))?;
            let fits =
                |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '#' | '_');
            (name.len() <= 30 && name.chars().all(fits)).then_some(name)
        });
        let tag = match language {
            Some(language) => format!("<pre><code class=\"language-{language}\">"),
            None => "<pre><code>".to_owned(),
        };
        self.draft.push(Part::Preformatted, &tag);
    }

    fn open_inline(&mut self, part: Part) {
        if self.draft.is_open(|open| open == part || open == Part::Code) || !self.draft.make_place() {
            return;
        }
        self.draft.resume(part);
    }

    fn open_link(&mut self, attributes: Attributes<'_>) {
        self.draft.pop_to(|part| part == Part::Link);
        let address = attributes.get("href").and_then(|href| self.address(href));
        if let Some(address) = address.filter(|_| !self.draft.is_open(|part| part == Part::Code))
            && self.draft.make_place()
        {
            self.draft.push(Part::Link, &format!("<a href=\"{address}\">"));
        }
    }

    /// Writes an image as its alternative text, its only meaning to a reader.
    fn image(&mut self, attributes: Attributes<'_>) {
        let other = attributes
            .get("alt")
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let address = attributes.get("src").and_then(|source| self.address(source));
        if let (Some(other), Some(address)) = (other, address)
            && other.len() <= MAX_ADDRESS
            && !self.draft.is_open(|part| part == Part::Code)
            && self.draft.make_place()
        {
            let other = other.replace('"', "&quot;");
            self.draft
                .write(&format!("<img src=\"{address}\" alt=\"{other}\">"));
        }
    }

    fn rebase(&mut self, attributes: Attributes<'_>) {
        let base = attributes
            .get("href")
            .and_then(|href| self.base.join(href.trim()).ok());
        if let Some(base) = base.filter(|base| matches!(base.scheme(), "http" | "https")) {
            self.base = base;
        }
    }

    /// Returns the target of a link, if it is another page.
    fn address(&self, written: &str) -> Option<String> {
        let written = written.trim();
        if written.is_empty() || written.starts_with('#') || written.len() > MAX_ADDRESS {
            return None;
        }
        let url = self.base.join(written).ok()?;
        let leads_on = matches!(url.scheme(), "http" | "https" | "mailto");
        leads_on.then(|| url.as_str().replace('"', "&quot;"))
    }
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;")
}

/// Returns true if a table has a header before it ends or another one starts. Tables without one only arrange
/// the page.
fn has_header(rest: &str) -> bool {
    let is = |place: usize, tag: &str| {
        let found = rest.as_bytes().get(place..place + tag.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()))
    };
    let tags = rest.match_indices('<').map(|(place, _)| place);
    let mut telling = tags.filter(|place| is(*place, "<th") || is(*place, "<table") || is(*place, "</table"));
    telling.next().is_some_and(|place| is(place, "<th"))
}
