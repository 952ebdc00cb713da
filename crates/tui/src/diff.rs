//! Coloured diffs: line numbers, syntax highlighting, and marks where a line changed.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::flow::{chop, without_tabs};
use crate::markdown::Highlighter;
use crate::text::plain;
use crate::theme::{Theme, Tone};

/// Minimum width for a separate sign column; on narrower screens, lines continue below their sign.
const MIN_COLUMNS: usize = 4;
/// Minimum width for line numbers.
const NUMBERS_FROM: usize = 32;
/// Maximum number of lines in a replaced block that are compared one by one.
const MAX_PAIRS: usize = 200;

/// Renders a unified diff. Every line keeps its sign.
pub(crate) fn render(diff: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    render_as(diff, "", columns, theme)
}

/// Renders a unified diff of a file in this language. A file header names another one.
pub(crate) fn render_as(diff: &str, language: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let rows = numbered(parts(diff));
    let marks = marks(&rows);
    let widest = rows.iter().filter_map(|row| row.number).max().unwrap_or_default();
    let gutter = match widest {
        0 => 0,
        _ if columns < NUMBERS_FROM => 0,
        widest => widest.to_string().len() + 1,
    };
    let mut painter = Painter {
        columns,
        gutter,
        theme,
        colouring: Highlighter::new(language, theme),
    };
    let mut lines = Vec::new();
    for (index, (row, mark)) in rows.iter().zip(marks).enumerate() {
        let before = index.checked_sub(1).and_then(|before| rows.get(before));
        match heading(row, before, rows.get(index + 1), gutter > 0) {
            Some(Heading::Left) => painter.begin(row),
            Some(Heading::Brief(text)) => {
                painter.begin(row);
                let style = painter.style(row.part);
                lines.extend(chop(&[Span::styled(without_tabs(&plain(&text)), style)], columns));
            }
            None => lines.extend(painter.row(row, mark)),
        }
    }
    lines
}

/// A header that is left out, or has a shorter form.
enum Heading {
    Left,
    Brief(String),
}

/// Shortens the headers of a diff: a name that stands there twice is shown once, and beside line numbers the ranges
/// of a hunk say nothing new.
fn heading(
    row: &Row<'_>,
    before: Option<&Row<'_>>,
    after: Option<&Row<'_>>,
    is_numbered: bool,
) -> Option<Heading> {
    let old = |row: &Row<'_>| row.line.strip_prefix("--- ").map(str::to_owned);
    let new = |row: &Row<'_>| row.line.strip_prefix("+++ ").map(str::to_owned);
    match row.part {
        Part::File if old(row).is_some() => {
            let is_double = after.is_some_and(|after| after.part == Part::File && new(after) == old(row));
            is_double.then_some(Heading::Left)
        }
        Part::File => {
            let name = new(row)?;
            let is_double =
                before.is_some_and(|before| before.part == Part::File && old(before).as_ref() == Some(&name));
            is_double.then_some(Heading::Brief(name))
        }
        Part::Hunk if is_numbered && starts(row.line).is_some() => {
            let within = row.line.splitn(3, "@@").nth(2).unwrap_or_default().trim();
            let is_first = before.is_none_or(|before| matches!(before.part, Part::File | Part::Note));
            match (is_first, within) {
                (true, "") => Some(Heading::Left),
                (_, within) => Some(Heading::Brief(format!("… {within}").trim_end().to_owned())),
            }
        }
        _ => None,
    }
}

/// Returns the language of a file, by its extension.
pub(crate) fn language_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or(name, |(_, extension)| extension);
    extension.split([':', '\t', ' ']).next().unwrap_or_default()
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

/// A line of a diff and its number in the file: the new one, or the old one of a removed line.
struct Row<'a> {
    part: Part,
    line: &'a str,
    number: Option<usize>,
}

fn numbered<'a>(parts: Vec<(Part, &'a str)>) -> Vec<Row<'a>> {
    let mut next: Option<(usize, usize)> = None;
    let row = |(part, line): (Part, &'a str)| {
        let number = match (part, &mut next) {
            (Part::Hunk, next) => {
                *next = starts(line);
                None
            }
            (Part::Added, Some((_, new))) => Some(std::mem::replace(new, *new + 1)),
            (Part::Removed, Some((old, _))) => Some(std::mem::replace(old, *old + 1)),
            (Part::Kept, Some((old, new))) => {
                *old += 1;
                Some(std::mem::replace(new, *new + 1))
            }
            (Part::File, next) => {
                *next = None;
                None
            }
            _ => None,
        };
        Row { part, line, number }
    };
    parts.into_iter().map(row).collect()
}

/// Parses the first old and new line numbers from a hunk header.
fn starts(head: &str) -> Option<(usize, usize)> {
    let mut words = head.split_whitespace().skip(1);
    let mut start = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        range.split(',').next()?.parse::<usize>().ok()
    };
    Some((start('-')?, start('+')?))
}

/// Bytes of a line, without its sign, that differ from the line it replaces or that replaces it.
type Mark = Option<(usize, usize)>;

/// Compares removed lines with the added lines that follow them, one by one.
fn marks(rows: &[Row<'_>]) -> Vec<Mark> {
    let mut marks = vec![None; rows.len()];
    let mut at = 0;
    while at < rows.len() {
        let run = |from: usize, part: Part| {
            let rest = rows.get(from..).unwrap_or_default();
            rest.iter().take_while(|row| row.part == part).count()
        };
        let removed = run(at, Part::Removed);
        let added = run(at + removed, Part::Added);
        if removed == added && (1..=MAX_PAIRS).contains(&removed) {
            for index in at..at + removed {
                let text = |index: usize| {
                    rows.get(index)
                        .and_then(|row| row.line.get(1..))
                        .unwrap_or_default()
                };
                let (old, new) = differing(text(index), text(index + removed));
                if let Some(mark) = marks.get_mut(index) {
                    *mark = old;
                }
                if let Some(mark) = marks.get_mut(index + removed) {
                    *mark = new;
                }
            }
        }
        at += (removed + added).max(1);
    }
    marks
}

/// Returns the middle of two lines that have a start or an end in common.
fn differing(old: &str, new: &str) -> (Mark, Mark) {
    let same = |(a, b): &(char, char)| a == b;
    let start: usize = old
        .chars()
        .zip(new.chars())
        .take_while(same)
        .map(|(a, _)| a.len_utf8())
        .sum();
    let (rest, other) = (
        old.get(start..).unwrap_or_default(),
        new.get(start..).unwrap_or_default(),
    );
    let pairs = rest.chars().rev().zip(other.chars().rev());
    let end: usize = pairs.take_while(same).map(|(a, _)| a.len_utf8()).sum();
    let common = old.get(..start).unwrap_or_default().trim().len() + end;
    // Lines that share next to nothing are different as a whole.
    if common * 3 < old.len().min(new.len()) {
        return (None, None);
    }
    let mark = |line: &str| Some((start, line.len() - end)).filter(|(from, to)| from < to);
    (mark(old), mark(new))
}

struct Painter {
    columns: usize,
    /// Columns of the line numbers; 0 for none.
    gutter: usize,
    theme: Theme,
    colouring: Highlighter,
}

impl Painter {
    fn row(&mut self, row: &Row<'_>, mark: Mark) -> Vec<Line<'static>> {
        let theme = self.theme;
        let style = self.style(row.part);
        if matches!(row.part, Part::File | Part::Hunk) {
            self.begin(row);
        }
        let line = plain(row.line);
        let mut letters = line.chars();
        let sign = match row.part {
            Part::Added | Part::Removed | Part::Kept => letters.next(),
            Part::File | Part::Hunk | Part::Note => None,
        };
        let text = letters.as_str();
        let Some(sign) = sign else {
            return chop(&[Span::styled(without_tabs(text), style)], self.columns);
        };
        // The sign is not part of the text, so tab stops are counted from behind it.
        let room = self.columns.saturating_sub(self.gutter);
        if room < MIN_COLUMNS {
            return chop(
                &[Span::styled(format!("{sign}{}", without_tabs(text)), style)],
                self.columns,
            );
        }
        let is_same = row.line.get(1..) == Some(text);
        let spans = self.spans(row.part, text, mark.filter(|_| is_same), style);
        let tint = theme.tint(row.part == Part::Added, row.part == Part::Removed);
        let mut lines = chop(&spans, room - 1);
        for (index, line) in lines.iter_mut().enumerate() {
            // Continuation rows must not look like they have a sign.
            let sign = if index == 0 { sign } else { ' ' };
            line.spans.insert(0, Span::styled(sign.to_string(), style));
            if self.gutter > 0 {
                let number = row.number.filter(|_| index == 0);
                let number = number.map(|number| number.to_string()).unwrap_or_default();
                let number = format!("{number:>width$} ", width = self.gutter - 1);
                line.spans.insert(0, Span::styled(number, theme.style(Tone::Dim)));
            }
            if let Some(tint) = tint {
                let used: usize = line
                    .spans
                    .iter()
                    .map(|span| crate::text::width(&span.content))
                    .sum();
                line.spans
                    .push(Span::raw(" ".repeat(self.columns.saturating_sub(used))));
                let is_marked = |span: &Span<'_>| span.style.bg.is_some();
                line.spans
                    .iter_mut()
                    .filter(|span| !is_marked(span))
                    .for_each(|span| {
                        span.style = span.style.bg(tint);
                    });
            }
        }
        lines
    }

    fn style(&self, part: Part) -> Style {
        let theme = self.theme;
        match part {
            Part::File => theme.style(Tone::Text).add_modifier(Modifier::BOLD),
            Part::Hunk | Part::Note => theme.style(Tone::Dim),
            Part::Added => theme.style(Tone::Added),
            Part::Removed => theme.style(Tone::Removed),
            Part::Kept => theme.style(Tone::Text),
        }
    }

    /// A new file or hunk starts: what the lines before it opened is closed.
    fn begin(&mut self, row: &Row<'_>) {
        if row.part == Part::File {
            let path = row.line.split_whitespace().nth(1).unwrap_or_default();
            let language = language_of(path);
            self.colouring = Highlighter::new(language, self.theme);
        } else {
            self.colouring.reset();
        }
    }

    /// Colours a line. Removed lines are not part of the file any more and have one colour.
    fn spans(&mut self, part: Part, text: &str, mark: Mark, style: Style) -> Vec<Span<'static>> {
        let theme = self.theme;
        let coloured = match part {
            Part::Removed => None,
            _ => self.colouring.spans(text),
        };
        let Some((from, to)) = mark else {
            return coloured.unwrap_or_else(|| vec![Span::styled(without_tabs(text), style)]);
        };
        // Tabs become spaces, so the marked bytes are counted in the text that is shown.
        let place = |at: usize| without_tabs(text.get(..at).unwrap_or_default()).len();
        let (from, to) = (place(from), place(to));
        let marked = theme.changed(part == Part::Added);
        let mut spans = Vec::new();
        let mut at = 0;
        for span in coloured.unwrap_or_else(|| vec![Span::styled(without_tabs(text), style)]) {
            let content = span.content.as_ref();
            let cut = |offset: usize| offset.saturating_sub(at).min(content.len());
            for (piece, is_marked) in [
                (content.get(..cut(from)), false),
                (content.get(cut(from)..cut(to)), true),
                (content.get(cut(to)..), false),
            ] {
                let piece = piece.unwrap_or_default();
                if !piece.is_empty() {
                    let style = if is_marked {
                        span.style.patch(marked)
                    } else {
                        span.style
                    };
                    spans.push(Span::styled(piece.to_owned(), style));
                }
            }
            at += content.len();
        }
        spans
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
