//! Coloured diffs.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::flow::{chop, without_tabs};
use crate::text::plain;
use crate::theme::{Theme, Tone};

/// Minimum width for a separate sign column; on narrower screens, lines continue below their sign.
const MIN_COLUMNS: usize = 4;

/// Renders a unified diff. Every line keeps its sign.
pub(crate) fn render(diff: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let set = |(part, line): (Part, &str)| set(part, line, columns, theme);
    parts(diff).into_iter().flat_map(set).collect()
}

/// Counts the lines a unified diff adds and removes.
pub(crate) fn counts(diff: &str) -> (usize, usize) {
    let parts = parts(diff);
    let count = |wanted: Part| parts.iter().filter(|(part, _)| *part == wanted).count();
    (count(Part::Added), count(Part::Removed))
}

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    File,
    Hunk,
    Added,
    Removed,
    Kept,
    /// A remark about the change, not part of it.
    Note,
}

fn parts(diff: &str) -> Vec<(Part, &str)> {
    let mut reading = Reading::default();
    let mut lines = diff.lines().peekable();
    let mut parts = Vec::new();
    while let Some(line) = lines.next() {
        let part = reading.part(line, lines.peek().copied());
        parts.push((part, line));
    }
    parts
}

/// Position in a diff. A removed line can look like a file header, so the lines of a hunk are counted.
#[derive(Default)]
struct Reading {
    old_left: usize,
    new_left: usize,
    /// True inside a hunk of unknown length.
    is_uncounted: bool,
    is_after_old_name: bool,
}

impl Reading {
    fn part(&mut self, line: &str, next: Option<&str>) -> Part {
        let is_after_old_name = std::mem::take(&mut self.is_after_old_name);
        if self.old_left + self.new_left > 0 {
            return self.counted(line);
        }
        if line.starts_with("@@") {
            let sizes = sizes(line);
            (self.old_left, self.new_left) = sizes.unwrap_or_default();
            self.is_uncounted = sizes.is_none();
            return Part::Hunk;
        }
        if line.starts_with("--- ") && next.is_some_and(|next| next.starts_with("+++ ")) {
            self.is_after_old_name = true;
            self.is_uncounted = false;
            return Part::File;
        }
        if is_after_old_name && line.starts_with("+++ ") {
            // Some diffs have no hunk headers at all.
            self.is_uncounted = true;
            return Part::File;
        }
        if ["diff ", "*** ", "Index: "]
            .iter()
            .any(|head| line.starts_with(head))
        {
            self.is_uncounted = false;
            return Part::File;
        }
        match line.chars().next() {
            Some('+') => Part::Added,
            Some('-') => Part::Removed,
            Some(' ') | None => Part::Kept,
            _ if self.is_uncounted => Part::Kept,
            _ => Part::Note,
        }
    }

    fn counted(&mut self, line: &str) -> Part {
        let (old, new, part) = match line.chars().next() {
            Some('+') => (0, 1, Part::Added),
            Some('-') => (1, 0, Part::Removed),
            Some('\\') => (0, 0, Part::Note),
            Some(' ') | None => (1, 1, Part::Kept),
            // A line outside any hunk: the diff was cut off here.
            Some(_) => (self.old_left, self.new_left, Part::Note),
        };
        self.old_left = self.old_left.saturating_sub(old);
        self.new_left = self.new_left.saturating_sub(new);
        part
    }
}

/// Parses the old and new line counts from a hunk header: `@@ -1,3 +1,4 @@`.
fn sizes(head: &str) -> Option<(usize, usize)> {
    let mut words = head.split_whitespace().skip(1);
    let mut size = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        match range.split_once(',') {
            Some((_, size)) => size.parse::<usize>().ok(),
            None => range.parse::<usize>().ok().map(|_| 1),
        }
    };
    Some((size('-')?, size('+')?))
}

fn set(part: Part, line: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let style = match part {
        Part::File => theme.style(Tone::Text).add_modifier(Modifier::BOLD),
        Part::Hunk | Part::Note => theme.style(Tone::Dim),
        Part::Added => theme.style(Tone::Added),
        Part::Removed => theme.style(Tone::Removed),
        Part::Kept => theme.style(Tone::Text),
    };
    let line = plain(line);
    let mut letters = line.chars();
    let sign = match part {
        Part::Added | Part::Removed | Part::Kept => letters.next(),
        Part::File | Part::Hunk | Part::Note => None,
    };
    // The sign is not part of the text, so tab stops are counted from behind it.
    let text = without_tabs(letters.as_str());
    let Some(sign) = sign else {
        return chop(&[Span::styled(text, style)], columns);
    };
    if columns < MIN_COLUMNS {
        return chop(&[Span::styled(format!("{sign}{text}"), style)], columns);
    }
    let mut lines = chop(&[Span::styled(text, style)], columns - 1);
    for (index, line) in lines.iter_mut().enumerate() {
        // Continuation rows must not look like they have a sign.
        let sign = if index == 0 { sign } else { ' ' };
        line.spans.insert(0, Span::styled(sign.to_string(), style));
    }
    lines
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
