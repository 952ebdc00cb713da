//! Reasoning of the model: while it streams, and its summary afterwards.

use ratatui::text::Line;

use super::item::{Item, Placed, RenderOptions, first_line};
use super::{BESIDE, Transcript};
use crate::text::{plain, wrap};
use crate::theme::Tone;

/// Maximum number of lines shown.
const ROWS: usize = 3;
/// Maximum number of characters kept.
const KEPT: usize = 2_000;

/// Reasoning that is still streaming.
pub(super) struct Thinking {
    /// First line, once it is no longer part of the tail.
    first: Option<String>,
    /// End of the text, or all of it.
    tail: String,
    since_ms: u64,
}

impl Thinking {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            first: None,
            tail: String::new(),
            since_ms: now_ms,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() > 2 * KEPT {
            self.first.get_or_insert_with(|| first_line(&self.tail));
            let skip = self.tail.chars().count().saturating_sub(KEPT);
            self.tail = self.tail.chars().skip(skip).collect();
        }
    }

    /// Duration so far.
    pub(super) fn for_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// Returns the text that was kept.
    pub(super) fn text(&self) -> String {
        match &self.first {
            Some(first) => format!("{first}\n…\n{}", self.tail),
            None => self.tail.clone(),
        }
    }

    /// Returns the last lines.
    pub(super) fn lines(&self, options: RenderOptions) -> Vec<Line<'static>> {
        let style = options.theme.style(Tone::Dim);
        let text = plain(&self.tail);
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            lines.extend(wrap(&Line::styled(line.to_owned(), style), options.columns, ""));
        }
        let skip = lines.len().saturating_sub(ROWS);
        lines.drain(..skip);
        lines
    }
}

impl Transcript {
    /// Adds the complete reasoning of a reply. It arrives after the reply, and is shown where it started.
    pub(super) fn thought(&mut self, seq: u64, text: &str, now_ms: u64) {
        self.end_thinking(now_ms);
        if !std::mem::take(&mut self.is_thought_partial) {
            let text = text.to_owned();
            return self.put_thought(seq, Item::Thought { text, for_ms: None });
        }
        if let Some(placed) = self.last_thought() {
            placed.seq = seq;
            placed.forget_lines();
            if let Item::Thought { text: heard, .. } = &mut placed.item {
                text.clone_into(heard);
            }
        }
    }

    /// Ends the streamed reasoning and puts it above what follows.
    pub(super) fn end_thinking(&mut self, now_ms: u64) {
        let Some(thinking) = self.thinking.take() else {
            return;
        };
        let took = thinking.for_ms(now_ms);
        if self.is_thought_partial {
            // The model thought again within one reply, whose reasoning counts as one.
            if let Some(placed) = self.last_thought() {
                placed.forget_lines();
                if let Item::Thought { for_ms, .. } = &mut placed.item {
                    *for_ms = Some(for_ms.unwrap_or_default() + took);
                }
            }
            return;
        }
        let text = thinking.text();
        if text.trim().is_empty() {
            return;
        }
        self.is_thought_partial = true;
        let for_ms = Some(took);
        self.put_thought(BESIDE, Item::Thought { text, for_ms });
    }

    /// Puts a thought above the answer, or below it if part of the answer is in the scrollback: never within
    /// it.
    fn put_thought(&mut self, seq: u64, item: Item) {
        match &mut self.reply {
            Some(reply) if reply.is_begun => reply.late = Some(Placed::new(seq, item)),
            _ => self.push(seq, item),
        }
    }

    fn last_thought(&mut self) -> Option<&mut Placed> {
        let late = self.reply.as_mut().and_then(|reply| reply.late.as_mut());
        let held = self.past.iter_mut().chain(&mut self.open).chain(late);
        held.rev()
            .find(|placed| matches!(placed.item, Item::Thought { .. }))
    }

    /// Drops the streamed reasoning.
    pub(super) fn forget_thinking(&mut self) {
        self.thinking = None;
        self.is_thought_partial = false;
    }
}
