//! Decoding and clipping, by table and by property.

use proptest::prelude::*;

use super::*;

fn decoded(pieces: &[&[u8]]) -> String {
    let mut decoder = Decoder::default();
    let mut text: String = pieces.iter().map(|piece| decoder.push(piece)).collect();
    text.push_str(decoder.finish());
    text
}

/// TOOL-3: no character is split, wherever the bytes are divided.
#[test]
fn characters_survive_any_split() {
    let cases: &[(&[&[u8]], &str)] = &[
        (&[b"plain"], "plain"),
        (&["ä".as_bytes()], "ä"),
        (&[b"\xc3", b"\xa4"], "ä"),
        (&[b"\xf0", b"\x9f", b"\xa6", b"\x80!"], "🦀!"),
        (&[b"a\xff", b"b"], "a\u{FFFD}b"),
        (&[b"a\xe2\x82"], "a\u{FFFD}"),
        (&[b"\xe2\x82", b"x"], "\u{FFFD}x"),
        (&[b"a\0b"], "a\u{FFFD}b"),
        (&[b"", b""], ""),
    ];
    for (pieces, expected) in cases {
        assert_eq!(decoded(pieces), *expected, "{pieces:?}");
    }
}

/// Parses the numbers in the line that says how much is missing.
fn left_out(text: &str) -> Option<(usize, usize)> {
    let (before, rest) = text.split_once("[… ")?;
    let (number, _) = rest.split_once(" bytes left out …]")?;
    Some((before.len(), number.parse().ok()?))
}

#[test]
fn short_text_is_kept_whole() {
    let mut clip = Clip::new(10);
    clip.push("hello");
    clip.push("world");
    assert!(!clip.is_cut());
    assert_eq!(clip.text(None), "helloworld");
    clip.push("!");
    assert!(clip.is_cut());
    assert_eq!(clip.text(None), "hello\n[… 1 bytes left out …]\norld!");
}

#[test]
fn memory_is_bounded() {
    let mut clip = Clip::new(1000);
    for _ in 0..100_000 {
        clip.push("0123456789\n");
    }
    assert!(clip.tail_bytes <= 500 + PIECE);
    let text = clip.text(None);
    assert!(text.len() < 1100);
    assert_eq!(left_out(&text).map(|(_, count)| count), Some(1_100_000 - 1000));
}

proptest! {
    /// TOOL-3: the exact start and end are kept, and the number in between is the rest.
    #[test]
    fn clipping_keeps_both_ends(pieces in prop::collection::vec("[a-zä€🦀\n]{0,40}", 0..40), limit in 0_usize..400) {
        let mut clip = Clip::new(limit);
        for piece in &pieces {
            clip.push(piece);
        }
        let (whole, text) = (pieces.concat(), clip.text(None));
        match left_out(&text) {
            None => {
                prop_assert!(!clip.is_cut());
                prop_assert_eq!(text, whole);
            }
            Some((_, missing)) => {
                prop_assert!(clip.is_cut());
                let head = &clip.head;
                let (_, tail) = text.split_once("left out …]\n").expect("the line");
                prop_assert!(whole.starts_with(head.as_str()));
                prop_assert!(whole.ends_with(tail));
                prop_assert_eq!(head.len() + missing + tail.len(), whole.len());
                prop_assert!(head.len() + tail.len() <= limit);
            }
        }
    }

    /// TOOL-3: dividing the bytes differently never changes the text.
    #[test]
    fn decoding_does_not_depend_on_the_split(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in prop::collection::vec(0_usize..200, 0..5),
    ) {
        let mut at: Vec<usize> = at.into_iter().map(|index| index.min(bytes.len())).collect();
        at.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for index in at {
            pieces.push(&bytes[from..index]);
            from = index;
        }
        pieces.push(&bytes[from..]);
        let expected = String::from_utf8_lossy(&bytes).replace('\0', "\u{FFFD}");
        prop_assert_eq!(decoded(&pieces), expected);
    }
}
