//! Similar characters: quotes, dashes and blanks in other forms than the plain ones.

use std::borrow::Cow;

/// Returns the plain form of a character, or the character itself if it has none.
pub(crate) const fn plain(letter: char) -> char {
    match letter {
        '“' | '”' | '„' | '‟' | '«' | '»' | '″' => '"',
        '‘' | '’' | '‚' | '‛' | '‹' | '›' | '′' => '\'',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        '\u{A0}' | '\u{2007}' | '\u{2009}' | '\u{202F}' => ' ',
        other => other,
    }
}

/// Returns the text in plain characters. The number of characters does not change.
pub(crate) fn plain_text(text: &str) -> Cow<'_, str> {
    // Most texts contain none of them, and all of them are longer than a byte.
    if text.is_ascii() || text.chars().all(|letter| plain(letter) == letter) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain).collect())
}
