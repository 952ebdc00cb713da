//! Text on a terminal: sanitising external text, measuring and wrapping by columns.

use std::borrow::Cow;

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::flow;

/// Removes control characters and escape sequences; line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    // Most text has none: then this is one pass and one copy.
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

/// True if a character affects a terminal or the reading order of text.
pub(crate) fn has_effect(letter: char) -> bool {
    // Bidirectional overrides can make a command read as another one.
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Skips the rest of an escape sequence: a control sequence, a string up to its end, or one character.
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

/// Makes external text safe to judge: nothing in it has an effect and nothing is left out, so that the user
/// sees exactly what would run. Invisible characters, and blanks other than a space, are replaced by a sign.
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

/// Like [`revealed`] on one line, with a sign for every line break.
pub fn revealed_line(text: &str) -> String {
    revealed(text.trim()).replace('\n', "\u{240a}")
}

/// Sign for an invisible character.
const UNSEEN: char = '\u{fffd}';
/// Variation selector that requests the emoji form of the preceding character.
const EMOJI_STYLE: char = '\u{fe0f}';
/// Zero-width joiner, which merges the two emoji around it.
const JOINER: char = '\u{200d}';

/// True for emoji, the only characters the two signs above may join.
fn is_pictograph(letter: char) -> bool {
    format!("{letter}{JOINER}\u{1f680}").graphemes(true).count() == 1
}

/// True for skin tone modifiers.
fn is_skin(letter: char) -> bool {
    matches!(letter, '\u{1f3fb}'..='\u{1f3ff}')
}

/// True if a character is invisible, or a blank other than a space: what Unicode calls format characters,
/// default ignorables, and separators.
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

/// Sanitises external text for one line of a screen, without line breaks and tabs.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Width of a text in columns. It must be [`plain`] and have no line break.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to a width, with a sign where something is missing.
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

/// Cuts a text to a width in its middle: of a path, both the start and the file name stay.
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns < 8 {
        return cut(text, columns);
    }
    let keep = columns - 1;
    let take = |graphemes: &mut dyn Iterator<Item = &str>, room: usize| {
        let mut used = 0;
        let fits = |grapheme: &&str| {
            used += width(grapheme);
            used <= room
        };
        graphemes.take_while(fits).map(str::len).sum::<usize>()
    };
    // The end of a path says more than its start.
    let end = take(&mut text.graphemes(true).rev(), keep - keep / 3);
    let start = take(&mut text.graphemes(true), keep / 3);
    let (start, end) = (text.get(..start), text.get(text.len() - end..));
    format!("{}…{}", start.unwrap_or_default(), end.unwrap_or_default())
}

/// Replaces everything outside ASCII, keeping the width: characters without a replacement become question
/// marks.
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

/// Wraps a styled line, between words where possible. `indent` precedes every line but the first.
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
