//! Decodes the output of a command, and clips a long text to its start and end.

use std::collections::VecDeque;

use windlass_core::tool::{Kept, TOOL_OUTPUT};

use windlass_core::text::{boundary_after, boundary_before};

/// Decodes a stream of bytes without ever splitting a character.
#[derive(Default)]
pub(super) struct Decoder {
    /// Start of a character whose remaining bytes have not arrived.
    unfinished: Vec<u8>,
}

impl Decoder {
    /// Returns the text that is complete with these bytes. Invalid bytes become U+FFFD, and so does NUL,
    /// which not every store can hold.
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

    /// Returns the rest when no more bytes will come.
    pub(super) fn finish(&mut self) -> &'static str {
        let unfinished = std::mem::take(&mut self.unfinished);
        if unfinished.is_empty() { "" } else { "\u{FFFD}" }
    }
}

/// Decodes the complete characters and returns the rest, at most three bytes.
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

/// Keeps the start and the end of a text of any length, in bounded memory.
pub(super) struct Clip {
    /// Half of the limit.
    half: usize,
    head: String,
    /// True once the head has taken only a part of a piece, and so takes no more.
    head_full: bool,
    /// Pieces from the end, whole as they came; the first may be longer than needed.
    tail: VecDeque<String>,
    tail_bytes: usize,
    left_out: usize,
}

impl Clip {
    /// Creates a clip that keeps about `limit` bytes.
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

    /// Returns true if the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail_bytes == 0
    }

    /// Returns true if nothing is lost yet, but this piece may cause a loss.
    pub(super) fn may_lose(&self, piece: &str) -> bool {
        let held = self.head.len() + self.tail_bytes;
        // The head may end a few bytes early, where a character would not fit.
        self.left_out == 0 && held + piece.len() + MAX_CHARACTER > 2 * self.half
    }

    /// Returns true if [`Self::text`] is incomplete.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0 || self.excess() > 0
    }

    /// Returns the text, with a line that says how much is missing and how to read all of it.
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

    /// Returns the number of bytes at the front of the tail that exceed its half.
    fn excess(&self) -> usize {
        self.tail_bytes.saturating_sub(self.half)
    }
}

/// Maximum size up to which pieces of the tail are joined.
const PIECE: usize = 4096;
/// Maximum number of bytes of a character.
const MAX_CHARACTER: usize = 4;

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
