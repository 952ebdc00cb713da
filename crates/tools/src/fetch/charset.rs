//! Decodes the bytes of a page.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Maximum offset of an encoding declaration in a page.
const DECLARED_WITHIN: usize = 1024;

/// Decodes a body. A byte order mark wins, then the header, then the page itself. A body that was `cut` loses
/// the character at the cut.
pub(super) fn decode(body: &[u8], content_type: Option<&str>, cut: bool) -> String {
    let declared = content_type
        .and_then(label)
        .or_else(|| label_in_page(body))
        .and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = declared.unwrap_or_else(|| guess(body));
    let mut decoder = encoding.new_decoder();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(body.len()).unwrap_or_default());
    let is_whole = !cut;
    // There is room for everything, so one step decodes all of it.
    let _ = decoder.decode_to_string(body, &mut text, is_whole);
    text.shrink_to_fit();
    text
}

/// Returns the value after `charset=`.
fn label(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?;
    let rest = rest.trim_start_matches([' ', '"', '\'']);
    let end = rest.find(['"', '\'', ';', ' ', '/', '>', ',']);
    let label = rest.split_at(end.unwrap_or(rest.len())).0.trim();
    (!label.is_empty()).then(|| label.to_owned())
}

/// Returns the encoding in `<meta charset=…>`, or in its `content`; `<?xml encoding=…?>` is always UTF-8 in
/// practice.
fn label_in_page(body: &[u8]) -> Option<String> {
    let start = body.get(..DECLARED_WITHIN).unwrap_or(body);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let found = start.split("<meta").skip(1).find_map(label);
    // A page whose ASCII can be read is not UTF-16, whatever it declares.
    found.map(|label| {
        if label.starts_with("utf-16") {
            "utf-8".to_owned()
        } else {
            label
        }
    })
}

/// Guesses the encoding: old pages often do not declare it, and are not UTF-8.
fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        // A character that is cut off at the end proves nothing.
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-2: a page is read in its own encoding, and is never cut inside a character.
    #[test]
    fn encodings_are_honoured() {
        let utf16 = [0xff, 0xfe, b'h', 0, 0xe4, 0];
        let cases: &[(&[u8], Option<&str>, &str)] = &[
            ("gr\u{fc}n".as_bytes(), None, "gr\u{fc}n"),
            (b"gr\xfcn", None, "gr\u{fc}n"),
            (b"gr\xfcn", Some("text/plain; charset=ISO-8859-1"), "gr\u{fc}n"),
            (
                b"\x93\xfa\x96{",
                Some("text/html;charset=\"Shift_JIS\""),
                "\u{65e5}\u{672c}",
            ),
            (
                b"<meta charset=koi8-r>\xc1",
                Some("text/html"),
                "<meta charset=koi8-r>\u{430}",
            ),
            (
                b"<META http-equiv=a content='text/html; charset=windows-1251'>\xe0",
                None,
                "<META http-equiv=a content='text/html; charset=windows-1251'>\u{430}",
            ),
            (&utf16, Some("text/plain; charset=utf-8"), "h\u{e4}"),
            (b"\xef\xbb\xbfx", Some("text/plain; charset=latin1"), "x"),
            (b"a\xffb", Some("text/plain; charset=utf-8"), "a\u{fffd}b"),
            (b"ok", Some("text/plain; charset=nonsense"), "ok"),
            (b"", None, ""),
        ];
        for (body, content_type, expected) in cases {
            let text = decode(body, *content_type, false);
            assert_eq!(text, *expected, "{content_type:?} {body:?}");
        }
        let crab = "aä🦀".as_bytes();
        for end in 0..=crab.len() {
            let text = decode(crab.get(..end).unwrap(), Some("text/plain"), true);
            assert!("aä🦀".starts_with(&text), "{end} {text}");
        }
    }
}
