//! The answer that is being received.

use ratatui::text::Line;

use super::item::Look;
use crate::markdown::Growing;

/// An answer that is being received.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) text: Growing,
    /// Whether a piece of it is in the scrollback already.
    pub(super) is_begun: bool,
}

impl Reply {
    /// The lines that were printed, so many of them or all, to be printed again. Those that can be printed by now and
    /// were not are among them.
    pub(super) fn printed(&mut self, count: usize, look: Look) -> Vec<Line<'static>> {
        if !self.is_begun {
            return Vec::new();
        }
        let fresh = self.text.settle(look.columns, look.theme).len();
        self.text = Growing::of(self.text.source());
        let mut lines = self.text.settle(look.columns, look.theme);
        let skip = lines.len().saturating_sub(count.max(fresh));
        lines.drain(..skip);
        lines
    }
}
