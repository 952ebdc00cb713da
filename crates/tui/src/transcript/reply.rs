//! The answer that is being received.

use ratatui::text::Line;

use super::item::{Placed, RenderOptions};
use crate::markdown::StreamingMarkdown;
use crate::theme::Theme;

/// An answer that is being received.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) text: StreamingMarkdown,
    /// Whether a piece of it is in the scrollback already.
    pub(super) is_begun: bool,
    /// A thought that was told too late to stand above it.
    pub(super) late: Option<Placed>,
    /// All of it, while somebody looks back.
    seen: Option<Seen>,
}

/// An answer and its finished lines, which are set once.
struct Seen {
    columns: usize,
    theme: Theme,
    text: StreamingMarkdown,
    settled: Vec<Line<'static>>,
}

impl Reply {
    /// All of its lines, those that are finished and those that are not, for looking back. What this costs depends on the
    /// open block and not on the whole answer.
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

    /// Nobody looks back any more, or with another look.
    pub(super) fn forget_lines(&mut self) {
        self.seen = None;
    }

    /// The lines that were printed, so many of them or all, to be printed again. Those that can be printed by now and
    /// were not are among them.
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

    /// UI-2: while an answer is received, its finished lines are set once for looking back; for another width they are
    /// set again.
    #[test]
    fn finished_lines_are_set_once() {
        let mut reply = Reply::default();
        reply.text.push("One.\n\nTwo.\n\nThr");
        assert_eq!(lines(&mut reply, OPTIONS), ["One.", "", "Two.", "", "Thr"]);
        // Printing meanwhile changes nothing about looking back.
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
