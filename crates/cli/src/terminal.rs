//! Foreign text on a terminal: nothing in it may move the cursor, change the title or hide anything.

/// Prints a line to standard output. Unlike `println!` it does not mind a reader that has gone, as in `… | head -1`.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line to standard error. Unlike `eprintln!` it does not mind a reader that has gone.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub(crate) use {say, tell};

/// Prints warnings, a line each.
pub(crate) fn tell_warnings(warnings: &[String]) {
    for warning in warnings {
        tell!("warning: {}", plain(warning));
    }
}

/// The text without control characters and escape sequences; line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> String {
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
}
