//! The conversation as lines: for the scrollback, for the live area, and for looking back.

use ratatui::text::Line;

use super::card::folded;
use super::item::{Item, Placed, RenderOptions};
use super::{BESIDE, KEPT, Transcript};

/// How many rows a call may take for the next one to stand right below it.
const CLOSE_ROWS: usize = 2;
/// How many calls that are still to be told are shown.
const PLANNED_ROWS: usize = 8;

impl Transcript {
    /// The lines that are finished and not in the scrollback yet.
    pub(crate) fn settle(&mut self, options: RenderOptions) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        while self.open.front().is_some_and(|placed| placed.item.is_finished()) {
            if let Some(placed) = self.open.pop_front() {
                self.print(placed, options, &mut lines);
            }
        }
        if self.open.is_empty()
            && let Some(reply) = &mut self.reply
        {
            let settled = reply.text.settle(options.columns, options.theme);
            if !settled.is_empty() && !reply.is_begun {
                lines.push(Line::default());
                reply.is_begun = true;
                self.last_was_call = false;
            }
            lines.extend(settled);
        }
        lines
    }

    fn print(&mut self, mut placed: Placed, options: RenderOptions, lines: &mut Vec<Line<'static>>) {
        let is_call = matches!(placed.item, Item::Call(_));
        let is_begun = matches!(placed.item, Item::Answer { begun: true, .. });
        let stands_close = is_begun || (is_call && self.last_was_call);
        if !stands_close {
            lines.push(Line::default());
        }
        let own = placed.item.rest(options);
        self.last_was_call = is_call && own.len() <= CLOSE_ROWS;
        lines.extend(own);
        self.past.push_back(placed);
        self.forget_older();
    }

    /// Forgets what was read to look back at, and is not looked at any more.
    pub(crate) fn forget_older(&mut self) {
        let excess = self.past.len().saturating_sub(KEPT);
        if excess == 0 {
            return;
        }
        self.past.drain(..excess);
        self.past.shrink_to(2 * KEPT);
        let mut kept = self.past.iter().chain(&self.open).map(|placed| placed.seq);
        self.begins = kept.find(|seq| *seq != BESIDE).or(self.begins);
    }

    /// The lines that are not finished, for the live area.
    pub(crate) fn live(&mut self, options: RenderOptions, now_ms: u64) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last_was_call = self.last_was_call;
        for placed in &mut self.open {
            let is_call = matches!(placed.item, Item::Call(_));
            if !(is_call && last_was_call) {
                lines.push(Line::default());
            }
            let own = placed.lines(options, now_ms);
            last_was_call = is_call && own.len() <= CLOSE_ROWS;
            lines.extend_from_slice(&own);
        }
        let planned = self.planned(options, now_ms);
        if !planned.is_empty() && !last_was_call {
            lines.push(Line::default());
        }
        lines.extend(planned);
        if let Some(reply) = &mut self.reply {
            let open = reply.text.open(options.columns, options.theme);
            if !open.is_empty() && !reply.is_begun {
                lines.push(Line::default());
            }
            lines.extend_from_slice(open);
        }
        if let Some(thinking) = &self.thinking {
            lines.push(Line::default());
            lines.extend(thinking.lines(options));
        }
        lines
    }

    /// The calls that are still to be told, a row each.
    fn planned(&self, options: RenderOptions, now_ms: u64) -> Vec<Line<'static>> {
        let mut lines: Vec<_> = self
            .planned
            .iter()
            .take(PLANNED_ROWS)
            .map(|card| card.head(options, now_ms))
            .collect();
        let more = self.planned.len() - lines.len();
        if more > 0 {
            lines.push(folded(&format!("and {more} more"), options));
        }
        lines
    }

    /// Lines of all that is kept, for looking back: so many of them or all, up from `below` rows above the end.
    pub(crate) fn lines_above(
        &mut self,
        below: usize,
        count: usize,
        options: RenderOptions,
        now_ms: u64,
    ) -> Lines {
        let mut last = Last::new(below, count);
        self.blocks(options, now_ms, |number, block| last.put_above(number, block));
        last.lines()
    }

    /// How many rows there are from a place on.
    pub(crate) fn rows_from(&mut self, place: Place, options: RenderOptions, now_ms: u64) -> usize {
        let mut rows = 0;
        self.blocks(options, now_ms, |number, block| {
            if number >= place.block {
                rows += rows_of(block);
            }
            if number == place.block {
                rows = rows.saturating_sub(place.row);
            }
            number > place.block
        });
        rows
    }

    /// Goes through all that is kept, block by block from the end, as long as more is wanted. What a block is numbered
    /// with stays the same, whatever comes before or after it.
    fn blocks(
        &mut self,
        options: RenderOptions,
        now_ms: u64,
        mut is_more_wanted: impl FnMut(i64, [&[Line<'static>]; 2]) -> bool,
    ) {
        let mut number = self.pushed;
        let planned = self.planned(options, now_ms);
        // After what is being received, which has up to two numbers.
        if !planned.is_empty() && !is_more_wanted(number + 2, [&planned, &[]]) {
            return;
        }
        if let Some(thinking) = &self.thinking {
            let number = number + i64::from(self.reply.is_some());
            if !is_more_wanted(number, [&thinking.lines(options), &[]]) {
                return;
            }
        }
        if let Some(reply) = &mut self.reply
            && !is_more_wanted(number, reply.all_lines(options))
        {
            return;
        }
        for placed in self.past.iter_mut().chain(&mut self.open).rev() {
            number -= 1;
            if !is_more_wanted(number, [&placed.lines(options, now_ms), &[]]) {
                return;
            }
        }
    }

    /// The last lines that were printed, so many of them or all, to be printed again: they are gone from the screen.
    pub(crate) fn printed(&mut self, count: usize, options: RenderOptions) -> Vec<Line<'static>> {
        for placed in &mut self.open {
            placed.item.start_over();
        }
        let own = self.reply.as_mut().map(|reply| reply.printed(count, options));
        let own = own.unwrap_or_default();
        let mut last = Last::new(0, count.max(own.len()));
        if !own.is_empty() {
            last.put_above(self.pushed, [&own, &[]]);
        }
        for placed in self.past.iter_mut().rev() {
            if !last.put_above(0, [&placed.lines(options, 0), &[]]) {
                break;
            }
        }
        last.lines().lines
    }

    /// All lines of all that is kept.
    pub(crate) fn all_lines(&mut self, options: RenderOptions) -> Vec<Line<'static>> {
        self.lines_above(0, usize::MAX, options, 0).lines
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

/// A row of the conversation: the same one, whatever comes before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// The number of its block.
    block: i64,
    /// Where it is in that, from the top.
    row: usize,
}

/// Lines of a conversation.
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line<'static>>,
    /// Where the first of them is.
    pub(crate) top: Place,
    /// How many rows are below them.
    pub(crate) below: usize,
}

/// The last lines of a conversation, gathered from the end, with space above every block.
struct Last {
    /// How many lines are still to be left out.
    skip: usize,
    /// How many more lines are wanted.
    room: usize,
    /// The lines, the last one first.
    lines: Vec<Line<'static>>,
    top: Place,
    below: usize,
}

impl Last {
    fn new(skip: usize, count: usize) -> Self {
        Self {
            skip,
            room: count,
            lines: Vec::new(),
            top: Place::default(),
            below: 0,
        }
    }

    /// Puts a block above all others; whether there is room for another. What is left out is only counted.
    fn put_above(&mut self, number: i64, block: [&[Line<'static>]; 2]) -> bool {
        let rows = rows_of(block);
        let skipped = self.skip.min(rows);
        let taken = self.room.min(rows - skipped);
        let space = Line::default();
        let [above, end] = block;
        let lines = end.iter().rev().chain(above.iter().rev()).chain([&space]);
        self.lines.extend(lines.skip(skipped).take(taken).cloned());
        self.skip -= skipped;
        self.below += skipped;
        self.room -= taken;
        self.top = Place {
            block: number,
            row: rows - skipped - taken,
        };
        self.room > 0
    }

    fn lines(mut self) -> Lines {
        self.lines.reverse();
        Lines {
            lines: self.lines,
            top: self.top,
            below: self.below,
        }
    }
}

/// How many rows a block takes, with the space above it.
fn rows_of([above, end]: [&[Line<'static>]; 2]) -> usize {
    1 + above.len() + end.len()
}
