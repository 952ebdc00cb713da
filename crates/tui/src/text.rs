//! Text on a terminal: foreign text made harmless, and text measured and broken by the columns it takes.

use std::borrow::Cow;

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::flow;

/// The text without control characters and escape sequences; line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    // Most text has none, and then this is one pass and one copy.
    if !text.chars().any(is_unwanted) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_escape(&mut letters),
            '\r' if letters.peek() == Some(&'\n') => {}
            letter if is_unwanted(letter) => {}
            letter => out.push(letter),
        }
    }
    out
}

fn is_unwanted(letter: char) -> bool {
    has_effect(letter) && !matches!(letter, '\n' | '\t')
}

/// Whether a character does something, to a terminal or to the order in which text is read.
pub(crate) fn has_effect(letter: char) -> bool {
    // Bidirectional overrides can make a command read as another one.
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Skips what follows an escape character: a control sequence, a string up to its end, or one letter.
fn skip_escape(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        Some('[') => {
            let _ = letters
                .by_ref()
                .find(|letter| ('\u{40}'..='\u{7e}').contains(letter));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(letter) = letters.next() {
                let ends = letter == '\u{7}'
                    || letter == '\u{9c}'
                    || (letter == '\u{1b}' && letters.next_if_eq(&'\\').is_some());
                if ends {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Foreign text that somebody judges: nothing in it has an effect and nothing is left out, so that what is seen is what
/// would run. Whatever could not be seen, or is a blank other than a space, has a sign in its place.
pub fn revealed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let is_drawn = match letter {
            EMOJI_STYLE => before.is_some_and(is_pictograph),
            JOINER => {
                let joins = |letter| letter == EMOJI_STYLE || is_skin(letter) || is_pictograph(letter);
                before.is_some_and(joins) && letters.peek().copied().is_some_and(is_pictograph)
            }
            letter => !has_effect(letter) && !is_invisible(letter),
        };
        before = is_drawn.then_some(letter);
        out.push(match letter {
            '\n' | '\t' => letter,
            '\u{7f}' => '\u{2421}',
            letter if letter < ' ' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(UNSEEN),
            letter if is_drawn => letter,
            _ => UNSEEN,
        });
    }
    out
}

/// The same on one line, with a sign for every line break within.
pub fn revealed_line(text: &str) -> String {
    revealed(text.trim()).replace('\n', "\u{240a}")
}

/// Stands for what cannot be seen.
const UNSEEN: char = '\u{fffd}';
/// Asks for the coloured form of the letter before it.
const EMOJI_STYLE: char = '\u{fe0f}';
/// Makes one picture of the two beside it.
const JOINER: char = '\u{200d}';

/// Whether a letter is a picture, to which the two signs above belong: nothing else is ever joined to one.
fn is_pictograph(letter: char) -> bool {
    format!("{letter}{JOINER}\u{1f680}").graphemes(true).count() == 1
}

/// Whether a character gives the picture before it a colour of skin.
fn is_skin(letter: char) -> bool {
    matches!(letter, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether nothing is drawn for a character, or a blank that is no space: what Unicode calls format characters, ignorable
/// by default, and separators.
#[rustfmt::skip]
fn is_invisible(letter: char) -> bool {
    let is_blank = letter != ' ' && (letter.is_whitespace() || letter == '\u{2800}');
    is_blank || matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Foreign text for one line of a screen: made harmless, without line breaks and tabs.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How many columns a text takes. It must be [`plain`] and have no line break.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text cut to so many columns, with a sign where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for grapheme in text.graphemes(true) {
        used += width(grapheme);
        if used > columns {
            break;
        }
        out.push_str(grapheme);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// A text for a terminal that shows nothing but ASCII, as wide as before: what has no stand-in is a question mark.
pub(crate) fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        let stand_in = match grapheme {
            grapheme if grapheme.is_ascii() => grapheme,
            "…" => ".",
            "·" | "•" | "─" | "–" | "—" => "-",
            "→" | "›" | "▶" => ">",
            "‘" | "’" => "'",
            "“" | "”" => "\"",
            "│" | "▌" => "|",
            _ => "?",
        };
        out.push_str(stand_in);
        let missing = width(grapheme).saturating_sub(width(stand_in));
        out.extend(std::iter::repeat_n('?', missing));
    }
    Cow::Owned(out)
}

/// Breaks a styled line into lines of at most so many columns, between words where it can. `indent` begins every line but
/// the first.
pub(crate) fn wrap(line: &Line<'_>, columns: usize, indent: &str) -> Vec<Line<'static>> {
    let style = line.style;
    let with_tabs = line.spans.iter().any(|span| span.content.contains('\t'));
    let lines = if with_tabs {
        let spans = line
            .spans
            .iter()
            .map(|span| Span::styled(flow::without_tabs(&span.content), span.style));
        flow::hang(&spans.collect::<Vec<_>>(), columns, indent)
    } else {
        flow::hang(&line.spans, columns, indent)
    };
    lines.into_iter().map(|line| line.style(style)).collect()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
