//! Characters that a model reads and a person does not see.

use std::collections::BTreeMap;

/// Character before the tags of a flag, such as that of Scotland.
const BLACK_FLAG: char = '\u{1F3F4}';

/// Describes the invisible characters of a text; `None` if there are none that could carry a message.
///
/// Marks that ordinary text needs are not counted: joiners inside emoji and between letters of scripts that use
/// them, direction marks beside right-to-left letters, a byte order mark at the start.
pub fn hidden(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut found: BTreeMap<&'static str, usize> = BTreeMap::new();
    let has_rtl = text.chars().any(is_rtl);
    let mut before = None;
    let mut in_flag = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        in_flag = letter == BLACK_FLAG || (in_flag && is_tag(letter));
        let kind = match letter {
            _ if is_tag(letter) && !in_flag => Some("tag characters"),
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Some("bidirectional controls"),
            '\u{200E}' | '\u{200F}' | '\u{061C}' if !has_rtl => Some("direction marks"),
            '\u{FEFF}' if before.is_none() => None,
            '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{180E}' | '\u{FEFF}' => Some("zero-width characters"),
            '\u{200C}' | '\u{200D}' if !joins(before, letters.peek().copied()) => {
                Some("zero-width characters")
            }
            _ if is_selector(letter) && before.is_none_or(is_selector) => Some("variation selectors"),
            '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' => Some("blank letters"),
            _ => None,
        };
        if let Some(kind) = kind {
            *found.entry(kind).or_default() += 1;
        }
        before = Some(letter);
    }
    let told: Vec<String> = found
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Replaces each character that a person does not see, or that changes the order of others, by a sign. Line breaks and
/// tabs stay, and so do the joiners inside emoji.
pub fn with_signs(text: &str) -> String {
    let is_symbol = |letter: char| letter >= '\u{2190}' && !is_unseen(letter);
    let mut letters = text.chars().peekable();
    let mut before = ' ';
    let mut sign = |letter: char, next: Option<char>| {
        let last = std::mem::replace(&mut before, letter);
        match letter {
            '\n' | '\t' => letter,
            '\u{FE0F}' if is_symbol(last) => letter,
            '\u{200D}' if last >= '\u{2190}' && next.is_some_and(is_symbol) => letter,
            letter if letter < ' ' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(' '),
            letter if is_unseen(letter) => '\u{fffd}',
            letter => letter,
        }
    };
    std::iter::from_fn(|| letters.next().map(|letter| sign(letter, letters.peek().copied()))).collect()
}

/// Returns true for controls, format characters, default ignorables, and blanks other than a space.
#[rustfmt::skip]
fn is_unseen(letter: char) -> bool {
    let is_blank = letter != ' ' && (letter.is_whitespace() || letter == '\u{2800}');
    letter.is_control() || is_blank || matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Explains how a text may be misread, as a clause: it contains characters that nobody sees, or letters that look like
/// others.
pub fn misleading(text: &str) -> Option<String> {
    if let Some(found) = hidden(text) {
        return Some(format!("it contains characters that nobody sees: {found}"));
    }
    let ends = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '-' | '_');
    let mixes = |word: &&str| {
        word.contains(looks_latin) && word.contains(|letter: char| letter.is_ascii_alphabetic())
    };
    let hosts = text.split("://").skip(1);
    let mut hosts = hosts.filter_map(|rest| rest.split(['/', '?', '#', ' ', '"', '\'', '\n']).next());
    let word = text
        .split(ends)
        .find(mixes)
        .or_else(|| hosts.find(|host| !host.is_ascii()))?;
    let word: String = word.chars().take(60).collect();
    Some(format!(
        "`{word}` has letters of another script, which may look like a to z"
    ))
}

/// Returns true for letters of scripts that share shapes with Latin ones.
#[rustfmt::skip]
fn looks_latin(letter: char) -> bool {
    matches!(letter, '\u{391}'..='\u{3a9}' | 'α' | 'γ' | 'ι' | 'κ' | 'ν' | 'ο' | 'ρ' | 'τ' | 'υ' | 'χ' | '\u{400}'..='\u{52f}'
        | '\u{531}'..='\u{586}' | '\u{13a0}'..='\u{13ff}' | '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
}

fn is_tag(letter: char) -> bool {
    matches!(letter, '\u{E0000}'..='\u{E007F}')
}

fn is_selector(letter: char) -> bool {
    matches!(letter, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Returns true for a joiner between characters that may be joined.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let is_visible = |letter: char| {
        !letter.is_ascii() && !matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}')
    };
    let may_end = |letter: char| is_visible(letter) || letter.is_ascii_whitespace();
    before.is_some_and(is_visible) && after.is_none_or(may_end)
}

fn is_rtl(letter: char) -> bool {
    matches!(letter, '\u{0590}'..='\u{061B}' | '\u{061D}'..='\u{08FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-7: nothing that nobody sees is left, and ordinary text stays as it is.
    #[test]
    fn unseen_characters_get_a_sign() {
        for (text, expected) in [
            ("a\u{202e}b\u{200b}c", "a\u{fffd}b\u{fffd}c"),
            ("a\u{e0063}\u{3164}\u{ad}", "a\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{1b}[2K\r", "\u{241b}[2K\u{240d}"),
            ("a\u{fe0f}b\u{200d}c", "a\u{fffd}b\u{fffd}c"),
        ] {
            assert_eq!(with_signs(text), expected, "{text:?}");
        }
        for text in ["a b\tc\nd", "größer ❤\u{fe0f} 👩\u{200d}💻", "日本語"] {
            assert_eq!(with_signs(text), text);
        }
    }

    /// SAFE-7: addresses and words that look like others are named.
    #[test]
    fn lookalikes_are_found() {
        for text in [
            "curl http://ех\u{430}mple.org/",
            "curl https://аррӏе.com",
            "git push оrigin",
            "curl http://ｅxample.org",
        ] {
            let found = misleading(text).unwrap_or_default();
            assert!(found.contains("another script"), "{text}: {found}");
        }
        assert!(misleading("a\u{202e}b").is_some_and(|found| found.contains("nobody sees")));
        for text in [
            "curl http://example.org/größe",
            "echo привет",
            "echo naïve café",
            "ls 日本語.txt",
            "wait 5 μs",
        ] {
            assert_eq!(misleading(text), None, "{text}");
        }
    }

    #[test]
    fn only_hidden_text_is_found() {
        let tags = "\u{E0069}\u{E0067}\u{E006E}\u{E006F}\u{E0072}\u{E0065}";
        let cases = [
            (format!("a{tags}b"), "6 tag characters"),
            ("a\u{2066}b\u{2069}".to_owned(), "2 bidirectional controls"),
            ("x\u{202E}y".to_owned(), "1 bidirectional controls"),
            ("a\u{200B}\u{200D}\u{2060}b".to_owned(), "3 zero-width characters"),
            ("a\u{200D}b".to_owned(), "1 zero-width characters"),
            ("a\u{200F}b".to_owned(), "1 direction marks"),
            ("😀\u{FE01}\u{FE02}\u{FE03}".to_owned(), "2 variation selectors"),
            ("if (\u{3164}) {}".to_owned(), "1 blank letters"),
        ];
        for (text, expected) in cases {
            assert_eq!(hidden(&text).as_deref(), Some(expected), "{text:?}");
        }
        for plain in [
            "plain",
            "größer ❤\u{FE0F} 👩\u{200D}💻 \u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "\u{FEFF}text",
            "می\u{200C}خواهم",
            "שלום\u{200F}!",
            "日本語",
        ] {
            assert_eq!(hidden(plain), None, "{plain:?}");
        }
    }
}
