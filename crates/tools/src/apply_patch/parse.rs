//! Parses the text of a patch. Pure: the same text always gives the same result.

use super::envelope;
use super::patch::{FilePatch, MAX_BYTES, MAX_FILES, PatchError};
use super::source::Source;
use super::unified;

/// Larger than the line count of any file.
const MAX_NUMBER: usize = 1 << 30;

/// Format of a patch.
enum Form {
    Envelope,
    Unified,
}

/// Parses a patch in either format.
///
/// # Errors
/// Names the wrong line, and says what is expected.
pub(crate) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    if text.len() > MAX_BYTES {
        return Err(PatchError::TooLarge(text.len()));
    }
    let mut source = Source::new(text);
    let patches = match form(&mut source) {
        Some(Form::Envelope) => envelope::parse(&mut source)?,
        Some(Form::Unified) => unified::parse(&mut source)?,
        None => return Err(PatchError::None),
    };
    match patches.len() {
        0 => Err(PatchError::None),
        number if number > MAX_FILES => Err(PatchError::TooManyFiles),
        _ => Ok(patches),
    }
}

/// Returns true if a text that is not JSON is intended as a patch.
pub(super) fn looks_like_patch(text: &str) -> bool {
    form(&mut Source::new(text)).is_some()
}

/// Detects the format of a patch and advances to its start. Text before the patch is ignored.
fn form(source: &mut Source<'_>) -> Option<Form> {
    while let Some(line) = source.peek() {
        if line.trim() == envelope::BEGIN || envelope::is_header(line) {
            return Some(Form::Envelope);
        }
        if line.starts_with("diff --git ") || source.names_files() {
            return Some(Form::Unified);
        }
        source.next();
    }
    None
}

/// Content of a line that starts with `@@`: numbers, or text to search for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Lines(Span),
    Anchor(String),
    Nowhere,
}

/// Line numbers of a unified hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    pub(super) old: usize,
    pub(super) new: usize,
}

impl Span {
    /// Returns the index of the first line. A hunk without old lines comes after the line it names.
    pub(super) fn index(self) -> usize {
        if self.old == 0 {
            self.start
        } else {
            self.start.saturating_sub(1)
        }
    }
}

/// Parses a line that starts with `@@`.
pub(super) fn place(line: &str) -> Place {
    let rest = line.trim_start_matches('@').trim();
    if let Some(span) = span(rest) {
        return Place::Lines(span);
    }
    match rest.trim_end_matches('@').trim() {
        "" | "..." | "…" => Place::Nowhere,
        words => Place::Anchor(words.to_owned()),
    }
}

/// Parses `-3,4 +3,5 @@ …`.
fn span(text: &str) -> Option<Span> {
    let (numbers, _) = text.split_once("@@")?;
    let mut words = numbers.split_whitespace();
    let (start, old) = pair(words.next()?.strip_prefix('-')?)?;
    let (_, new) = pair(words.next()?.strip_prefix('+')?)?;
    Some(Span { start, old, new })
}

fn pair(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    Some((start.min(MAX_NUMBER), count))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
