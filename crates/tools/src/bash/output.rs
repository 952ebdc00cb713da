//! Bytes of a command become text, and too much text becomes its beginning and its end.

use std::collections::VecDeque;

use windlass_core::tool::{Kept, TOOL_OUTPUT};

use windlass_core::text::{boundary_after, boundary_before};

/// Turns a stream of bytes into text without ever cutting a character in two.
#[derive(Default)]
pub(super) struct Decoder {
    /// The beginning of a character whose rest has not arrived.
    unfinished: Vec<u8>,
}

impl Decoder {
    /// The text that is complete with these bytes. Bytes that are no text become U+FFFD, and so does NUL, which not
    /// every store can hold.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len() + self.unfinished.len());
        if self.unfinished.is_empty() {
            self.unfinished = decode(bytes, &mut text).to_vec();
        } else {
            let mut whole = std::mem::take(&mut self.unfinished);
            whole.extend_from_slice(bytes);
            self.unfinished = decode(&whole, &mut text).to_vec();
        }
        text
    }

    /// What is left when no more bytes will come.
    pub(super) fn finish(&mut self) -> &'static str {
        let unfinished = std::mem::take(&mut self.unfinished);
        if unfinished.is_empty() { "" } else { "\u{FFFD}" }
    }
}

/// Decodes what is complete and returns the rest, at most three bytes.
fn decode<'a>(mut bytes: &'a [u8], text: &mut String) -> &'a [u8] {
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(valid) => {
                push_without_nul(text, valid);
                return &[];
            }
            Err(error) => error,
        };
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        push_without_nul(text, &String::from_utf8_lossy(valid));
        let Some(length) = error.error_len() else {
            return rest;
        };
        text.push('\u{FFFD}');
        bytes = rest.split_at(length).1;
    }
}

fn push_without_nul(text: &mut String, piece: &str) {
    if piece.contains('\0') {
        text.extend(
            piece
                .chars()
                .map(|letter| if letter == '\0' { '\u{FFFD}' } else { letter }),
        );
    } else {
        text.push_str(piece);
    }
}

/// Keeps the beginning and the end of a text of any length, in bounded memory.
pub(super) struct Clip {
    /// Half of what may be kept.
    half: usize,
    head: String,
    /// The head took a piece only in part, so it takes no more.
    head_full: bool,
    /// Pieces from the end, whole as they came; the first may be longer than needed.
    tail: VecDeque<String>,
    tail_bytes: usize,
    left_out: usize,
}

impl Clip {
    /// Keeps about `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            half: limit / 2,
            head: String::new(),
            head_full: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out: 0,
        }
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, piece: &str) {
        let rest = self.fill_head(piece);
        if rest.is_empty() {
            return;
        }
        match self.tail.back_mut() {
            // Few large pieces instead of many small ones, for programs that write byte by byte.
            Some(last) if last.len() + rest.len() <= PIECE => last.push_str(rest),
            _ => self.tail.push_back(rest.to_owned()),
        }
        self.tail_bytes += rest.len();
        while let Some(first) = self.tail.front() {
            if self.tail_bytes - first.len() < self.half {
                break;
            }
            self.tail_bytes -= first.len();
            self.left_out += first.len();
            self.tail.pop_front();
        }
    }

    fn fill_head<'a>(&mut self, piece: &'a str) -> &'a str {
        if self.head_full {
            return piece;
        }
        let room = self.half.saturating_sub(self.head.len());
        let (taken, rest) = piece.split_at(boundary_before(piece, room));
        self.head.push_str(taken);
        self.head_full = !rest.is_empty();
        rest
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail_bytes == 0
    }

    /// Whether nothing was lost yet, and this piece may change that.
    pub(super) fn may_lose(&self, piece: &str) -> bool {
        let held = self.head.len() + self.tail_bytes;
        // The head may end a few bytes early, where a character would not fit.
        self.left_out == 0 && held + piece.len() + MAX_CHARACTER > 2 * self.half
    }

    /// What is held, piece by piece: everything as long as nothing was lost.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        let tail = self.tail.iter().map(String::as_str);
        std::iter::once(self.head.as_str()).chain(tail)
    }

    /// Whether something is missing from [`Self::text`].
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0 || self.excess() > 0
    }

    /// The text, with a line that says how much is missing, and where all of it can be read.
    pub(super) fn text(&self, kept: Option<&Kept>) -> String {
        let mut tail: String = self.tail.iter().map(String::as_str).collect();
        let excess = boundary_after(&tail, self.excess());
        tail.drain(..excess);
        let left_out = self.left_out + excess;
        if left_out == 0 {
            return format!("{}{tail}", self.head);
        }
        let line_break = if self.head.is_empty() || self.head.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let place = kept.map(|kept| format!("; read them with {TOOL_OUTPUT}, id \"{}\"", kept.id));
        let place = place.unwrap_or_default();
        format!(
            "{}{line_break}[… {left_out} bytes left out{place} …]\n{tail}",
            self.head
        )
    }

    /// Bytes at the front of the tail that are more than its half.
    fn excess(&self) -> usize {
        self.tail_bytes.saturating_sub(self.half)
    }
}

/// Pieces of the tail are joined up to this size.
const PIECE: usize = 4096;
/// The most bytes of a character.
const MAX_CHARACTER: usize = 4;

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
