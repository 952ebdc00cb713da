//! Finds the text at the cursor that can be completed.

use std::ops::Range;

use super::chips::is_mark;
use super::cluster;

/// Subject of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionQuery {
    /// A command: the line from its slash to the cursor.
    Command(String),
    /// A file: the text between the `@` and the cursor, without a quote.
    File(String),
}

/// Returns the query at the cursor, and the range a completion replaces: the whole word, including the part
/// behind the cursor.
pub(super) fn query(text: &str, cursor: usize) -> Option<(CompletionQuery, Range<usize>)> {
    file(text, cursor).or_else(|| command(text, cursor))
}

/// Formats the mention of a file. A path that ends with a slash is left open for further completion.
pub(super) fn mention(path: &str) -> String {
    let is_open = path.ends_with('/');
    match (path.contains(char::is_whitespace), is_open) {
        (false, false) => format!("@{path} "),
        (false, true) => format!("@{path}"),
        (true, false) => format!("@\"{path}\" "),
        (true, true) => format!("@\"{path}"),
    }
}

fn command(text: &str, cursor: usize) -> Option<(CompletionQuery, Range<usize>)> {
    let line = cluster::slice(text, 0..cursor);
    if !line.starts_with('/') || line.contains(|letter| letter == '\n' || is_mark(letter)) {
        return None;
    }
    Some((
        CompletionQuery::Command(line.to_owned()),
        0..word_end(text, cursor),
    ))
}

fn file(text: &str, cursor: usize) -> Option<(CompletionQuery, Range<usize>)> {
    let start = cluster::line_start(text, cursor);
    let line = cluster::slice(text, start..cursor);
    let (at, _) = line.rmatch_indices('@').find(|(at, _)| is_mention(line, *at))?;
    let word = cluster::slice(line, at + 1..line.len());
    let end = match word.strip_prefix('"') {
        None => word_end(text, cursor),
        Some(_) => quote_end(text, cursor),
    };
    let word = word.strip_prefix('"').unwrap_or(word);
    Some((CompletionQuery::File(word.to_owned()), start + at..end))
}

/// True if the `@` here starts a word that reaches to the end of the line.
fn is_mention(line: &str, at: usize) -> bool {
    let before = cluster::slice(line, 0..at).chars().next_back();
    let begins = before.is_none_or(|letter| {
        letter.is_whitespace() || is_mark(letter) || matches!(letter, '(' | '[' | '{' | '"' | '\'' | '`')
    });
    let word = cluster::slice(line, at + 1..line.len());
    begins
        && match word.strip_prefix('"') {
            Some(word) => !word.contains(|letter| letter == '"' || is_mark(letter)),
            None => !word.contains(ends_word),
        }
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || is_mark(letter)
}

fn word_end(text: &str, cursor: usize) -> usize {
    let rest = cluster::slice(text, cursor..text.len());
    rest.find(ends_word).map_or(text.len(), |at| cursor + at)
}

fn quote_end(text: &str, cursor: usize) -> usize {
    let rest = cluster::slice(text, cursor..cluster::line_end(text, cursor));
    rest.find('"').map_or(cursor, |at| cursor + at + 1)
}
