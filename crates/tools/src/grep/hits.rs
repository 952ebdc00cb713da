//! Collects the matches in one file.

use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use windlass_core::text::shorten;

const MAX_LINE_CHARS: usize = 300;

/// Matches in one file.
pub(super) struct Hits {
    pub(super) lines: Vec<Line>,
    /// Number of matches, including those not in `lines`.
    total: usize,
}

impl Hits {
    pub(super) fn total(&self) -> usize {
        self.total
    }
}

/// A line to show.
pub(super) enum Line {
    Match(u64, String),
    Around(u64, String),
    /// Marks lines that are not shown.
    Gap,
}

impl Line {
    pub(super) fn is_match(&self) -> bool {
        matches!(self, Self::Match(..))
    }

    pub(super) fn print(&self, path: &str) -> String {
        match self {
            Self::Match(number, text) => format!("{path}:{number}: {text}\n"),
            Self::Around(number, text) => format!("{path}-{number}- {text}\n"),
            Self::Gap => "--\n".to_owned(),
        }
    }
}

/// Receives the matches from the searcher.
pub(super) struct Collector<'a> {
    limit: usize,
    stopped: &'a dyn Fn() -> bool,
    hits: Hits,
    is_binary: bool,
}

impl<'a> Collector<'a> {
    /// Creates a collector that keeps the first `limit` matches and counts the rest.
    pub(super) fn new(limit: usize, stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            limit,
            stopped,
            hits: Hits {
                lines: Vec::new(),
                total: 0,
            },
            is_binary: false,
        }
    }

    /// Returns the matches; `None` if there are none in text.
    pub(super) fn into_hits(self) -> Option<Hits> {
        (self.hits.total > 0 && !self.is_binary).then_some(self.hits)
    }

    fn is_full(&self) -> bool {
        self.hits.total > self.limit
    }
}

impl Sink for &mut Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.hits.total += 1;
        if !self.is_full() {
            self.hits.lines.push(Line::Match(
                found.line_number().unwrap_or_default(),
                text(found.bytes()),
            ));
        }
        Ok(!(self.stopped)())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !self.is_full() {
            self.hits.lines.push(Line::Around(
                around.line_number().unwrap_or_default(),
                text(around.bytes()),
            ));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if !self.is_full() {
            self.hits.lines.push(Line::Gap);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

fn text(line: &[u8]) -> String {
    // A very long line is not worth decoding beyond the part that is shown.
    let (line, rest) = line.split_at(line.len().min(MAX_LINE_CHARS * 4 + 4));
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches(['\n', '\r']);
    let (kept, cut) = shorten(line, MAX_LINE_CHARS);
    if cut > 0 || !rest.is_empty() {
        format!("{kept}…")
    } else {
        kept.to_owned()
    }
}
