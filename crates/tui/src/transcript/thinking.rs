//! What the model thinks: while it does, and what is told of it afterwards.

use ratatui::text::Line;

use super::item::{Item, Placed, RenderOptions, first_line};
use super::{BESIDE, Transcript};
use crate::text::{plain, wrap};
use crate::theme::Tone;

/// How many lines are shown.
const ROWS: usize = 3;
/// How many characters are kept for showing.
const KEPT: usize = 2_000;

/// Thinking that goes on.
pub(super) struct Thinking {
    /// Its first line, once that is not in the end any more.
    first: Option<String>,
    /// The end of it, or all.
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

    /// How long it has been going on.
    pub(super) fn for_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// What is kept of it.
    pub(super) fn text(&self) -> String {
        match &self.first {
            Some(first) => format!("{first}\n…\n{}", self.tail),
            None => self.tail.clone(),
        }
    }

    /// Its last lines.
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
    /// All that the model thought for a reply. It is told after the reply, and shown where it began.
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

    /// The model goes on to something else: what was heard of its thinking stands above that.
    pub(super) fn end_thinking(&mut self, now_ms: u64) {
        let Some(thinking) = self.thinking.take() else {
            return;
        };
        let took = thinking.for_ms(now_ms);
        if self.is_thought_partial {
            // It thought again within one reply, whose thoughts are told as one.
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

    /// A thought stands above the answer, or below it when a piece of that is in the scrollback: never within.
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

    /// Nothing more is told about what was thought live.
    pub(super) fn forget_thinking(&mut self) {
        self.thinking = None;
        self.is_thought_partial = false;
    }
}
