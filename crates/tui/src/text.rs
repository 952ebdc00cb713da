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
    // Bidirectional overrides can make a command read as another one.
    let reorders = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (letter.is_control() && letter != '\n' && letter != '\t') || reorders
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
/// would run. Every control character has a sign of its own in its place.
pub fn revealed(text: &str) -> String {
    let sign = |letter: char| match letter {
        '\n' | '\t' => letter,
        '\u{7f}' => '\u{2421}',
        letter if letter < ' ' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'),
        letter if is_unwanted(letter) => '\u{fffd}',
        letter => letter,
    };
    text.replace("\r\n", "\n").chars().map(sign).collect()
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
mod tests {
    use super::*;

    /// SAFE-7: foreign text is stripped of control sequences before it reaches a terminal.
    #[test]
    fn control_sequences_are_removed() {
        let cases = [
            ("plain text\n\twith tabs", "plain text\n\twith tabs"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}P+q544e\u{1b}\\x", "x"),
            ("a\rb\r\nc", "ab\nc"),
            (
                "bell\u{7} back\u{8} null\u{0} del\u{7f} c1\u{9b}31m",
                "bell back null del c131m",
            ),
            ("rm \u{202e}txt.exe", "rm txt.exe"),
            ("cut off \u{1b}[", "cut off "),
            ("cut off \u{1b}]0;never ends", "cut off "),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    /// UI-2: text is broken by columns: wide letters take two, joined emoji stay whole, long words are broken.
    #[test]
    fn lines_are_broken_by_columns() {
        let cases = [
            ("one two three", 8, vec!["one two", "  three"]),
            ("日本語の文", 6, vec!["日本語", "  の文"]),
            ("abcdefghij", 4, vec!["abcd", "  ef", "  gh", "  ij"]),
            ("", 4, vec![""]),
            ("👩‍👩‍👧x", 2, vec!["👩‍👩‍👧", "x"]),
            ("日本語", 3, vec!["日", "本", "語"]),
            ("hello, you", 5, vec!["hello", "  ,", "  you"]),
        ];
        for (text, columns, expected) in cases {
            let wrapped = wrap(&Line::raw(text), columns, "  ");
            assert_eq!(texts(&wrapped), expected, "{text:?}");
        }
    }

    /// SAFE-7: what somebody judges is shown whole: a sequence that never ends cannot hide what follows it.
    #[test]
    fn nothing_is_hidden_from_who_judges() {
        assert_eq!(
            revealed("echo '\u{1b}]'; rm -r x\n\tend"),
            "echo '␛]'; rm -r x\n\tend"
        );
        assert_eq!(
            revealed("a\rb\r\nc\u{7f}\u{9b}\u{202e}d"),
            "a␍b\nc␡\u{fffd}\u{fffd}d"
        );
    }

    /// UI-2: a terminal that shows nothing but ASCII gets nothing else, and every column stays where it was.
    #[test]
    fn everything_has_a_stand_in() {
        for text in ["plain", "a → b · c…", "日本語", "“quoted”", "👩‍👩‍👧", "e\u{301}"]
        {
            let shown = ascii(text);
            assert!(shown.is_ascii(), "{shown}");
            assert_eq!(width(&shown), width(text), "{shown}");
        }
        assert_eq!(ascii("a → “b”…"), "a > \"b\".");
    }

    /// UI-2: what does not fit is cut by columns, and that is seen.
    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
    }
}
