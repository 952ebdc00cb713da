//! What the model thinks, while it does.

use ratatui::text::Line;

use super::item::Look;
use crate::text::{plain, wrap};
use crate::theme::Tone;

/// How many lines are shown.
const ROWS: usize = 3;
/// How many characters are kept for showing.
const KEPT: usize = 2_000;

/// Thinking that goes on.
pub(super) struct Thinking {
    /// The end of it.
    tail: String,
    since_ms: u64,
}

impl Thinking {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            tail: String::new(),
            since_ms: now_ms,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() > 2 * KEPT {
            let skip = self.tail.chars().count().saturating_sub(KEPT);
            self.tail = self.tail.chars().skip(skip).collect();
        }
    }

    /// How long it has been going on.
    pub(super) fn for_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// Its last lines.
    pub(super) fn lines(&self, look: Look) -> Vec<Line<'static>> {
        let style = look.theme.style(Tone::Dim);
        let text = plain(&self.tail);
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            lines.extend(wrap(&Line::styled(line.to_owned(), style), look.columns, ""));
        }
        let skip = lines.len().saturating_sub(ROWS);
        lines.drain(..skip);
        lines
    }
}
