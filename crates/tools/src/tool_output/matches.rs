//! Lines that match a pattern, out of a file of any size and with lines of any length.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use regex::bytes::{Regex, RegexBuilder};
use windlass_core::tool::ToolError;

use super::{LINES_BETWEEN_LOOKS, MAX_CHARS};
use windlass_core::text::{boundary_after, boundary_before};

/// A longer line is searched in pieces of this size, and each piece that matches is shown.
const PIECE: usize = 16 * 1024;
/// Overlap of two pieces, so that a match on their border is found.
const OVERLAP: usize = 2 * 1024;
/// Maximum length of a shown line. With all the lines before a match this is less than an answer may have.
const SHOWN: usize = 1000;
/// Text shown before a match in a longer line.
const BEFORE: usize = 300;

/// A search.
pub(super) struct Search {
    pattern: Regex,
    context: usize,
}

/// The matches of a search.
pub(super) struct Found {
    pub(super) content: String,
    pub(super) matches: usize,
    /// Line to continue from, if there may be more.
    pub(super) next: Option<u64>,
}

impl Search {
    /// # Errors
    /// When the pattern is none.
    pub(super) fn new(pattern: &str, context: usize) -> Result<Self, ToolError> {
        let built = RegexBuilder::new(pattern).multi_line(true).crlf(true).build();
        let pattern = built.map_err(|error| {
            ToolError::Invalid(format!(
                "`pattern` is not a valid regular expression: {error}\nTo search for text as it is, put a backslash \
                 before each of . * + ? ( ) [ ] {{ }} | ^ $ \\"
            ))
        })?;
        Ok(Self { pattern, context })
    }

    /// Shows at most `limit` matching lines from line `first` on. `None` when it was stopped.
    pub(super) fn run(
        &self,
        mut reader: impl BufRead,
        first: u64,
        limit: u64,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<Option<Found>> {
        let mut printer = Printer::new(self.context);
        let mut piece = Piece::default();
        let mut matches = 0;
        while piece.next(&mut reader)? {
            if (piece.is_continued || piece.line % LINES_BETWEEN_LOOKS == 0) && stopped() {
                return Ok(None);
            }
            if piece.line < first {
                continue;
            }
            let Some(place) = self.find(&piece) else {
                printer.pass(&piece);
                continue;
            };
            if u64::try_from(matches).unwrap_or(u64::MAX) == limit || !printer.show(&piece, place) {
                return Ok(Some(printer.found(matches, Some(piece.line))));
            }
            matches += 1;
        }
        Ok(Some(printer.found(matches, None)))
    }

    /// Returns the position of the first match in a piece that the previous piece did not contain.
    fn find(&self, piece: &Piece) -> Option<usize> {
        let common = if piece.is_continued { OVERLAP } else { 0 };
        let mut found = self.pattern.find_iter(&piece.bytes);
        let is_new = |end: usize| !piece.is_continued || end > common;
        found.find(|found| is_new(found.end())).map(|found| found.start())
    }
}

/// A line, or a piece of a very long one.
#[derive(Default)]
struct Piece {
    /// Its number, from 1.
    line: u64,
    bytes: Vec<u8>,
    /// The line began before this piece.
    is_continued: bool,
    /// The line continues after it.
    is_open: bool,
}

impl Piece {
    /// Reads the next one. False at the end.
    fn next(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        self.is_continued = self.is_open;
        if self.is_continued {
            let common = self.bytes.len().saturating_sub(OVERLAP);
            self.bytes.drain(..common);
        } else {
            self.bytes.clear();
            self.line += 1;
        }
        let before = self.bytes.len();
        loop {
            let buffer = reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let room = PIECE.saturating_sub(self.bytes.len());
            let wanted = end.unwrap_or(buffer.len()).min(room);
            let (taken, _) = buffer.split_at(wanted);
            self.bytes.extend_from_slice(taken);
            let at_break = end == Some(wanted);
            let at_end = buffer.is_empty();
            reader.consume(wanted + usize::from(at_break));
            if at_break || at_end {
                self.is_open = false;
                return Ok(at_break || self.bytes.len() > before);
            }
            if self.bytes.len() >= PIECE {
                self.is_open = true;
                return Ok(true);
            }
        }
    }

    /// Returns the shown part of the line: its start, or the text around the match.
    fn text(&self, place: Option<usize>) -> String {
        let whole = shown(&self.bytes);
        let whole = whole.trim_end_matches('\r');
        if whole.len() <= SHOWN && !self.is_continued && !self.is_open {
            return whole.to_owned();
        }
        let (before, _) = self
            .bytes
            .split_at(place.unwrap_or_default().min(self.bytes.len()));
        let from = boundary_after(whole, shown(before).len().saturating_sub(BEFORE));
        let to = boundary_before(whole, from + SHOWN);
        let text = whole.get(from..to).unwrap_or_default();
        let (before, after) = (
            if from > 0 || self.is_continued { "…" } else { "" },
            if to < whole.len() || self.is_open {
                "…"
            } else {
                ""
            },
        );
        format!("{before}{text}{after}")
    }
}

/// Returns bytes as text: what is not text, and NUL, becomes U+FFFD.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{FFFD}")
}

/// The number of a line, the sign after it, and what is shown of it.
type Line = (u64, char, String);

/// Prints matches with the lines around them.
struct Printer {
    content: String,
    chars: usize,
    context: usize,
    /// Lines that come before a match, if one follows.
    before: VecDeque<Line>,
    /// Number of lines to show after the last match.
    after: usize,
    last: Option<u64>,
}

impl Printer {
    fn new(context: usize) -> Self {
        Self {
            content: String::new(),
            chars: 0,
            context,
            before: VecDeque::new(),
            after: 0,
            last: None,
        }
    }

    /// A line that does not match.
    fn pass(&mut self, piece: &Piece) {
        if self.context == 0 || piece.is_continued {
            return;
        }
        let line = (piece.line, '-', piece.text(None));
        if self.after > 0 {
            self.after -= 1;
            self.print(&[line]);
            return;
        }
        self.before.push_back(line);
        if self.before.len() > self.context {
            self.before.pop_front();
        }
    }

    /// A line that matches. False when it does not fit any more.
    fn show(&mut self, piece: &Piece, place: usize) -> bool {
        let mut lines: Vec<Line> = std::mem::take(&mut self.before).into();
        lines.push((piece.line, ':', piece.text(Some(place))));
        self.after = self.context;
        self.print(&lines)
    }

    /// Prints all or nothing.
    fn print(&mut self, lines: &[Line]) -> bool {
        let mut printed = String::new();
        let mut last = self.last;
        for (line, sign, text) in lines {
            // The same line twice, when a very long one matches in several places, is no gap either.
            if self.context > 0 && last.is_some_and(|last| *line > last + 1) {
                printed.push_str("--\n");
            }
            printed.push_str(&format!("{line}{sign} {text}\n"));
            last = Some(*line);
        }
        let chars = self.chars + printed.chars().count();
        let fits = chars <= MAX_CHARS;
        if fits {
            self.content.push_str(&printed);
            (self.chars, self.last) = (chars, last);
        }
        fits
    }

    fn found(self, matches: usize, next: Option<u64>) -> Found {
        Found {
            content: self.content,
            matches,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(
        text: &str,
        pattern: &str,
        context: usize,
        first: u64,
        limit: u64,
    ) -> (String, usize, Option<u64>) {
        let search = Search::new(pattern, context).expect("a pattern");
        let found = search.run(text.as_bytes(), first, limit, &|| false);
        let found = found.expect("readable").expect("not stopped");
        (found.content, found.matches, found.next)
    }

    /// TOOL-3: matches come with their numbers, with what is around them, and from where they are asked for.
    #[test]
    fn matches_are_shown() {
        let text = "one\ntwo\r\nthree\nfour\nfive\nsix\nseven";
        type Case = (&'static str, usize, u64, u64, &'static str, Option<u64>);
        let cases: &[Case] = &[
            ("t", 0, 1, 9, "2: two\n3: three\n", None),
            ("e$", 0, 1, 9, "1: one\n3: three\n5: five\n", None),
            ("two$", 0, 1, 9, "2: two\n", None),
            ("o", 1, 1, 1, "1: one\n", Some(2)),
            ("e", 1, 1, 1, "1: one\n2- two\n", Some(3)),
            (
                "one|seven",
                1,
                1,
                9,
                "1: one\n2- two\n--\n6- six\n7: seven\n",
                None,
            ),
            ("o", 0, 2, 9, "2: two\n4: four\n", None),
            ("o", 0, 1, 2, "1: one\n2: two\n", Some(4)),
            ("x{5}", 0, 1, 9, "", None),
        ];
        for (pattern, context, first, limit, content, next) in cases {
            let found = search(text, pattern, *context, *first, *limit);
            assert_eq!((found.0.as_str(), found.2), (*content, *next), "{pattern}");
        }
    }

    /// TOOL-3: in a line of any length each match is found once, also on the border of two pieces.
    #[test]
    fn long_lines_are_searched_through() {
        let filler = "ä".repeat(PIECE / 2 - 8);
        let mut line = filler.clone();
        // Pieces end at PIECE, and from then on every PIECE - OVERLAP.
        line.push_str(&"x".repeat(PIECE - line.len() - 3));
        line.push_str("needle");
        line.push_str(&filler);
        line.push_str("needle");
        let text = format!("before\n{line}\nneedle after\n");
        let (content, matches, next) = search(&text, "needle", 0, 1, 9);
        assert_eq!((matches, next), (3, None), "{}", content.len());
        assert_eq!(content.lines().count(), 3);
        assert!(
            content
                .lines()
                .take(2)
                .all(|line| line.starts_with("2: …") && line.contains("needle"))
        );
        assert!(content.ends_with("3: needle after\n"));
        assert!(content.len() < 3 * (SHOWN + 20));
    }

    /// TOOL-3: an answer ends before it is too long, and says where to continue.
    #[test]
    fn answers_are_bounded() {
        let text = format!("{}\n", "m".repeat(500)).repeat(1000);
        let (content, matches, next) = search(&text, "m", 3, 1, 500);
        assert!(content.len() <= MAX_CHARS, "{}", content.len());
        assert_eq!(next, u64::try_from(matches).ok().map(|matches| matches + 1));
        assert!(search(&text, "m", 0, 1, 500).1 < 500);
    }
}
