//! A parsed Rust file: its syntax tree, its tokens in a flat list, and its doc comments.
//!
//! The flat list includes code inside macros, which the syntax tree hides. Doc comments are stored
//! separately. Each token records whether it belongs to a test, so that one walk serves rules for both kinds
//! of code.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// One token: a word, a literal, a bracket or a punctuation character. `::` is one token.
#[derive(Debug)]
pub(crate) struct Token {
    text: String,
    first_line: usize,
    last_line: usize,
    in_test: bool,
}

/// Position of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

impl Token {
    fn place(&self) -> Place {
        Place {
            line: self.first_line,
            in_test: self.in_test,
        }
    }

    fn is_identifier(&self) -> bool {
        self.text
            .starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

pub(crate) struct RustFile {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    is_test: bool,
    tokens: Vec<Token>,
    docs: Vec<DocBlock>,
    imports: Vec<Import>,
}

/// A doc comment: consecutive `///` or `//!` lines, or a `/** */`.
pub(crate) struct DocBlock {
    /// Line of the first line that has text.
    pub(crate) line: usize,
    /// The first line that has text.
    pub(crate) first_line: String,
}

/// A path imported by `use`, with groups expanded: `use a::{b, c}` is two imports.
struct Import {
    path: String,
    line: usize,
}

impl RustFile {
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, syn::Error> {
        let stream: TokenStream = text.parse()?;
        let syntax: syn::File = syn::parse2(stream.clone())?;
        let mut flat = Flat::default();
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
            docs: flat.docs,
            imports: imports.found,
        })
    }

    /// Returns true if the whole file is test code, by its name or by `#![cfg(test)]`.
    pub(crate) fn is_test(&self) -> bool {
        self.is_test
    }

    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.tokens
            .iter()
            .any(|token| token.in_test && token.first_line == line)
    }

    /// Number of lines with production code.
    pub(crate) fn production_lines(&self) -> usize {
        count_lines(self.tokens.iter().filter(|token| !token.in_test))
    }

    /// Number of lines with any code, strictly between two lines.
    pub(crate) fn code_lines_between(&self, open: usize, close: usize) -> usize {
        count_lines(
            self.tokens
                .iter()
                .filter(|token| token.first_line > open && token.last_line < close),
        )
    }

    /// The doc comments of the file, those of tests, fields and macros included.
    pub(crate) fn docs(&self) -> &[DocBlock] {
        &self.docs
    }

    /// Finds every sequence of these tokens. The pattern separates tokens by spaces: `Instant :: now`.
    ///
    /// An import that ends with the pattern counts, because the call it enables is only a bare name.
    pub(crate) fn places(&self, pattern: &str) -> BTreeSet<Place> {
        let called = self.matches(pattern).map(|(place, _)| place);
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

    /// Finds every literal whose source text meets a condition.
    pub(crate) fn texts(&self, condition: fn(&str) -> bool) -> impl Iterator<Item = Place> {
        let texts = self.tokens.iter().filter(|token| token.text.contains('"'));
        texts
            .filter(move |token| condition(&token.text))
            .map(Token::place)
    }

    /// Finds every identifier that directly follows these tokens: the `A` of `pub struct A`.
    pub(crate) fn names_after(&self, pattern: &str) -> Vec<(&str, Place)> {
        let next = self.matches(pattern).filter_map(|(_, rest)| rest.first());
        next.filter(|token| token.is_identifier())
            .map(|token| (token.text.as_str(), token.place()))
            .collect()
    }

    /// The position of each sequence of these tokens, with the tokens after it.
    fn matches(&self, pattern: &str) -> impl Iterator<Item = (Place, &[Token])> {
        let words: Vec<&str> = pattern.split(' ').collect();
        (0..self.tokens.len()).filter_map(move |index| {
            let (found, rest) = self.tokens.get(index..)?.split_at_checked(words.len())?;
            let same = found.iter().zip(&words).all(|(token, word)| token.text == *word);
            found.first().filter(|_| same).map(|token| (token.place(), rest))
        })
    }
}

/// Returns true for files that contain only tests, examples or benchmarks. Other rules apply to them.
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
#[derive(Default)]
struct Flat {
    tokens: Vec<Token>,
    docs: Vec<DocBlock>,
}

impl Flat {
    /// Adds the tokens of a stream. Returns true if all of it is test code.
    fn stream(&mut self, stream: TokenStream, in_test: bool) -> bool {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut whole_is_test = in_test;
        let mut item_is_test = false;
        let mut open_doc = None;
        let mut rest = trees.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if let Some(attribute) = Attribute::read(first, after) {
                whole_is_test |= attribute.inner && attribute.marks_test();
                item_is_test |= attribute.marks_test();
                if attribute.is_doc() {
                    self.doc(&attribute, &mut open_doc);
                    rest = after.get(attribute.length..).unwrap_or_default();
                    continue;
                }
            }
            open_doc = None;
            if let (true, Some((_, after))) = (is_path_sign(first, after), after.split_first()) {
                self.push("::".to_owned(), first.span(), whole_is_test || item_is_test);
                rest = after;
                continue;
            }
            self.tree(first, whole_is_test || item_is_test);
            // An item ends at its semicolon or its braces, and so does the effect of a test attribute.
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

    /// Adds a doc comment unless it continues the block before it. `open_doc` is the kind of that block:
    /// inner or not.
    fn doc(&mut self, attribute: &Attribute<'_>, open_doc: &mut Option<bool>) {
        let Some(block) = attribute.doc_block() else {
            return;
        };
        if *open_doc != Some(attribute.inner) {
            self.docs.push(block);
        }
        *open_doc = Some(attribute.inner);
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

/// `#[…]` or `#![…]`, read from its `#` on.
struct Attribute<'a> {
    inner: bool,
    /// Number of trees after the `#`.
    length: usize,
    group: &'a Group,
    words: Vec<String>,
}

impl<'a> Attribute<'a> {
    fn read(first: &TokenTree, after: &'a [TokenTree]) -> Option<Self> {
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
            group,
            words: words_in(group),
        })
    }

    fn is_doc(&self) -> bool {
        self.words.first().is_some_and(|word| word == "doc")
    }

    /// The text of a doc comment. `None` for one without text, and for `#[doc(…)]`.
    fn doc_block(&self) -> Option<DocBlock> {
        let literal = self.group.stream().into_iter().find_map(|tree| match tree {
            TokenTree::Literal(literal) => Some(literal),
            _ => None,
        })?;
        let start = literal.span().start().line;
        let syn::Lit::Str(text) = syn::Lit::new(literal) else {
            return None;
        };
        let text = text.value();
        let is_text = |line: &str| line.contains(char::is_alphanumeric);
        let (index, first_line) = text.lines().enumerate().find(|(_, line)| is_text(line))?;
        Some(DocBlock {
            line: start + index,
            first_line: first_line.to_owned(),
        })
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

/// The identifiers of a group, at any depth.
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

/// Collects imports, with groups expanded.
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
