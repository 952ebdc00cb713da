//! The conversation as lines: for the scrollback, for the live area, and for scrolling back.

use ratatui::text::Line;

use super::card::folded;
use super::item::{Item, Placed, RenderOptions};
use super::{BESIDE, KEPT, Transcript};

/// Maximum number of planned calls shown.
const PLANNED_ROWS: usize = 8;

impl Transcript {
    /// Returns finished lines that are not in the scrollback yet.
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
        let is_begun = matches!(placed.item, Item::Answer { begun: true, .. });
        let own = placed.item.rest(options);
        let is_short_call = is_short_call(&placed.item, &own);
        if !(is_begun || (is_short_call && self.last_was_call)) {
            lines.push(Line::default());
        }
        self.last_was_call = is_short_call;
        lines.extend(own);
        self.past.push_back(placed);
        self.forget_older();
    }

    /// Drops items that were read for scrolling back.
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

    /// Returns unfinished lines, for the live area.
    pub(crate) fn live(&mut self, options: RenderOptions, now_ms: u64) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last_was_call = self.last_was_call;
        for placed in &mut self.open {
            let own = placed.lines(options, now_ms).into_owned();
            let is_short_call = is_short_call(&placed.item, &own);
            if !(is_short_call && last_was_call) {
                lines.push(Line::default());
            }
            last_was_call = is_short_call;
            lines.extend(own);
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

    /// Renders the planned calls, one row each.
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

    /// Returns up to `count` lines for scrolling back, ending `below` rows above the end.
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

    /// Number of rows from a place to the end.
    pub(crate) fn rows_from(&mut self, place: Place, options: RenderOptions, now_ms: u64) -> usize {
        let mut rows = 0;
        self.blocks(options, now_ms, |number, block| {
            if number >= place.block {
                rows += block.rows();
            }
            if number == place.block {
                rows = rows.saturating_sub(place.row);
            }
            number > place.block
        });
        rows
    }

    /// Visits all blocks from the end while `is_more_wanted` returns true. The number of a block stays the
    /// same, whatever is added before or after it.
    fn blocks(
        &mut self,
        options: RenderOptions,
        now_ms: u64,
        mut is_more_wanted: impl FnMut(i64, Block<'_>) -> bool,
    ) {
        let mut number = self.pushed;
        let planned = self.planned(options, now_ms);
        // Planned calls come after the streaming reply, which uses up to two numbers.
        if !planned.is_empty() && !is_more_wanted(number + 2, Block::of(&planned)) {
            return;
        }
        if let Some(thinking) = &self.thinking {
            let number = number + i64::from(self.reply.is_some());
            if !is_more_wanted(number, Block::of(&thinking.lines(options))) {
                return;
            }
        }
        if let Some(reply) = &mut self.reply
            && !is_more_wanted(
                number,
                Block {
                    parts: reply.all_lines(options),
                    is_close: false,
                },
            )
        {
            return;
        }
        let items = self.past.iter_mut().chain(&mut self.open).rev();
        from_the_end(items, options, now_ms, |block| {
            number -= 1;
            is_more_wanted(number, block)
        });
    }

    /// Returns up to `count` of the last printed lines, to print them again after the screen was cleared.
    pub(crate) fn printed(&mut self, count: usize, options: RenderOptions) -> Vec<Line<'static>> {
        for placed in &mut self.open {
            placed.item.start_over();
        }
        let own = self.reply.as_mut().map(|reply| reply.printed(count, options));
        let own = own.unwrap_or_default();
        let mut last = Last::new(0, count.max(own.len()));
        if !own.is_empty() {
            last.put_above(self.pushed, Block::of(&own));
        }
        from_the_end(self.past.iter_mut().rev(), options, 0, |block| {
            last.put_above(0, block)
        });
        last.lines().lines
    }

    /// Returns up to `count` of the last printed lines; none while an answer is being printed.
    pub(crate) fn recent(&mut self, count: usize, options: RenderOptions) -> Vec<Line<'static>> {
        let is_begun = |placed: &Placed| matches!(placed.item, Item::Answer { begun: true, .. });
        if self.reply.as_ref().is_some_and(|reply| reply.is_begun) || self.open.iter().any(is_begun) {
            return Vec::new();
        }
        let mut last = Last::new(0, count);
        from_the_end(self.past.iter_mut().rev(), options, 0, |block| {
            last.put_above(0, block)
        });
        last.lines().lines
    }

    /// Returns all lines.
    pub(crate) fn all_lines(&mut self, options: RenderOptions) -> Vec<Line<'static>> {
        self.lines_above(0, usize::MAX, options, 0).lines
    }

    /// Drops all cached lines after the options changed.
    pub(crate) fn forget_lines(&mut self) {
        for placed in self.past.iter_mut().chain(&mut self.open) {
            placed.forget_lines();
        }
        if let Some(reply) = &mut self.reply {
            reply.forget_lines();
        }
    }
}

/// True for a call without output: between two of those there is no blank line.
fn is_short_call(item: &Item, lines: &[Line<'_>]) -> bool {
    matches!(item, Item::Call(_)) && lines.len() == 1
}

/// Visits items from the last to the first while `is_more_wanted` returns true.
fn from_the_end<'a>(
    mut items: impl Iterator<Item = &'a mut Placed>,
    options: RenderOptions,
    now_ms: u64,
    mut is_more_wanted: impl FnMut(Block<'_>) -> bool,
) {
    let mut next = items.next();
    while let Some(placed) = next {
        next = items.next();
        let is_short = |placed: &mut Placed| {
            matches!(placed.item, Item::Call(_)) && placed.lines(options, now_ms).len() == 1
        };
        let is_close = next.as_mut().is_some_and(|above| is_short(above)) && is_short(placed);
        let lines = placed.lines(options, now_ms);
        let parts: [&[Line<'static>]; 2] = [&lines, &[]];
        if !is_more_wanted(Block { parts, is_close }) {
            return;
        }
    }
}

/// Lines of an item.
#[derive(Clone, Copy)]
struct Block<'a> {
    parts: [&'a [Line<'static>]; 2],
    /// True if no blank line separates it from the item above.
    is_close: bool,
}

impl<'a> Block<'a> {
    fn of(lines: &'a [Line<'static>]) -> Self {
        Self {
            parts: [lines, &[]],
            is_close: false,
        }
    }

    /// Number of rows, with the blank line above.
    fn rows(self) -> usize {
        let [above, end] = self.parts;
        usize::from(!self.is_close) + above.len() + end.len()
    }
}

/// A row of the conversation, independent of what is added before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Number of the block.
    block: i64,
    /// Row within the block, from the top.
    row: usize,
}

/// A range of lines of a conversation.
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line<'static>>,
    /// Place of the first line.
    pub(crate) top: Place,
    /// Number of rows below the last line.
    pub(crate) below: usize,
}

/// Collects the last lines of a conversation from the end.
struct Last {
    /// Number of lines still to skip.
    skip: usize,
    /// Number of lines still wanted.
    room: usize,
    /// Collected lines, the last one first.
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

    /// Adds a block above all others. Returns true if there is room for more. Skipped lines are only counted.
    fn put_above(&mut self, number: i64, block: Block<'_>) -> bool {
        let rows = block.rows();
        let skipped = self.skip.min(rows);
        let taken = self.room.min(rows - skipped);
        let space = Line::default();
        let [above, end] = block.parts;
        let space = (!block.is_close).then_some(&space);
        let lines = end.iter().rev().chain(above.iter().rev()).chain(space);
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
