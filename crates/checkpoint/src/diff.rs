//! Unified diffs for people, with the number of added and removed lines.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, DiffOp, TextDiff};

use windlass_core::text::boundary_before;

/// Time limit; a diff that takes longer becomes coarser.
const TIME: Duration = Duration::from_millis(300);
const CONTEXT: usize = 3;
/// Maximum size of a diff. A longer one is cut, since it is too long to read.
const MAX_BYTES: usize = 100_000;

/// Changes in one file.
pub struct Change {
    text: String,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    regions: Vec<Range<usize>>,
}

impl Change {
    /// Compares two versions of the file at `path`.
    pub fn between(path: &str, old: &str, new: &str) -> Self {
        let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
        let count = |tag| {
            diff.iter_all_changes()
                .filter(|change| change.tag() == tag)
                .count()
        };
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let mut text = diff
            .unified_diff()
            .context_radius(CONTEXT)
            .header(path, path)
            .to_string();
        if text.len() > MAX_BYTES {
            text.truncate(boundary_before(&text, MAX_BYTES));
            text.push_str("\n[… diff cut …]\n");
        }
        let groups = diff.grouped_ops(CONTEXT);
        let region = |group: &Vec<DiffOp>| {
            let (first, last) = (group.first()?, group.last()?);
            Some(first.new_range().start..last.new_range().end)
        };
        Self {
            text,
            added,
            removed,
            regions: groups.iter().filter_map(region).collect(),
        }
    }

    /// Returns the counts as text, such as `(+3 −1)`.
    pub fn counts(&self) -> String {
        format!("(+{} −{})", self.added, self.removed)
    }

    /// Returns the changed lines of the new text and their context, as index ranges.
    pub fn regions(&self) -> &[Range<usize>] {
        &self.regions
    }

    /// Returns the diff.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Converts the change into its diff.
    pub fn diff(self) -> String {
        self.text
    }

    /// Returns the diff and the line counts as the details of a tool result.
    pub fn details(&self, path: &str) -> Value {
        json!({ "path": path, "diff": self.text, "added": self.added, "removed": self.removed })
    }
}
