//! Bytes that a terminal sends for a key.

/// Returns the bytes of a key: `enter`, `shift-tab`, `ctrl-r`, `alt-enter`, `pageup`, `f5`, `x`. A terminal
/// with the keyboard protocol on sends escape as a sequence, so that it cannot be mistaken for the start of
/// another key.
pub(super) fn bytes(key: &str, tells_apart: bool) -> Vec<u8> {
    let mut name = key;
    let (mut shift, mut alt, mut ctrl) = (false, false, false);
    loop {
        if let Some(rest) = name.strip_prefix("shift-") {
            (name, shift) = (rest, true);
        } else if let Some(rest) = name.strip_prefix("alt-") {
            (name, alt) = (rest, true);
        } else if let Some(rest) = name.strip_prefix("ctrl-") {
            (name, ctrl) = (rest, true);
        } else {
            break;
        }
    }
    let modifiers = 1 + u8::from(shift) + 2 * u8::from(alt) + 4 * u8::from(ctrl);
    if let Some(sequence) = sequence(name, modifiers) {
        return sequence.into_bytes();
    }
    let text = match (name, shift, ctrl) {
        ("enter", false, false) => "\r".to_owned(),
        ("enter", ..) => return format!("\u{1b}[13;{modifiers}u").into_bytes(),
        ("tab", true, _) => "\u{1b}[Z".to_owned(),
        ("tab", ..) => "\t".to_owned(),
        ("esc", ..) if tells_apart => "\u{1b}[27u".to_owned(),
        ("esc", ..) => "\u{1b}".to_owned(),
        ("backspace", _, false) => "\u{7f}".to_owned(),
        ("backspace", _, true) => "\u{8}".to_owned(),
        ("space", _, false) => " ".to_owned(),
        ("space", _, true) => "\0".to_owned(),
        (letter, _, ctrl) => one_letter(letter, ctrl, key),
    };
    let mut bytes = text.into_bytes();
    if alt {
        bytes.insert(0, 0x1b);
    }
    bytes
}

/// Returns the sequence of a key that always has one.
fn sequence(name: &str, modifiers: u8) -> Option<String> {
    let (number, last) = match name {
        "up" => (1, 'A'),
        "down" => (1, 'B'),
        "right" => (1, 'C'),
        "left" => (1, 'D'),
        "home" => (1, 'H'),
        "end" => (1, 'F'),
        "insert" => (2, '~'),
        "delete" => (3, '~'),
        "pageup" => (5, '~'),
        "pagedown" => (6, '~'),
        "f1" => (11, '~'),
        "f2" => (12, '~'),
        "f3" => (13, '~'),
        "f4" => (14, '~'),
        "f5" => (15, '~'),
        _ => return None,
    };
    Some(match (number, modifiers) {
        (1, 1) => format!("\u{1b}[{last}"),
        (number, 1) => format!("\u{1b}[{number}{last}"),
        (number, modifiers) => format!("\u{1b}[{number};{modifiers}{last}"),
    })
}

fn one_letter(letter: &str, ctrl: bool, key: &str) -> String {
    let mut letters = letter.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if !ctrl => letter.to_string(),
        // The control character of a letter is its low five bits; `/` and `_` share one.
        (Some('/'), None) => "\u{1f}".to_owned(),
        (Some(letter), None) if letter.is_ascii() => {
            char::from(letter.to_ascii_uppercase() as u8 & 0x1f).to_string()
        }
        _ => panic!("there is no key `{key}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: keys have the bytes that a terminal sends.
    #[test]
    fn keys_have_their_bytes() {
        let cases = [
            ("enter", "\r"),
            ("alt-enter", "\u{1b}\r"),
            ("shift-enter", "\u{1b}[13;2u"),
            ("esc", "\u{1b}"),
            ("tab", "\t"),
            ("shift-tab", "\u{1b}[Z"),
            ("up", "\u{1b}[A"),
            ("ctrl-left", "\u{1b}[1;5D"),
            ("pageup", "\u{1b}[5~"),
            ("shift-pagedown", "\u{1b}[6;2~"),
            ("ctrl-r", "\u{12}"),
            ("ctrl-/", "\u{1f}"),
            ("alt-b", "\u{1b}b"),
            ("-", "-"),
            ("ä", "ä"),
        ];
        for (key, expected) in cases {
            assert_eq!(bytes(key, false), expected.as_bytes(), "{key}");
        }
        assert_eq!(bytes("esc", true), b"\x1b[27u");
    }
}
