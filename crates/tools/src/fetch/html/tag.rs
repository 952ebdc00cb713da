//! Meaning of HTML elements to a reader.

/// Purpose of an element. All others only contain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Separated from the text before and after it.
    Block,
    Heading(u8),
    List {
        ordered: bool,
    },
    Item,
    Quote,
    Preformatted,
    Link,
    Strong,
    Emphasis,
    Code,
    LineBreak,
    Line,
    Image,
    Table,
    Caption,
    Row,
    Cell,
    /// Base of relative links.
    Base,
}

const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "legend",
    "main",
    "nav",
    "p",
    "search",
    "section",
    "summary",
];

/// Returns the role of the element with this name.
pub(super) fn role(name: &str) -> Option<Role> {
    Some(match name {
        "h1" => Role::Heading(1),
        "h2" => Role::Heading(2),
        "h3" => Role::Heading(3),
        "h4" => Role::Heading(4),
        "h5" => Role::Heading(5),
        "h6" => Role::Heading(6),
        "ul" | "menu" | "dir" => Role::List { ordered: false },
        "ol" => Role::List { ordered: true },
        "li" => Role::Item,
        "blockquote" => Role::Quote,
        "pre" | "listing" => Role::Preformatted,
        "a" => Role::Link,
        "b" | "strong" => Role::Strong,
        "i" | "em" => Role::Emphasis,
        "code" | "kbd" | "samp" | "tt" => Role::Code,
        "br" => Role::LineBreak,
        "hr" => Role::Line,
        "img" => Role::Image,
        "table" => Role::Table,
        "caption" => Role::Caption,
        "tr" => Role::Row,
        "td" | "th" => Role::Cell,
        "base" => Role::Base,
        name if BLOCKS.contains(&name) => Role::Block,
        _ => return None,
    })
}
