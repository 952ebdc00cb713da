//! Conversion of a byte offset to line and column.

use std::path::Path;

/// Start offsets of the lines of a text.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(index, _)| index + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Line of a byte offset, from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }

    /// `file:line:column`; columns count characters, from 1.
    pub(super) fn place(&self, path: &Path, byte: usize) -> String {
        let line = self.line(byte);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied()
            .unwrap_or_default();
        let before = self
            .text
            .get(start..byte)
            .or_else(|| self.text.get(start..))
            .unwrap_or_default();
        format!("{}:{line}:{}", path.display(), before.chars().count() + 1)
    }
}
