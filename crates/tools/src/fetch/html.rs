//! Converts HTML to markdown or plain text.
//!
//! The parser behind `htmd` keeps every element of a page, repairs wrong nesting by copying elements, and is
//! walked recursively. A page can be written to make each of these expensive, so none of them receives the
//! page itself: [`clean`] writes a small, shallow and well-formed page in a single pass, and that is
//! converted.

mod clean;
mod draft;
mod plain;
mod scan;
mod tag;

use std::panic::{AssertUnwindSafe, catch_unwind};

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown};
use reqwest::Url;

/// Maximum number of bytes to convert.
const MAX_CLEAN: usize = 2_000_000;

/// A converted page.
pub(super) struct Reading {
    pub(super) text: String,
    /// True if the page was too large to read to its end.
    pub(super) cut: bool,
}

/// Converts the page with its structure. Links become absolute, relative to `base`.
pub(super) fn markdown(html: &str, base: &Url) -> Reading {
    let (page, cut) = clean::clean(html, base, MAX_CLEAN);
    Reading {
        text: convert(page),
        cut,
    }
}

/// Returns the words of the page.
pub(super) fn plain(html: &str) -> Reading {
    let (words, cut) = plain::words(html, MAX_CLEAN);
    // Inside `pre` nothing is changed except entities, and inside another element not even the first
    // character.
    let page = format!("<pre><var>{words}</var></pre>");
    Reading {
        text: convert(page),
        cut,
    }
}

/// Converts a page. If the converter fails, the page is returned without conversion rather than not at all.
fn convert(page: String) -> String {
    let converted = catch_unwind(AssertUnwindSafe(|| converter().convert(&page)));
    match converted {
        Ok(Ok(text)) => text,
        Ok(Err(_)) | Err(_) => page,
    }
}

/// Creates the converter. Tables are written without padding, because one long cell would widen every row.
fn converter() -> HtmlToMarkdown {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    HtmlToMarkdown::builder()
        .options(options)
        .add_handler(vec!["td"], cell)
        .add_handler(vec!["tr"], row)
        .add_handler(vec!["thead"], head)
        .add_handler(vec!["tbody"], inside)
        .add_handler(vec!["table"], table)
        .build()
}

fn inside(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    Some(handlers.walk_children(element.node))
}

fn cell(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let content = handlers.walk_children(element.node).content;
    let words: Vec<&str> = content.split_whitespace().collect();
    Some(format!(" {} |", words.join(" ").replace('|', "\\|")).into())
}

fn row(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let cells = handlers.walk_children(element.node).content;
    Some(format!("\n|{cells}").into())
}

fn head(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let row = handlers.walk_children(element.node).content;
    let rows = element.node.children.borrow();
    let columns = rows.first().map_or(0, |row| row.children.borrow().len());
    Some(format!("{row}\n|{}", " --- |".repeat(columns)).into())
}

fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let rows = handlers.walk_children(element.node).content;
    Some(format!("\n\n{}\n\n", rows.trim_matches('\n')).into())
}

#[cfg(test)]
#[path = "html/html_tests.rs"]
mod tests;
