//! A tool call on screen: its title, progress and result.

use ratatui::text::{Line, Span};
use serde_json::Value;
use windlass_api::{CallId, DENIED_TEXT, StepStatus, is_own_call};
use windlass_core::text::count;

use super::item::{RenderOptions, SHORT_COLUMNS};
use crate::diff;
use crate::flow::without_tabs;
use crate::text::{cut, one_line, plain, wrap};
use crate::theme::Tone;

/// Maximum size of running output kept, in bytes.
const TAIL: usize = 8 * 1024;
/// Maximum size of a result kept, in bytes.
const RESULT: usize = 16 * 1024;
/// Maximum number of running output lines shown.
const LIVE_ROWS: usize = 5;
/// Number of result lines shown at either end.
const ENDS: usize = 3;
/// Same for commands run by the user.
const OWN_ENDS: usize = 20;
/// Maximum number of diff lines shown.
const DIFF_ROWS: usize = 24;
/// Result of a command that printed nothing.
const NO_OUTPUT: &str = "(no output)";
/// Tools whose results are meant for the model: only the number of lines is shown.
const QUIET: &[&str] = &[
    "read_file",
    "list_directory",
    "grep",
    "glob",
    "tool_output",
    "recall",
];

/// A tool call.
pub(crate) struct Card {
    call: CallId,
    name: String,
    title: String,
    state: State,
    since_ms: u64,
    duration_ms: u64,
    /// End of the output so far.
    tail: String,
    result: String,
    diff: Option<Diff>,
    /// Number of lines that were dropped.
    left_out: usize,
    todo: Vec<(String, String)>,
}

struct Diff {
    text: String,
    language: String,
    added: usize,
    removed: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not started yet.
    Planned,
    Running,
    Done,
    Failed,
}

impl Card {
    pub(crate) fn new(call: CallId, title: &str, now_ms: u64) -> Self {
        Self {
            call,
            name: String::new(),
            title: one_line(title),
            state: State::Planned,
            since_ms: now_ms,
            duration_ms: 0,
            tail: String::new(),
            result: String::new(),
            diff: None,
            left_out: 0,
            todo: Vec::new(),
        }
    }

    pub(crate) fn is(&self, call: &CallId) -> bool {
        self.call == *call
    }

    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.state, State::Done | State::Failed)
    }

    /// Starts the call, unless it is already running.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        if self.state == State::Planned {
            self.state = State::Running;
            self.since_ms = now_ms;
        }
    }

    pub(crate) fn titled(&mut self, title: &str) {
        self.title = one_line(title);
    }

    pub(crate) fn called(&mut self, name: &str) {
        self.name = one_line(name);
    }

    pub(crate) fn output(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() > 2 * TAIL {
            let skip = self.tail.len() - TAIL;
            let begin = (skip..self.tail.len()).find(|index| self.tail.is_char_boundary(*index));
            self.tail = self.tail.split_off(begin.unwrap_or(self.tail.len()));
        }
    }

    /// Sets the result. [`Self::complete`] sets the final state.
    pub(crate) fn result(&mut self, content: &str, details: Option<&Value>) {
        self.result = match content {
            // The end of the turn says who denied it.
            DENIED_TEXT => "not run".to_owned(),
            content => head(content, RESULT),
        };
        let Some(details) = details else { return };
        self.diff = diff_of(details).map(|diff| {
            let text = head(without_name(&diff), RESULT);
            let (added, removed) = diff::counts(&text);
            let named = diff_of(details).unwrap_or_default();
            let named = named.lines().find_map(|line| line.strip_prefix("+++ "));
            let language = diff::language_of(named.unwrap_or_default()).to_owned();
            Diff {
                text,
                language,
                added,
                removed,
            }
        });
        let items = details.get("items").and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            let text = |key: &str| item.get(key).and_then(Value::as_str).map(one_line);
            if let (Some(what), Some(status)) = (text("text"), text("status")) {
                self.todo.push((what, status));
            }
        }
    }

    pub(crate) fn complete(&mut self, status: StepStatus, duration_ms: u64) {
        self.state = match status {
            StepStatus::Completed => State::Done,
            StepStatus::Error => State::Failed,
        };
        self.duration_ms = duration_ms;
        self.tail = String::new();
    }

    /// Marks an unfinished call as failed, at the end of the turn.
    pub(crate) fn abandon(&mut self) {
        if !self.is_finished() {
            self.state = State::Failed;
        }
    }

    /// Drops most of the result, but keeps the number of lines.
    pub(crate) fn shorten(&mut self) {
        if let Some(diff) = &mut self.diff {
            self.left_out += diff.text.lines().count();
            diff.text = String::new();
        }
        let result = plain(&std::mem::take(&mut self.result));
        if self.diff.is_some() || !self.todo.is_empty() {
            return;
        }
        let mut lines = result.lines();
        let first = lines.by_ref().take(ENDS);
        let first = first.map(|line| cut(&without_tabs(line), SHORT_COLUMNS));
        self.result = first.collect::<Vec<_>>().join("\n");
        self.left_out += lines.count();
    }

    pub(crate) fn lines(&self, options: RenderOptions, now_ms: u64) -> Vec<Line<'static>> {
        let mut lines = vec![self.head(options, now_ms)];
        if !self.is_finished() {
            lines.extend(self.live(options));
            return lines;
        }
        if let Some(diff) = &self.diff {
            let most = if options.unfolded { usize::MAX } else { DIFF_ROWS };
            let all = diff::render_as(
                &diff.text,
                &diff.language,
                options.columns.saturating_sub(2).max(1),
                options.theme,
            );
            let more = all.len().saturating_sub(most) + self.left_out;
            lines.extend(all.into_iter().take(most).map(indented));
            if more > 0 {
                lines.push(more_lines(more, options));
            }
        } else if !self.todo.is_empty() {
            lines.extend(self.todo.iter().map(|item| todo(item, options)));
        } else {
            lines.extend(self.outcome(options));
        }
        lines
    }

    /// Renders the title row.
    pub(crate) fn head(&self, options: RenderOptions, now_ms: u64) -> Line<'static> {
        let theme = options.theme;
        let (sign, tone) = match self.state {
            State::Planned => (theme.sign("· ", ". "), Tone::Dim),
            State::Running => (theme.sign("◌ ", "- "), Tone::Accent),
            State::Done => (theme.sign("● ", "* "), Tone::Good),
            State::Failed => (theme.sign("✗ ", "x "), Tone::Bad),
        };
        let took = match self.state {
            State::Running => now_ms.saturating_sub(self.since_ms),
            _ => self.duration_ms,
        };
        let mut after = String::new();
        if let Some(diff) = &self.diff {
            after.push_str(&format!(" (+{} -{})", diff.added, diff.removed));
        }
        match self.state {
            State::Running if took >= 1_000 => after.push_str(&format!(" {}", seconds(took))),
            State::Done | State::Failed if took >= 100 => after.push_str(&format!(" {}", duration(took))),
            _ => {}
        }
        if let Some(note) = self.note(options) {
            after.push_str(&format!("{}{note}", theme.sign(" · ", " | ")));
        }
        let room = options.columns.saturating_sub(2 + crate::text::width(&after));
        let own = is_own_call(&self.call);
        let shown = self.title.strip_prefix("bash ").filter(|_| own);
        let title = cut(shown.unwrap_or(&self.title), room);
        // A command that the user typed looks as it was typed.
        let sign = if own { "! " } else { sign };
        let (name, rest) = match title.split_once(' ') {
            Some((name, rest)) => (name.to_owned(), format!(" {rest}")),
            None => (title, String::new()),
        };
        let line = Line::from(vec![
            Span::styled(sign, theme.style(tone)),
            Span::styled(name, theme.style(Tone::User)),
            Span::raw(rest),
            Span::styled(after, theme.style(Tone::Dim)),
        ]);
        wrap(&line, options.columns, "  ").swap_remove(0)
    }

    /// Returns an outcome that is short enough for the title row.
    fn note(&self, options: RenderOptions) -> Option<String> {
        if self.state != State::Done || self.diff.is_some() || !self.todo.is_empty() || options.unfolded {
            return None;
        }
        if self.result.trim() == NO_OUTPUT {
            return Some("no output".to_owned());
        }
        let is_quiet = QUIET.contains(&self.name.as_str());
        is_quiet.then(|| count(plain(&self.result).lines().count() + self.left_out, "line"))
    }

    fn live(&self, options: RenderOptions) -> Vec<Line<'static>> {
        let text = plain(&self.tail);
        let all: Vec<&str> = text.lines().collect();
        let skip = all.len().saturating_sub(LIVE_ROWS);
        let rows = all.into_iter().skip(skip);
        rows.map(|row| folded(row, options)).collect()
    }

    fn outcome(&self, options: RenderOptions) -> Vec<Line<'static>> {
        if self.note(options).is_some() {
            return Vec::new();
        }
        let text = plain(&self.result);
        let all: Vec<&str> = text.lines().collect();
        let row = |row: &&str| folded(row, options);
        if self.left_out > 0 {
            let mut lines: Vec<_> = all.iter().map(row).collect();
            lines.push(more_lines(self.left_out, options));
            return lines;
        }
        if options.unfolded {
            let rows = all.iter().map(|row| dim(row, options));
            return rows.flat_map(|line| wrap(&line, options.columns, "  ")).collect();
        }
        let ends = if is_own_call(&self.call) { OWN_ENDS } else { ENDS };
        if all.len() <= 2 * ends + 1 {
            return all.iter().map(row).collect();
        }
        let mut lines: Vec<_> = all.iter().take(ends).map(row).collect();
        lines.push(more_lines(all.len() - 2 * ends, options));
        lines.extend(all.iter().skip(all.len() - ends).map(row));
        lines
    }
}

/// A line below the title row, cut to the width.
pub(super) fn folded(text: &str, options: RenderOptions) -> Line<'static> {
    let line = format!("  {}", without_tabs(text.trim_end()));
    Line::styled(cut(&line, options.columns), options.theme.style(Tone::Dim))
}

fn more_lines(lines: usize, options: RenderOptions) -> Line<'static> {
    folded(&format!("… {}", count(lines, "more line")), options)
}

fn dim(text: &str, options: RenderOptions) -> Line<'static> {
    Line::styled(format!("  {text}"), options.theme.style(Tone::Dim))
}

fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw("  "));
    line
}

fn todo((what, status): &(String, String), options: RenderOptions) -> Line<'static> {
    let theme = options.theme;
    let (sign, tone) = match status.as_str() {
        "completed" => (theme.sign("☑", "[x]"), Tone::Dim),
        "in_progress" => (theme.sign("▶", "[>]"), Tone::Accent),
        _ => (theme.sign("☐", "[ ]"), Tone::Text),
    };
    Line::styled(
        cut(&format!("  {sign} {what}"), options.columns),
        theme.style(tone),
    )
}

/// Returns the diff in a tool's details: of one file, or of several.
fn diff_of(details: &Value) -> Option<String> {
    let text = |value: &Value| value.get("diff").and_then(Value::as_str).map(str::to_owned);
    if let Some(diff) = text(details) {
        return Some(diff);
    }
    let files = details.get("files")?.as_array()?;
    let diffs: Vec<String> = files.iter().filter_map(text).collect();
    (!diffs.is_empty()).then(|| diffs.concat())
}

/// Removes the file header from a diff of a single file, whose name is in the title.
fn without_name(diff: &str) -> &str {
    let names = diff.lines().filter(|line| line.starts_with("--- ")).count();
    let begin = diff.find("\n@@ ").map(|at| at + 1);
    match begin {
        Some(begin) if names == 1 => diff.get(begin..).unwrap_or(diff),
        _ => diff,
    }
}

/// Returns the start of a text.
fn head(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n…", text.get(..end).unwrap_or_default())
}

/// Formats a running duration in whole seconds.
pub(crate) fn seconds(ms: u64) -> String {
    match ms {
        0..=59_999 => format!("{} s", ms / 1000),
        _ => duration(ms),
    }
}

/// Formats a duration.
pub(crate) fn duration(ms: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    match ms {
        0..=9_999 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..=59_999 => format!("{} s", ms / 1000),
        60_000..=3_599_999 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}
