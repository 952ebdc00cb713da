//! Tells the parts of code apart, line by line.
//!
//! It has no real grammar. Compiled grammars take tens of megabytes for a single language and the time of
//! many frames; telling comments, strings, keywords and names apart is enough for a reader and takes neither.

use super::grammar::{Grammar, Quote, QuoteKind, Shape};

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Plain,
    Comment,
    Text,
    /// A number, or a name for a constant value.
    Value,
    Keyword,
    Type,
    /// A called function, or the key of a value.
    Name,
    Added,
    Removed,
}

/// Scans consecutive lines of one text.
pub(super) struct Scanner {
    grammar: &'static Grammar,
    keywords: Vec<&'static str>,
    /// Construct left open by the last line.
    open: Option<Open>,
    is_in_tag: bool,
}

/// A construct with an end delimiter.
#[derive(Clone, Copy)]
struct Open {
    token: Token,
    close: &'static str,
    has_escapes: bool,
}

/// Names of constant values, in any language.
const VALUES: [&str; 14] = [
    "true",
    "false",
    "null",
    "nil",
    "None",
    "True",
    "False",
    "undefined",
    "NaN",
    "nullptr",
    "NULL",
    "iota",
    "yes",
    "no",
];

impl Scanner {
    pub(super) fn new(grammar: &'static Grammar) -> Self {
        Self {
            grammar,
            keywords: grammar.keywords.split_ascii_whitespace().collect(),
            open: None,
            is_in_tag: false,
        }
    }

    /// Returns the tokens of the next line. Together they are the line.
    pub(super) fn line<'a>(&mut self, line: &'a str) -> Vec<(Token, &'a str)> {
        if self.grammar.shape == Shape::Diff {
            return vec![(changed(line), line)];
        }
        let mut parts: Vec<(Token, &'a str)> = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let is_apart = parts
                .last()
                .is_none_or(|(_, part)| part.ends_with(char::is_whitespace));
            let (token, length) = self.next(rest, is_apart);
            // Every token has at least one character, so the loop ends.
            let Some((part, after)) = rest.split_at_checked(length.max(1)) else {
                parts.push((Token::Plain, rest));
                break;
            };
            parts.push((token, part));
            rest = after;
        }
        parts
    }

    /// Returns the first token of the text and its length in bytes.
    fn next(&mut self, rest: &str, is_apart: bool) -> (Token, usize) {
        if let Some(open) = self.open {
            let end = end_of(rest, open);
            if end.is_some() {
                self.open = None;
            }
            return (open.token, end.unwrap_or(rest.len()));
        }
        if let Some(found) = self.comment(rest, is_apart) {
            return found;
        }
        if self.grammar.shape == Shape::Markup {
            return self.markup(rest);
        }
        if let Some(found) = self.string(rest) {
            return found;
        }
        let Some(first) = rest.chars().next() else {
            return (Token::Plain, 0);
        };
        if first.is_ascii_digit() {
            return (Token::Value, number(rest));
        }
        if first == '$' && self.grammar.shape == Shape::Script {
            let name = rest.trim_start_matches(['$', '{']);
            return (Token::Value, rest.len() - name.len() + self.word(name));
        }
        if is_letter(first) {
            let length = self.word(rest);
            return (self.named(rest, length), length);
        }
        (Token::Plain, first.len_utf8())
    }

    fn comment(&mut self, rest: &str, is_apart: bool) -> Option<(Token, usize)> {
        if let Some((open, close)) = self.grammar.block_comment
            && rest.starts_with(open)
        {
            self.open = Some(Open {
                token: Token::Comment,
                close,
                has_escapes: false,
            });
            return Some((Token::Comment, open.len()));
        }
        // A delimiter within a word is part of a URL or a variable.
        let begins = |sign: &&str| rest.starts_with(*sign) && (is_apart || *sign == "//");
        let is_comment = self.grammar.comments.iter().any(begins);
        is_comment.then_some((Token::Comment, rest.len()))
    }

    fn string(&mut self, rest: &str) -> Option<(Token, usize)> {
        let quote = self
            .grammar
            .quotes
            .iter()
            .find(|quote| rest.starts_with(quote.open))?;
        let inner = rest.strip_prefix(quote.open)?;
        let open = Open {
            token: Token::Text,
            close: quote.close,
            has_escapes: quote.kind != QuoteKind::Raw,
        };
        let length = end_of(inner, open).map(|end| quote.open.len() + end);
        match (quote.kind, length) {
            (QuoteKind::Letter, length) => {
                let is_letter = inner.starts_with('\\') || inner.chars().nth(1) == Some('\'');
                Some((Token::Text, length.filter(|_| is_letter)?))
            }
            (_, Some(length)) => Some((self.key_or_text(rest, length, quote), length)),
            (QuoteKind::Line, None) => Some((Token::Text, rest.len())),
            (QuoteKind::Long | QuoteKind::Raw, None) => {
                self.open = Some(open);
                Some((Token::Text, rest.len()))
            }
        }
    }

    fn key_or_text(&self, rest: &str, length: usize, quote: &Quote) -> Token {
        let is_key = self.grammar.shape == Shape::Data && quote.close.len() == 1 && is_key(rest, length);
        if is_key { Token::Name } else { Token::Text }
    }

    fn markup(&mut self, rest: &str) -> (Token, usize) {
        if let Some(tag) = rest.strip_prefix('<') {
            let name = tag.trim_start_matches(['/', '!', '?']);
            self.is_in_tag = true;
            return (Token::Keyword, rest.len() - name.len() + self.word(name));
        }
        if !self.is_in_tag {
            return (Token::Plain, rest.find('<').unwrap_or(rest.len()));
        }
        if let Some(found) = self.string(rest) {
            return found;
        }
        let first = rest.chars().next().unwrap_or(' ');
        self.is_in_tag = first != '>';
        match first {
            '>' | '/' | '?' => (Token::Keyword, 1),
            first if is_letter(first) => (Token::Type, self.word(rest)),
            first => (Token::Plain, first.len_utf8()),
        }
    }

    /// Returns the length of the name at the start of the text.
    fn word(&self, rest: &str) -> usize {
        let has_dashes = matches!(self.grammar.shape, Shape::Data | Shape::Markup);
        let is_part = |letter: char| {
            is_letter(letter) || letter.is_numeric() || (has_dashes && matches!(letter, '-' | '.' | ':'))
        };
        let word = rest
            .find(|letter| !is_part(letter))
            .and_then(|end| rest.get(..end))
            .unwrap_or(rest);
        // The colon after a key is not part of it.
        word.trim_end_matches(':').len()
    }

    fn named(&self, rest: &str, length: usize) -> Token {
        let Some((word, after)) = rest.split_at_checked(length) else {
            return Token::Plain;
        };
        if self.grammar.shape == Shape::Data && is_key(rest, length) {
            return Token::Name;
        }
        let is_word = |keyword: &&str| match self.grammar.ignores_case {
            true => keyword.eq_ignore_ascii_case(word),
            false => *keyword == word,
        };
        let is_macro = after.starts_with("!(") || after.starts_with("![") || after.starts_with("! {");
        if self.keywords.iter().any(is_word) {
            Token::Keyword
        } else if VALUES.contains(&word) {
            Token::Value
        } else if self.grammar.shape == Shape::Program && (after.starts_with('(') || is_macro) {
            Token::Name
        } else if self.grammar.shape == Shape::Program && word.starts_with(char::is_uppercase) {
            Token::Type
        } else {
            Token::Plain
        }
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

/// True if the text before this position is the key of the value behind it.
fn is_key(rest: &str, length: usize) -> bool {
    let after = rest.get(length..).unwrap_or_default().trim_start();
    after.starts_with([':', '='])
}

fn number(rest: &str) -> usize {
    let mut letters = rest.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_point = letter == '.' && letters.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        if !(letter.is_ascii_alphanumeric() || letter == '_' || is_point) {
            return at;
        }
    }
    rest.len()
}

/// Returns the end of an open construct, behind its delimiter.
fn end_of(rest: &str, open: Open) -> Option<usize> {
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        if rest.get(at..).is_some_and(|rest| rest.starts_with(open.close)) {
            return Some(at + open.close.len());
        }
        if open.has_escapes && letter == '\\' {
            letters.next();
        }
    }
    None
}

fn changed(line: &str) -> Token {
    match line.chars().next() {
        Some('+') => Token::Added,
        Some('-') => Token::Removed,
        Some('@') => Token::Comment,
        _ => Token::Plain,
    }
}
