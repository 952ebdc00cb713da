//! A Rust file as the checks see it: its syntax tree, and its tokens in a flat list.
//!
//! The flat list sees what a syntax tree hides: code inside macros. Doc comments are not in it, and each
//! token knows whether it belongs to a test, so that one walk serves rules for both kinds of code.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// One token: a word, a literal, a bracket, a sign. `::` is one token.
#[derive(Debug)]
pub(crate) struct Token {
    text: String,
    first_line: usize,
    last_line: usize,
    in_test: bool,
}

/// A place where a pattern occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

pub(crate) struct RustFile {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    is_test: bool,
    tokens: Vec<Token>,
    imports: Vec<Import>,
}

/// A path brought in by `use`, groups resolved: `use a::{b, c}` is two imports.
struct Import {
    path: String,
    line: usize,
}

impl RustFile {
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, syn::Error> {
        let stream: TokenStream = text.parse()?;
        let syntax: syn::File = syn::parse2(stream.clone())?;
        let mut flat = Flat { tokens: Vec::new() };
        let is_test = flat.stream(stream, is_test_path(path));
        let mut imports = Imports {
            prefix: Vec::new(),
            found: Vec::new(),
        };
        imports.visit_file(&syntax);
        let (path, text) = (path.to_owned(), text.to_owned());
        Ok(Self {
            path,
            text,
            syntax,
            is_test,
            tokens: flat.tokens,
            imports: imports.found,
        })
    }

    /// Whether the whole file is test code, by its name or by `#![cfg(test)]`.
    pub(crate) fn is_test(&self) -> bool {
        self.is_test
    }

    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.tokens
            .iter()
            .any(|token| token.in_test && token.first_line == line)
    }

    /// Lines with production code on them.
    pub(crate) fn production_lines(&self) -> usize {
        count_lines(self.tokens.iter().filter(|token| !token.in_test))
    }

    /// Lines with any code on them, strictly between two lines.
    pub(crate) fn code_lines_between(&self, open: usize, close: usize) -> usize {
        count_lines(
            self.tokens
                .iter()
                .filter(|token| token.first_line > open && token.last_line < close),
        )
    }

    /// Every place where these tokens follow each other. The pattern is written with spaces: `Instant :: now`.
    ///
    /// An import that ends like the pattern counts, because the call behind it is only a bare name.
    pub(crate) fn places(&self, pattern: &str) -> BTreeSet<Place> {
        let words: Vec<&str> = pattern.split(' ').collect();
        let called = self.tokens.windows(words.len()).filter_map(|window| {
            let same = window.iter().zip(&words).all(|(token, word)| token.text == *word);
            window.first().filter(|_| same).map(|token| Place {
                line: token.first_line,
                in_test: token.in_test,
            })
        });
        let ending = format!("::{}", pattern.replace(' ', ""));
        let imported = self
            .imports
            .iter()
            .filter(|import| import.path.ends_with(&ending));
        let imported = imported.map(|import| Place {
            line: import.line,
            in_test: self.is_test_line(import.line),
        });
        called.chain(imported).collect()
    }
}

/// Files that hold only tests, or examples: they are read by other rules than the product.
fn is_test_path(path: &str) -> bool {
    let is_test_folder = |part| matches!(part, "tests" | "examples" | "benches");
    path.split('/').any(is_test_folder) || path.ends_with("_tests.rs") || path.ends_with("/tests.rs")
}

fn count_lines<'a>(tokens: impl Iterator<Item = &'a Token>) -> usize {
    tokens
        .flat_map(|token| token.first_line..=token.last_line)
        .collect::<BTreeSet<_>>()
        .len()
}

/// Builds the flat list.
struct Flat {
    tokens: Vec<Token>,
}

impl Flat {
    /// Adds the tokens of a stream and says whether all of it is test code.
    fn stream(&mut self, stream: TokenStream, in_test: bool) -> bool {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut whole_is_test = in_test;
        let mut item_is_test = false;
        let mut rest = trees.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if let Some(attribute) = Attribute::read(first, after) {
                whole_is_test |= attribute.inner && attribute.marks_test();
                item_is_test |= attribute.marks_test();
                if attribute.is_doc() {
                    rest = after.get(attribute.length..).unwrap_or_default();
                    continue;
                }
            }
            if let (true, Some((_, after))) = (is_path_sign(first, after), after.split_first()) {
                self.push("::".to_owned(), first.span(), whole_is_test || item_is_test);
                rest = after;
                continue;
            }
            self.tree(first, whole_is_test || item_is_test);
            // An item ends at its semicolon or its braces; what a test attribute marks ends there too.
            item_is_test &= !ends_item(first);
        }
        whole_is_test
    }

    fn tree(&mut self, tree: &TokenTree, in_test: bool) {
        let TokenTree::Group(group) = tree else {
            return self.push(tree.to_string(), tree.span(), in_test);
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        self.push(open.to_owned(), group.span_open(), in_test);
        let in_test = self.stream(group.stream(), in_test);
        self.push(close.to_owned(), group.span_close(), in_test);
    }

    fn push(&mut self, text: String, span: Span, in_test: bool) {
        self.tokens.push(Token {
            text,
            first_line: span.start().line,
            last_line: span.end().line,
            in_test,
        });
    }
}

fn is_path_sign(first: &TokenTree, after: &[TokenTree]) -> bool {
    let colon = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ':');
    let joint = matches!(first, TokenTree::Punct(sign) if sign.spacing() == proc_macro2::Spacing::Joint);
    colon(first) && joint && after.first().is_some_and(colon)
}

fn ends_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    }
}

/// `#[…]` or `#![…]`, seen at its `#`.
struct Attribute {
    inner: bool,
    /// Trees after the `#`.
    length: usize,
    words: Vec<String>,
}

impl Attribute {
    fn read(first: &TokenTree, after: &[TokenTree]) -> Option<Self> {
        let sign =
            |tree: &TokenTree, expected| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == expected);
        if !sign(first, '#') {
            return None;
        }
        let (inner, group) = match after {
            [TokenTree::Group(group), ..] => (false, group),
            [bang, TokenTree::Group(group), ..] if sign(bang, '!') => (true, group),
            _ => return None,
        };
        let length = if inner { 2 } else { 1 };
        let is_attribute = group.delimiter() == Delimiter::Bracket;
        is_attribute.then(|| Self {
            inner,
            length,
            words: words_in(group),
        })
    }

    fn is_doc(&self) -> bool {
        self.words.first().is_some_and(|word| word == "doc")
    }

    /// `#[test]`, `#[tokio::test(…)]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
    fn marks_test(&self) -> bool {
        let has = |expected: &str| self.words.iter().any(|word| word == expected);
        match self.words.first().map(String::as_str) {
            Some("cfg") => has("test") && !has("not") && !has("any"),
            Some("cfg_attr") => false,
            Some("test") => true,
            _ => self.words.get(1).is_some_and(|word| word == "test"),
        }
    }
}

/// The words of a group, at any depth.
fn words_in(group: &Group) -> Vec<String> {
    let mut words = Vec::new();
    for tree in group.stream() {
        match tree {
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Group(inner) => words.extend(words_in(&inner)),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    words
}

/// Collects imports, with groups resolved.
struct Imports {
    prefix: Vec<String>,
    found: Vec<Import>,
}

impl Imports {
    fn found(&mut self, name: &syn::Ident) {
        let mut path = self.prefix.join("::");
        path.push_str("::");
        path.push_str(&name.to_string());
        self.found.push(Import {
            path,
            line: name.span().start().line,
        });
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        self.prefix.push(path.ident.to_string());
        visit::visit_use_path(self, path);
        self.prefix.pop();
    }

    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        self.found(&name.ident);
    }

    fn visit_use_rename(&mut self, rename: &'ast syn::UseRename) {
        self.found(&rename.ident);
    }
}

#[cfg(test)]
#[path = "rust_file_tests.rs"]
mod tests;
