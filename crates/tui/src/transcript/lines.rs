//! The conversation as lines: for the scrollback, for the live area, and for looking back.

use ratatui::text::Line;

use super::item::{Item, Look, Placed};
use super::{BESIDE, KEPT, Transcript};

/// How many rows a call may take for the next one to stand right below it.
const CLOSE_ROWS: usize = 2;

impl Transcript {
    /// The lines that are finished and not in the scrollback yet.
    pub(crate) fn settle(&mut self, look: Look) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        while self.open.front().is_some_and(|placed| placed.item.is_finished()) {
            if let Some(placed) = self.open.pop_front() {
                self.print(placed, look, &mut lines);
            }
        }
        if self.open.is_empty()
            && let Some(reply) = &mut self.reply
        {
            let settled = reply.text.settle(look.columns, look.theme);
            if !settled.is_empty() && !reply.is_begun {
                lines.push(Line::default());
                reply.is_begun = true;
                self.last_was_call = false;
            }
            lines.extend(settled);
        }
        lines
    }

    fn print(&mut self, mut placed: Placed, look: Look, lines: &mut Vec<Line<'static>>) {
        let is_call = matches!(placed.item, Item::Call(_));
        let is_begun = matches!(placed.item, Item::Answer { begun: true, .. });
        let stands_close = is_begun || (is_call && self.last_was_call);
        if !stands_close {
            lines.push(Line::default());
        }
        let own = placed.item.rest(look);
        self.last_was_call = is_call && own.len() <= CLOSE_ROWS;
        lines.extend(own);
        self.past.push_back(placed);
        if self.past.len() > KEPT {
            self.past.pop_front();
            let mut kept = self.past.iter().chain(&self.open).map(|placed| placed.seq);
            self.begins = kept.find(|seq| *seq != BESIDE).or(self.begins);
        }
    }

    /// The lines that are not finished, for the live area.
    pub(crate) fn live(&mut self, look: Look, now_ms: u64) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last_was_call = self.last_was_call;
        for placed in &mut self.open {
            let is_call = matches!(placed.item, Item::Call(_));
            if !(is_call && last_was_call) {
                lines.push(Line::default());
            }
            let own = placed.lines(look, now_ms);
            last_was_call = is_call && own.len() <= CLOSE_ROWS;
            lines.extend_from_slice(&own);
        }
        if let Some(reply) = &mut self.reply {
            let open = reply.text.open(look.columns, look.theme);
            if !open.is_empty() && !reply.is_begun {
                lines.push(Line::default());
            }
            lines.extend_from_slice(open);
        }
        if let Some(thinking) = &self.thinking {
            lines.push(Line::default());
            lines.extend(thinking.lines(look));
        }
        lines
    }

    /// The last lines of all that is kept, so many of them or all, for looking back.
    pub(crate) fn last_lines(&mut self, count: usize, look: Look, now_ms: u64) -> Vec<Line<'static>> {
        let mut last = Last::new(count);
        if let Some(thinking) = &self.thinking {
            last.put_above(&thinking.lines(look));
        }
        if let Some(reply) = &mut self.reply {
            last.put_above(&reply.last_lines(last.room, look));
        }
        for placed in self.past.iter_mut().chain(&mut self.open).rev() {
            if last.room == 0 {
                break;
            }
            last.put_above(&placed.lines(look, now_ms));
        }
        last.lines()
    }

    /// The last lines that were printed, so many of them or all, to be printed again: they are gone from the screen.
    pub(crate) fn printed(&mut self, count: usize, look: Look) -> Vec<Line<'static>> {
        for placed in &mut self.open {
            placed.item.start_over();
        }
        let own = self.reply.as_mut().map(|reply| reply.printed(count, look));
        let own = own.unwrap_or_default();
        let mut last = Last::new(count.max(own.len()));
        if !own.is_empty() {
            last.put_above(&own);
        }
        for placed in self.past.iter_mut().rev() {
            if last.room == 0 {
                break;
            }
            last.put_above(&placed.lines(look, 0));
        }
        last.lines()
    }

    /// All lines of all that is kept.
    pub(crate) fn all_lines(&mut self, look: Look) -> Vec<Line<'static>> {
        self.last_lines(usize::MAX, look, 0)
    }

    /// Forgets how lines were drawn: the look has changed.
    pub(crate) fn forget_lines(&mut self) {
        for placed in self.past.iter_mut().chain(&mut self.open) {
            placed.forget_lines();
        }
        if let Some(reply) = &mut self.reply {
            reply.forget_lines();
        }
    }
}

/// The last lines of a conversation, gathered from the end, with space above every block.
struct Last {
    /// How many more lines are wanted.
    room: usize,
    /// The lines, the last one first.
    lines: Vec<Line<'static>>,
}

impl Last {
    fn new(count: usize) -> Self {
        Self {
            room: count,
            lines: Vec::new(),
        }
    }

    fn put_above(&mut self, block: &[Line<'static>]) {
        let before = self.lines.len();
        let space = Line::default();
        let lines = block.iter().rev().chain(std::iter::once(&space));
        self.lines.extend(lines.take(self.room).cloned());
        self.room -= self.lines.len() - before;
    }

    fn lines(mut self) -> Vec<Line<'static>> {
        self.lines.reverse();
        self.lines
    }
}
