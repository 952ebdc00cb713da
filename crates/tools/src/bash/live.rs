//! Live output in few pieces: it is for a person, who cannot read a thousand pieces a second.

use std::time::{Duration, Instant};

use windlass_core::tool::Progress;

use windlass_core::text::boundary_after;

/// Time between two pieces.
const INTERVAL: Duration = Duration::from_millis(30);
/// A piece of this size is sent immediately.
const PIECE: usize = 4096;
/// Maximum bytes sent within one interval. The rest is skipped: it could not be read, and a queue for it
/// would grow without limit.
const BYTES_PER_INTERVAL: usize = 64 * 1024;
const SKIPPED: &str = "\n[… live output skipped …]\n";

/// Collects output and forwards it in pieces.
pub(super) struct Live {
    progress: Progress,
    waiting: String,
    skipped: bool,
    /// Start of the current interval; `None` before the first piece.
    since: Option<Instant>,
    /// Bytes sent in the current interval.
    sent: usize,
}

impl Live {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            progress,
            waiting: String::new(),
            skipped: false,
            since: None,
            sent: 0,
        }
    }

    /// Adds text and sends the part that is due.
    pub(super) fn push(&mut self, text: &str) {
        self.waiting.push_str(text);
        if self.is_due() {
            self.flush();
        } else if self.waiting.len() >= PIECE {
            if self.sent + self.waiting.len() <= BYTES_PER_INTERVAL {
                self.send();
            } else {
                let excess = boundary_after(&self.waiting, self.waiting.len() - PIECE);
                self.skipped |= excess > 0;
                self.waiting.drain(..excess);
            }
        }
    }

    /// Returns the time at which [`Self::flush`] should be called, if output is pending.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let since = self.since.filter(|_| !self.waiting.is_empty())?;
        Some(since + INTERVAL)
    }

    /// Sends all pending output and starts an interval.
    pub(super) fn flush(&mut self) {
        if !self.waiting.is_empty() {
            self.since = Some(Instant::now());
            self.sent = 0;
            self.send();
        }
    }

    fn is_due(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() >= INTERVAL)
    }

    fn send(&mut self) {
        if std::mem::take(&mut self.skipped) {
            self.waiting.insert_str(0, SKIPPED);
        }
        self.progress.send(&self.waiting);
        self.sent += self.waiting.len();
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn recorded() -> (Live, Arc<Mutex<Vec<String>>>) {
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&pieces);
        let progress = Progress::new(move |piece| sink.lock().expect("lock").push(piece.to_owned()));
        (Live::new(progress), pieces)
    }

    /// TOOL-9: output arrives live and complete, in few pieces.
    #[test]
    fn small_pieces_are_joined() {
        let (mut live, pieces) = recorded();
        live.push("first");
        assert_eq!(*pieces.lock().expect("lock"), ["first"]);
        for _ in 0..100 {
            live.push("x");
        }
        live.flush();
        let pieces = pieces.lock().expect("lock");
        assert_eq!(pieces.concat(), format!("first{}", "x".repeat(100)));
        assert!(live.deadline().is_none());
    }

    #[test]
    fn a_flood_is_thinned() {
        let (mut live, pieces) = recorded();
        let flood = "ä".repeat(PIECE);
        for _ in 0..10_000 {
            live.push(&flood);
        }
        live.flush();
        let pieces = pieces.lock().expect("lock").concat();
        assert!(pieces.len() < 40_000_000);
        assert!(pieces.contains("[… live output skipped …]"));
        assert!(live.waiting.is_empty());
    }
}
