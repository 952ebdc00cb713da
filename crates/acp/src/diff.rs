//! Unified diffs as the protocol shows them: an old and a new text for each changed region of a file.

use std::path::Path;

use serde_json::{Value, json};

/// Maximum number of regions shown of one file.
const MAX_REGIONS: usize = 50;

/// Returns the `diff` contents of one file, and the line of its first change. `diff` is a unified diff; headers are
/// ignored. A new file has no old text.
pub(crate) fn contents(path: &Path, diff: &str) -> (Vec<Value>, Option<u64>) {
    let mut regions: Vec<Region> = Vec::new();
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ ") {
            if regions.len() == MAX_REGIONS {
                break;
            }
            regions.push(Region::begin(header));
            continue;
        }
        let Some(region) = regions.last_mut() else {
            continue;
        };
        region.add(line);
    }
    let line = regions.first().map(|region| region.line);
    let content = |region: Region| {
        let old = (!region.is_new).then_some(region.old);
        json!({ "type": "diff", "path": path, "oldText": old, "newText": region.new })
    };
    (regions.into_iter().map(content).collect(), line)
}

/// A changed region with its context.
struct Region {
    old: String,
    new: String,
    /// Line of the first change in the new text.
    line: u64,
    has_changed: bool,
    /// True if there is no old text at all.
    is_new: bool,
}

impl Region {
    /// Reads a header such as `-1,4 +1,5 @@`.
    fn begin(header: &str) -> Self {
        let mut ranges = header.split_whitespace();
        let old = ranges.next().unwrap_or_default();
        let new = ranges.next().unwrap_or_default();
        let start = new.trim_start_matches('+').split(',').next();
        Self {
            old: String::new(),
            new: String::new(),
            line: start.and_then(|start| start.parse().ok()).unwrap_or(1).max(1),
            has_changed: false,
            is_new: old == "-0,0",
        }
    }

    fn add(&mut self, line: &str) {
        let mut signs = line.chars();
        let sign = signs.next();
        let text = signs.as_str();
        match sign {
            Some('-') => push(&mut self.old, text),
            Some('+') => push(&mut self.new, text),
            Some(' ') | None => {
                push(&mut self.old, text);
                push(&mut self.new, text);
            }
            // "\ No newline at end of file", or the note that a diff was cut.
            Some(_) => return,
        }
        let is_change = matches!(sign, Some('-' | '+'));
        if !self.has_changed && !is_change {
            self.line += 1;
        }
        self.has_changed |= is_change;
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ACP-1: each region of a diff has its old and its new text, and a new file has no old one.
    #[test]
    fn regions_have_both_texts() {
        let diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -10 +10,2 @@\n-x\n+y\n+z\n\\ No newline at end of file\n";
        let (contents, line) = contents(Path::new("/p/a"), diff);
        let expected = [
            json!({ "type": "diff", "path": "/p/a", "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n" }),
            json!({ "type": "diff", "path": "/p/a", "oldText": "x\n", "newText": "y\nz\n" }),
        ];
        assert_eq!((contents.as_slice(), line), (expected.as_slice(), Some(2)));
        let (contents, _) = super::contents(Path::new("/n"), "@@ -0,0 +1 @@\n+new\n");
        assert_eq!(
            contents,
            [json!({ "type": "diff", "path": "/n", "oldText": null, "newText": "new\n" })]
        );
    }

    #[test]
    fn other_text_is_no_diff() {
        assert_eq!(
            contents(Path::new("/a"), "[… diff left out …]\n"),
            (Vec::new(), None)
        );
    }
}
