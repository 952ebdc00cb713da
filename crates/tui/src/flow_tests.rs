use ratatui::style::Stylize;

use super::*;

fn texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

/// UI-2: text is broken between words and never inside one that fits, whatever its styles.
#[test]
fn text_is_broken_between_words() {
    let cases: [(&[Span<'_>], usize, &[&str]); 10] = [
        (&["one two three".into()], 8, &["one two", "three"]),
        (
            &["hello, ".into(), "wor".bold(), "ld!".into()],
            8,
            &["hello,", "world!"],
        ),
        (&["a   b".into()], 2, &["a", "b"]),
        (&["one\ntwo".into()], 9, &["one", "two"]),
        (&["abcdefgh".into()], 3, &["abc", "def", "gh"]),
        (&["日本語です。".into()], 10, &["日本語で", "す。"]),
        (&["see日本".into()], 5, &["see日", "本"]),
        (&["日本".into()], 1, &["?", "?"]),
        (&["☁".into(), "\u{fe0f}x".bold()], 2, &["☁\u{fe0f}", "x"]),
        (&[], 5, &[""]),
    ];
    for (spans, columns, expected) in cases {
        assert_eq!(texts(&fill(spans, columns)), expected, "{spans:?}");
    }
}

/// UI-2: code keeps all its white space and is broken at the width.
#[test]
fn code_is_broken_at_the_width() {
    let spans = ["  if x ".into(), "{ y }".bold()];
    let lines = chop(&spans, 5);
    assert_eq!(texts(&lines), ["  if ", "x { y", " }"]);
    assert_eq!(lines[2].spans, [" }".bold()]);
}

/// UI-2: a tab reaches to the next stop.
#[test]
fn tabs_become_spaces() {
    let cases = [
        ("\tx", "    x"),
        ("ab\tx", "ab  x"),
        ("日本\tx", "日本    x"),
        ("a\t\tb", "a       b"),
    ];
    for (text, expected) in cases {
        assert_eq!(without_tabs(text), expected);
    }
}
