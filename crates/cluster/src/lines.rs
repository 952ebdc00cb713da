//! Events as lines of JSON, in whatever pieces they arrive.

use bytes::{Bytes, BytesMut};
use windlass_api::Envelope;

/// Longest line.
const LINE: usize = 64 << 20;

/// Returns the line of an event.
pub(crate) fn line(envelope: &Envelope) -> Bytes {
    let mut line = serde_json::to_vec(envelope).unwrap_or_default();
    line.push(b'\n');
    Bytes::from(line)
}

/// Puts pieces together.
#[derive(Default)]
pub(crate) struct Lines {
    rest: BytesMut,
    /// Bytes of `rest` that have no end of a line.
    searched: usize,
}

impl Lines {
    /// Adds a piece. Returns false if a line is too long.
    pub(crate) fn add(&mut self, piece: &[u8]) -> bool {
        if self.rest.len() + piece.len() > LINE {
            return false;
        }
        self.rest.extend_from_slice(piece);
        true
    }

    /// Returns the next event. Blank lines, which keep a connection alive, and events that only a newer server knows
    /// are left out.
    pub(crate) fn next_event(&mut self) -> Option<Envelope> {
        loop {
            let unsearched = self.rest.iter().skip(self.searched);
            let Some(more) = unsearched.copied().position(|byte| byte == b'\n') else {
                self.searched = self.rest.len();
                return None;
            };
            let line = self.rest.split_to(self.searched + more + 1);
            self.searched = 0;
            if let Ok(envelope) = serde_json::from_slice(&line) {
                return Some(envelope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIST-4: events come out whole and in order, however the carrier cuts them.
    #[test]
    fn events_are_put_together_from_pieces() {
        let event = |seq: u64| {
            let text =
                serde_json::json!({ "v": 1, "session": "s", "seq": seq, "type": "status", "text": "wait" });
            serde_json::from_value::<Envelope>(text).unwrap()
        };
        let mut text = line(&event(1)).to_vec();
        text.extend_from_slice(b"\n{\"from\":\"a newer server\"}\n");
        text.extend_from_slice(&line(&event(2)));
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut numbers = Vec::new();
            for piece in text.chunks(size) {
                assert!(lines.add(piece));
                while let Some(event) = lines.next_event() {
                    numbers.push(event.seq);
                }
            }
            assert_eq!(numbers, [1, 2], "pieces of {size} bytes");
        }
    }
}
