//! Unified diffs as hunks and lines, so that a page draws a diff without parsing text.

use schemars::JsonSchema;
use serde::Serialize;

/// A part of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Hunk {
    /// Number of the first line before the change.
    pub(crate) old_start: u64,
    /// Number of the first line after the change.
    pub(crate) new_start: u64,
    /// The lines.
    pub(crate) lines: Vec<DiffLine>,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DiffLine {
    /// Kind of line.
    pub(crate) kind: LineKind,
    /// Text without the mark at its start.
    pub(crate) text: String,
}

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    /// Unchanged.
    Context,
    /// Added.
    Added,
    /// Removed.
    Removed,
    /// A remark, such as a missing newline at the end.
    Note,
}

/// Parses a unified diff. Lines before the first hunk are left out.
pub(crate) fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in diff.split_terminator('\n') {
        if let Some((old_start, new_start)) = header(line) {
            hunks.push(Hunk {
                old_start,
                new_start,
                lines: Vec::new(),
            });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let (kind, text) = match line.chars().next() {
            Some('+') => (LineKind::Added, line.get(1..)),
            Some('-') => (LineKind::Removed, line.get(1..)),
            Some(' ') => (LineKind::Context, line.get(1..)),
            None => (LineKind::Context, Some("")),
            Some(_) => (LineKind::Note, Some(line)),
        };
        hunk.lines.push(DiffLine {
            kind,
            text: text.unwrap_or_default().to_owned(),
        });
    }
    hunks
}

/// Parses `@@ -1,3 +1,4 @@`.
fn header(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let start = |range: &str| range.split(',').next()?.parse().ok();
    Some((start(old)?, start(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SRV-1: a diff is read line by line, also where the lines look like headers.
    #[test]
    fn a_diff_has_hunks() {
        let text = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+++new\n@@ -9 +9,0 @@\n-@@ gone\n\\ No newline at end of file\n";
        let found = hunks(text);
        let shown: Vec<String> = found
            .iter()
            .flat_map(|hunk| {
                let lines = hunk.lines.iter();
                lines.map(move |line| format!("{} {} {:?} {}", hunk.old_start, hunk.new_start, line.kind, line.text))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1 1 Context same",
                "1 1 Removed old",
                "1 1 Added ++new",
                "9 9 Removed @@ gone",
                "9 9 Note \\ No newline at end of file",
            ]
        );
    }
}
