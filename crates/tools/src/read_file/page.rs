//! Reads one page of a file of any size, without loading the file into memory.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use windlass_core::text::shorten;

/// Maximum number of characters of a line.
const MAX_LINE_CHARS: usize = 2000;
pub(crate) const MAX_LINE_BYTES: usize = MAX_LINE_CHARS * 4;
/// Maximum size of a page, which stays below the limit of one result for the model.
const MAX_PAGE_BYTES: usize = 38_000;
/// Maximum number of bytes after the page in which lines are counted.
const MAX_COUNTED_BYTES: usize = 256 << 20;
const BUFFER: usize = 64 * 1024;
/// Number of bytes that determine whether a file is text.
const SNIFFED: usize = 8192;

/// Result of a read.
pub(super) enum Page {
    Text {
        /// Numbered lines, each with its line break.
        content: String,
        lines: u64,
        total: Total,
    },
    /// Not text, but this kind of file.
    Binary(&'static str),
}

/// Number of lines in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Exactly(u64),
    MoreThan(u64),
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

/// Reads `limit` lines from line `first`, counted from 1. Returns `None` if it was cancelled.
pub(super) fn read(
    file: impl Read,
    first: u64,
    limit: u64,
    stopped: &dyn Fn() -> bool,
) -> io::Result<Option<Page>> {
    let mut reader = BufReader::with_capacity(BUFFER, file);
    if let Some(kind) = binary_kind(reader.fill_buf()?) {
        return Ok(Some(Page::Binary(kind)));
    }
    let mut line = Vec::new();
    let mut number = 1;
    while number < first {
        if number % 1024 == 0 && stopped() {
            return Ok(None);
        }
        if next_line(&mut reader, &mut line, 0)?.is_none() {
            let total = Total::Exactly(number - 1);
            return Ok(Some(Page::Text {
                content: String::new(),
                lines: 0,
                total,
            }));
        }
        number += 1;
    }
    let mut content = String::new();
    let mut lines = 0;
    let mut is_cut = false;
    while lines < limit && !is_cut {
        let Some(length) = next_line(&mut reader, &mut line, MAX_LINE_BYTES)? else {
            break;
        };
        let shown = numbered(number, &line, length);
        // The first line is shown whatever its length; it is cut already.
        is_cut = lines > 0 && content.len() + shown.len() > MAX_PAGE_BYTES;
        if !is_cut {
            content.push_str(&shown);
            lines += 1;
        }
        number += 1;
    }
    let Some(total) = count_rest(&mut reader, number - 1, stopped)? else {
        return Ok(None);
    };
    Ok(Some(Page::Text {
        content,
        lines,
        total,
    }))
}

/// Returns a line with its number, cut if it is long.
pub(crate) fn numbered(number: u64, line: &[u8], length: usize) -> String {
    // A kept output may contain NUL, which not every store can hold.
    let text = String::from_utf8_lossy(line).replace('\0', "\u{FFFD}");
    let text = text.trim_end_matches(['\n', '\r']);
    let text = if number == 1 {
        text.trim_start_matches('\u{FEFF}')
    } else {
        text
    };
    let (text, cut) = shorten(text, MAX_LINE_CHARS);
    let note = if cut > 0 || length > line.len() {
        format!(" [line cut; it has {length} bytes]")
    } else {
        String::new()
    };
    format!("{number:>6}\t{text}{note}\n")
}

/// Reads one line with its line break and keeps at most `keep` bytes of it. Returns its length, or `None` at
/// the end.
pub(crate) fn next_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    keep: usize,
) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|index| index + 1);
        let (piece, _) = buffer.split_at(end.unwrap_or(buffer.len()));
        line.extend(piece.iter().take(keep - line.len()));
        let count = piece.len();
        length += count;
        reader.consume(count);
        if end.is_some() || count == 0 {
            return Ok((length > 0).then_some(length));
        }
    }
}

/// Counts the lines, given that `read` lines were read already. Returns `None` if it was cancelled.
pub(crate) fn count_rest(
    reader: &mut impl BufRead,
    read: u64,
    stopped: &dyn Fn() -> bool,
) -> io::Result<Option<Total>> {
    let (mut total, mut counted, mut ends_open) = (read, 0, false);
    loop {
        if stopped() {
            return Ok(None);
        }
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else {
            return Ok(Some(Total::Exactly(total + u64::from(ends_open))));
        };
        ends_open = *last != b'\n';
        total += buffer.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        let count = buffer.len();
        counted += count;
        reader.consume(count);
        if counted > MAX_COUNTED_BYTES {
            return Ok(Some(Total::MoreThan(total)));
        }
    }
}

/// Magic bytes of files that are not text.
const KINDS: &[(&[u8], &str)] = &[
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WebP, WAV or AVI)"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or a document made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\xfd7zXZ", "XZ data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3", "a SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\0asm", "a WebAssembly module"),
];

fn binary_kind(beginning: &[u8]) -> Option<&'static str> {
    let kind = KINDS
        .iter()
        .find(|(magic, _)| beginning.starts_with(magic))
        .map(|(_, kind)| *kind);
    let has_nul = beginning.iter().take(SNIFFED).any(|byte| *byte == 0);
    // A text may start like a GIF; only a NUL proves that it is not text. PDF and compressed data may have no
    // NUL.
    let is_sure = has_nul || beginning.starts_with(b"%PDF") || beginning.starts_with(b"\x1f\x8b");
    is_sure.then(|| kind.unwrap_or("a binary file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(file: &[u8], first: u64, limit: u64) -> (String, u64, Total) {
        match read(file, first, limit, &|| false).expect("readable") {
            Some(Page::Text {
                content,
                lines,
                total,
            }) => (content, lines, total),
            Some(Page::Binary(kind)) => panic!("taken for {kind}"),
            None => panic!("stopped"),
        }
    }

    #[test]
    fn pages_are_exact() {
        type Case = (&'static [u8], u64, u64, &'static str, u64, u64);
        let cases: &[Case] = &[
            (b"", 1, 10, "", 0, 0),
            (b"a\nb\n", 1, 10, "     1\ta\n     2\tb\n", 2, 2),
            (b"a\nb", 1, 10, "     1\ta\n     2\tb\n", 2, 2),
            (b"a\r\nb\r\n", 2, 1, "     2\tb\n", 1, 2),
            (b"a\nb\nc", 1, 1, "     1\ta\n", 1, 3),
            (b"a\nb\nc\n", 2, 1, "     2\tb\n", 1, 3),
            (b"a\n", 5, 1, "", 0, 1),
            (b"\n\n", 1, 9, "     1\t\n     2\t\n", 2, 2),
            ("\u{FEFF}a".as_bytes(), 1, 1, "     1\ta\n", 1, 1),
            (b"\xffa", 1, 1, "     1\t\u{FFFD}a\n", 1, 1),
        ];
        for (file, first, limit, content, lines, total) in cases {
            let expected = ((*content).to_owned(), *lines, Total::Exactly(*total));
            assert_eq!(text(file, *first, *limit), expected, "{file:?} from {first}");
        }
    }

    #[test]
    fn long_lines_and_pages_are_cut() {
        let line = format!("{}\n", "ä".repeat(MAX_LINE_CHARS + 1));
        let (content, lines, _) = text(line.as_bytes(), 1, 1);
        assert_eq!(lines, 1);
        assert!(content.ends_with("ä [line cut; it has 4003 bytes]\n"));
        let endless = io::repeat(b'x').take(1 << 20);
        let Ok(Some(Page::Text { content, .. })) = read(endless, 1, 1, &|| false) else {
            panic!("a page")
        };
        assert!(content.len() < MAX_LINE_CHARS + 100);
        let many = "0123456789\n".repeat(10_000);
        let (content, lines, total) = text(many.as_bytes(), 1, 2000);
        assert_eq!((lines, total), (2000, Total::Exactly(10_000)));
        assert!(content.len() <= MAX_PAGE_BYTES);
        let wide = format!("{}\n", "w".repeat(1000)).repeat(100);
        let (content, lines, total) = text(wide.as_bytes(), 1, 2000);
        assert_eq!(total, Total::Exactly(100));
        assert!(lines < 40 && content.len() <= MAX_PAGE_BYTES);
    }

    #[test]
    fn what_is_not_text_is_named() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"plain", None),
            (b"GIF89a is a format", None),
            (b"GIF89a\0\x01", Some("a GIF image")),
            (b"a\0b", Some("a binary file")),
            (b"%PDF-1.7", Some("a PDF document")),
        ];
        for (bytes, kind) in cases {
            assert_eq!(binary_kind(bytes), *kind, "{bytes:?}");
        }
    }
}
