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
