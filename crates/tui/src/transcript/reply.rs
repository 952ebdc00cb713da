//! The answer being streamed.

use ratatui::text::Line;

use super::item::{Placed, RenderOptions};
use crate::markdown::StreamingMarkdown;
use crate::theme::Theme;

/// An answer that is still streaming.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) text: StreamingMarkdown,
    /// True if part of it is already in the scrollback.
    pub(super) is_begun: bool,
    /// A thought that arrived too late to be shown above the answer.
    pub(super) late: Option<Placed>,
    /// The whole answer, while the user scrolls back.
    seen: Option<Seen>,
}

/// An answer and its finished lines, which are laid out once.
struct Seen {
    columns: usize,
    theme: Theme,
    text: StreamingMarkdown,
    settled: Vec<Line<'static>>,
}

impl Reply {
    /// Returns all lines for scrolling back: finished ones, then open ones. The cost depends on the open
    /// block, not on the whole answer.
    pub(super) fn all_lines(&mut self, options: RenderOptions) -> [&[Line<'static>]; 2] {
        let RenderOptions { columns, theme, .. } = options;
        let is_current = |seen: &Seen| seen.columns == columns && seen.theme == theme;
        let seen = self.seen.take().filter(is_current).unwrap_or_else(|| Seen {
            columns,
            theme,
            text: StreamingMarkdown::default(),
            settled: Vec::new(),
        });
        let seen = self.seen.insert(seen);
        let known = seen.text.source().len();
        seen.text
            .push(self.text.source().get(known..).unwrap_or_default());
        seen.settled.extend(seen.text.settle(columns, theme));
        [&seen.settled, seen.text.open(columns, theme)]
    }

    /// Drops the cached lines.
    pub(super) fn forget_lines(&mut self) {
        self.seen = None;
    }

    /// Returns up to `count` printed lines, to print them again. Lines that became printable in the meantime
    /// are always included.
    pub(super) fn printed(&mut self, count: usize, options: RenderOptions) -> Vec<Line<'static>> {
        if !self.is_begun {
            return Vec::new();
        }
        let fresh = self.text.settle(options.columns, options.theme).len();
        self.text = StreamingMarkdown::of(self.text.source());
        let mut lines = self.text.settle(options.columns, options.theme);
        let skip = lines.len().saturating_sub(count.max(fresh));
        lines.drain(..skip);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Palette;

    const OPTIONS: RenderOptions = RenderOptions {
        columns: 40,
        theme: Theme {
            palette: Palette::None,
            ascii: false,
        },
        unfolded: false,
        is_unfoldable: true,
    };

    fn lines(reply: &mut Reply, options: RenderOptions) -> Vec<String> {
        let lines = reply.all_lines(options);
        lines.concat().iter().map(ToString::to_string).collect()
    }

    /// UI-2: the finished lines of a streaming answer are laid out once for scrolling back, and again for
    /// another width.
    #[test]
    fn finished_lines_are_set_once() {
        let mut reply = Reply::default();
        reply.text.push("One.\n\nTwo.\n\nThr");
        assert_eq!(lines(&mut reply, OPTIONS), ["One.", "", "Two.", "", "Thr"]);
        // Printing meanwhile does not affect scrolling back.
        reply.text.settle(OPTIONS.columns, OPTIONS.theme);
        if let Some(first) = reply.seen.as_mut().and_then(|seen| seen.settled.first_mut()) {
            *first = Line::raw("as it was set");
        }
        reply.text.push("ee and\n\nfour");
        let all = ["as it was set", "", "Two.", "", "Three and", "", "four"];
        assert_eq!(lines(&mut reply, OPTIONS), all);
        let narrow = RenderOptions {
            columns: 5,
            ..OPTIONS
        };
        let all = ["One.", "", "Two.", "", "Three", "and", "", "four"];
        assert_eq!(lines(&mut reply, narrow), all);
    }
}
