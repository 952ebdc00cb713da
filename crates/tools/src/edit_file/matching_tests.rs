//! Finding and replacing, by table and by property.

use proptest::prelude::*;

use super::*;

fn edited(text: &str, old: &str, new: &str, replace_all: bool) -> Result<(String, How), NoMatch> {
    find(text, old, new, replace_all).map(|found| (found.apply(text), found.how))
}

/// TOOL-2: exact and forgiving matches keep line ends, byte order mark and indentation.
#[test]
fn edits_land_where_they_should() {
    let cases: &[(&str, &str, &str, &str, &str, How)] = &[
        ("exact", "a b c", "b", "x", "a x c", How::Exact),
        (
            "several lines",
            "a\nb\nc\n",
            "a\nb\n",
            "x\n",
            "x\nc\n",
            How::Exact,
        ),
        ("delete", "a\nb\nc\n", "b\n", "", "a\nc\n", How::Exact),
        (
            "crlf file, lf edit",
            "a\r\nb\r\nc\r\n",
            "a\nb",
            "x\ny\nz",
            "x\r\ny\r\nz\r\nc\r\n",
            How::Exact,
        ),
        (
            "crlf file, one line",
            "a\r\nb\r\n",
            "b",
            "x\ny",
            "a\r\nx\r\ny\r\n",
            How::Exact,
        ),
        (
            "lf file, crlf edit",
            "a\nb\nc\n",
            "a\r\nb",
            "x\r\ny",
            "x\ny\nc\n",
            How::Exact,
        ),
        (
            "mixed file",
            "a\r\nb\nc\n",
            "b\nc",
            "x\ny",
            "a\r\nx\ny\n",
            How::Exact,
        ),
        (
            "mark kept",
            "\u{FEFF}a\nb\n",
            "a\nb",
            "x",
            "\u{FEFF}x\n",
            How::Exact,
        ),
        (
            "mark kept, forgiving",
            "\u{FEFF}a \nb\n",
            "a\nb",
            "x",
            "\u{FEFF}x\n",
            How::TrailingSpace,
        ),
        (
            "blanks at line ends",
            "a  \nb\t\nc\n",
            "a\nb",
            "x",
            "x\nc\n",
            How::TrailingSpace,
        ),
        (
            "indented more",
            "  if a {\n    b\n  }\n",
            "if a {\n  b\n}",
            "if c {\n  d\n}",
            "  if c {\n    d\n  }\n",
            How::Indentation,
        ),
        (
            "indented less",
            "if a {\n  b\n}\n",
            "  if a {\n    b\n  }",
            "  if c {\n    d\n      e\n  }",
            "if c {\n  d\n    e\n}\n",
            How::Indentation,
        ),
        (
            "tabs",
            "\tif a {\n\t\tb\n\t}\n",
            "    if a {\n        b\n    }",
            "    if a {\n        c\n    }",
            "\tif a {\n\t\tc\n\t}\n",
            How::Indentation,
        ),
        (
            "blank lines",
            "  a\n\n  b\n",
            "a\n\nb\n",
            "a\n\nc\n",
            "  a\n\n  c\n",
            How::Indentation,
        ),
        (
            "no break at the end",
            "x\n  a\n  b",
            "a\nb\n",
            "a\nc\n",
            "x\n  a\n  c",
            How::Indentation,
        ),
        (
            "crlf, forgiving",
            "  a\r\n  b\r\n",
            "a\nb\n",
            "a\nc\n",
            "  a\r\n  c\r\n",
            How::Indentation,
        ),
    ];
    for (name, text, old, new, expected, how) in cases {
        assert_eq!(
            edited(text, old, new, false),
            Ok(((*expected).to_owned(), *how)),
            "{name}"
        );
    }
}

/// TOOL-2: quotes, dashes and blanks of another form match last, and unchanged text keeps its form in the
/// file.
#[test]
fn letters_that_look_alike_match() {
    let cases = [
        (
            "quotes",
            "say(“hi”)\n",
            "say(\"hi\")",
            "say(\"hello\")",
            "say(“hello”)\n",
        ),
        (
            "apostrophe",
            "it’s a ‘test’\n",
            "it's a 'test'",
            "it's no 'test'",
            "it’s no ‘test’\n",
        ),
        ("guillemets", "« a » b", "\" a \" b", "\" a \" c", "« a » c"),
        ("dashes", "a – b — c", "a - b - c", "a - x - c", "a – x — c"),
        (
            "no-break blank",
            "10\u{A0}km\u{202F}h",
            "10 km h",
            "12 km h",
            "12\u{A0}km\u{202F}h",
        ),
        (
            "the other way",
            "say(\"a\")",
            "say(“a”)",
            "say(“b”)",
            "say(\"b\")",
        ),
        (
            "new ones as given",
            "“a”",
            "\"a\"",
            "\"a\" and \"b\"",
            "“a” and \"b\"",
        ),
        ("part of a line", "x = “a”;", "\"a\"", "1", "x = 1;"),
        (
            "crlf",
            "“a”\r\n“b”\r\nc\r\n",
            "\"a\"\n\"b\"",
            "\"a\"\nx\n\"b\"",
            "“a”\r\nx\r\n“b”\r\nc\r\n",
        ),
        ("crlf at both ends", "a\r\n“b”\r\nc", "\n\"b\"\n", "\n", "a\r\nc"),
        ("mark kept", "\u{FEFF}“a”\n", "\"a\"", "\"b\"", "\u{FEFF}“b”\n"),
        ("after others", "ä🦀 – “a”", "\"a\"", "b", "ä🦀 – b"),
    ];
    for (name, text, old, new, expected) in cases {
        assert_eq!(
            edited(text, old, new, false),
            Ok((expected.to_owned(), How::Typography)),
            "{name}"
        );
    }
    // An exact match takes precedence, and two matches are ambiguous.
    assert_eq!(
        edited("“a” \"a\"", "\"a\"", "b", false),
        Ok(("“a” b".to_owned(), How::Exact))
    );
    assert_eq!(
        edited("“a” ‘a’ «a»", "\"a\"", "b", false),
        Err(NoMatch::SeveralAlike { count: 2 })
    );
}

#[test]
fn all_places_are_replaced_when_asked() {
    assert_eq!(
        edited("a a a", "a", "aa", true),
        Ok(("aa aa aa".to_owned(), How::Exact))
    );
    assert_eq!(edited("aaa", "aa", "b", true), Ok(("ba".to_owned(), How::Exact)));
}

/// TOOL-2: an ambiguous edit is refused.
#[test]
fn unclear_edits_are_refused() {
    let cases = [
        (
            "twice",
            "a\nb\na\n",
            "a",
            NoMatch::Several {
                lines: vec![1, 3],
                count: 2,
            },
        ),
        (
            "overlapping",
            "aaa",
            "aa",
            NoMatch::Several {
                lines: vec![1, 1],
                count: 2,
            },
        ),
        (
            "alike twice",
            " a\n  a\n",
            "\ta",
            NoMatch::SeveralAlike { count: 2 },
        ),
        ("nowhere", "a\nb\n", "zzz", NoMatch::Nowhere { nearest: None }),
        (
            "only blanks",
            "a\n\t\nb\n",
            "   ",
            NoMatch::Nowhere { nearest: None },
        ),
        (
            "part of a line",
            "let a = 1;\n",
            "  a = 2",
            NoMatch::Nowhere {
                nearest: Some((0, 1)),
            },
        ),
        (
            "indents differ",
            "a\n  b\n    c\n",
            "\ta\n\tb\n",
            NoMatch::Nowhere {
                nearest: Some((0, 2)),
            },
        ),
        (
            "near",
            "one\nfn total(items: &[u32]) -> u32 {\n}\n",
            "fn total(items: &[u64]) -> u64 {",
            NoMatch::Nowhere {
                nearest: Some((1, 1)),
            },
        ),
    ];
    for (name, text, old, expected) in cases {
        assert_eq!(find(text, old, "new", false), Err(expected), "{name}");
    }
}

proptest! {
    /// TOOL-2: replacing a unique piece and replacing it back restores the same bytes.
    #[test]
    fn an_edit_can_be_undone(before in "[a-z \n]{0,40}", after in "[a-z \n]{0,40}", crlf: bool, mark: bool) {
        let ends = |text: &str| if crlf { with_crlf(text) } else { text.to_owned() };
        let mark = if mark { "\u{FEFF}" } else { "" };
        let text = format!("{mark}{}", ends(&format!("{before}\nOLD ä\nEND\n{after}")));
        let (changed, how) = edited(&text, "OLD ä\nEND", "NEW 🦀\n\nMORE", false).expect("one place");
        prop_assert_eq!(how, How::Exact);
        prop_assert_eq!(&changed, &format!("{mark}{}", ends(&format!("{before}\nNEW 🦀\n\nMORE\n{after}"))));
        let (back, _) = edited(&changed, "NEW 🦀\n\nMORE", "OLD ä\nEND", false).expect("one place");
        prop_assert_eq!(back, text);
    }

    /// No text causes a panic, and text outside the places stays unchanged.
    #[test]
    fn anything_may_be_asked(text in "[ab \t\r\nä“\"–]{0,30}", old in "[ab \t\r\nä\"-]{0,6}", new in "[ab \r\n\"]{0,6}", all: bool) {
        if let Ok(found) = find(&text, &old, &new, all) {
            let kept: usize = text.len() - found.places.iter().map(ExactSizeIterator::len).sum::<usize>();
            let changed = found.apply(&text);
            prop_assert_eq!(changed.len(), kept + found.places.len() * found.replacement.len());
            prop_assert_eq!(changed.len(), found.length_after(text.len()));
            for place in &found.places {
                prop_assert!(text.get(place.clone()).is_some());
            }
        }
    }
}
