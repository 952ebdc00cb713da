use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;

use super::*;

/// SAFE-7: control sequences are removed from external text before it reaches a terminal.
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

/// UI-2: text is wrapped by columns: wide characters take two, joined emoji stay whole, long words are
/// broken.
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

/// SAFE-7: text to be judged is shown in full: an unterminated sequence cannot hide what follows it.
#[test]
fn nothing_is_hidden_from_who_judges() {
    assert_eq!(
        revealed("echo '\u{1b}]'; rm -r x\n\tend"),
        "echo '␛]'; rm -r x\n\tend"
    );
    assert_eq!(
        revealed("a\rb\r\nc\u{7f}\u{9b}\u{202e}d"),
        "a␍b␍\nc␡\u{fffd}\u{fffd}d"
    );
}

/// UI-2: an ASCII terminal gets only ASCII, and every column stays in place.
#[test]
fn everything_has_a_stand_in() {
    for text in ["plain", "a → b · c…", "日本語", "“quoted”", "👩‍👩‍👧", "e\u{301}"] {
        let shown = ascii(text);
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(width(&shown), width(text), "{shown}");
    }
    assert_eq!(ascii("a → “b”…"), "a > \"b\".");
}

/// UI-2: text that does not fit is cut by columns, visibly.
#[test]
fn texts_are_cut_by_columns() {
    assert_eq!(cut("abc", 3), "abc");
    assert_eq!(cut("abcd", 3), "ab…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("abc", 0), "");
}

/// Characters that are invisible according to Unicode, except those that are drawn in practice.
fn unseen() -> &'static Regex {
    static UNSEEN: LazyLock<Regex> = LazyLock::new(|| {
        let drawn = r"\u{600}-\u{605}\u{6dd}\u{70f}\u{890}\u{891}\u{8e2}\u{110bd}\u{110cd}";
        Regex::new(&format!(
            r"[\p{{Cc}}\p{{Cf}}\p{{DI}}\p{{Z}}\u{{2800}}--[ \n\t{drawn}]]"
        ))
        .unwrap()
    });
    &UNSEEN
}

/// SAFE-7: every invisible character in Unicode is replaced by a sign, and no other character is.
#[test]
fn every_letter_can_be_seen() {
    let unseen = unseen();
    for letter in '\0'..=char::MAX {
        let text = letter.to_string();
        let shown = revealed(&text);
        assert_eq!(shown != text, unseen.is_match(&text), "{letter:?} is {shown:?}");
        assert!(!unseen.is_match(&shown), "{letter:?}");
    }
}

/// SAFE-7: emoji stay whole: a joiner is part of them, and a sign anywhere else.
#[test]
fn pictures_are_shown_as_such() {
    for picture in [
        "👩\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}",
        "👩🏽\u{200d}🚀",
        "🏳\u{fe0f}\u{200d}🌈",
    ] {
        assert_eq!(revealed(picture), picture);
    }
    let cases = [
        ("l\u{200d}s", "l\u{fffd}s"),
        ("ls\u{fe0f}", "ls\u{fffd}"),
        ("👩\u{200d}", "👩\u{fffd}"),
        ("👩\u{200d}\u{200d}👩", "👩\u{fffd}\u{fffd}👩"),
        ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\u{fffd}"),
        ("\u{200d}👩", "\u{fffd}👩"),
    ];
    for (text, expected) in cases {
        assert_eq!(revealed(text), expected, "{text:?}");
    }
}

proptest! {
    /// SAFE-7: in any command, every invisible character is shown as a sign, and nothing else is changed.
    #[test]
    fn a_command_is_shown_as_it_is(command in r"([a-z$; \n\t]|\p{Cf}|\p{Cc}|\p{Z}|[👩❤🚀]|[\u{200d}\u{fe0f}\u{e0041}]|.){0,40}") {
        let unseen = unseen();
        let shown = revealed(&command);
        prop_assert_eq!(shown.chars().count(), command.chars().count());
        let mut before = None;
        for (letter, sign) in command.chars().zip(shown.chars()) {
            let is_unseen = unseen.is_match(letter.encode_utf8(&mut [0; 4]));
            let is_sign = sign == '\u{fffd}' || ('\u{2400}'..='\u{2421}').contains(&sign);
            let joins = matches!(letter, '\u{200d}' | '\u{fe0f}') && before.is_some_and(|before| !char::is_ascii(&before));
            let is_right = if is_unseen { is_sign || (joins && sign == letter) } else { sign == letter };
            prop_assert!(is_right, "{:?} is {:?}", letter, sign);
            before = Some(sign);
        }
    }
}
