//! Letters that look alike: quotes, dashes and blanks of other forms than the plain ones.

use std::borrow::Cow;

/// The plain form of a letter, itself when it has none.
pub(crate) const fn plain(letter: char) -> char {
    match letter {
        '“' | '”' | '„' | '‟' | '«' | '»' | '″' => '"',
        '‘' | '’' | '‚' | '‛' | '‹' | '›' | '′' => '\'',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        '\u{A0}' | '\u{2007}' | '\u{2009}' | '\u{202F}' => ' ',
        other => other,
    }
}

/// The text in plain letters. It has as many as before.
pub(crate) fn plain_text(text: &str) -> Cow<'_, str> {
    // Most texts have none, and all of these are longer than a byte.
    if text.is_ascii() || text.chars().all(|letter| plain(letter) == letter) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain).collect())
}
