//! Progress of a running turn: tokens received, a retry that is due, the todo list.

use ratatui::text::Line;
use serde_json::Value;
use windlass_api::{DeltaKind, Event, SessionEvent};
use windlass_core::text::count;

use crate::text::{cut, one_line};
use crate::theme::{Theme, Tone};

/// Characters per token, for text whose tokens have not been counted yet.
const LETTERS: u64 = 4;
/// Maximum number of todos shown.
const TODO_ROWS: usize = 6;

/// Progress of a turn, and the todos of the session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Status text reported by the turn.
    pub(crate) doing: String,
    /// Output tokens of the turn that were reported.
    tokens: u64,
    /// Characters of the reply that is being received, and the time of its first and last one.
    letters: u64,
    span_ms: Option<(u64, u64)>,
    retry: Option<Retry>,
    todos: Vec<Todo>,
}

#[derive(Debug, Clone)]
struct Retry {
    due_ms: u64,
    attempt: u32,
    most: u32,
    why: String,
}

/// One todo.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Todo {
    text: String,
    status: String,
}

impl Progress {
    /// Applies an event.
    pub(crate) fn hear(&mut self, event: &Event, now_ms: u64) {
        match event {
            Event::Delta { kind, text } => {
                self.retry = None;
                self.letters += text.chars().count() as u64;
                let begin = self.span_ms.map_or(now_ms, |(begin, _)| begin);
                if *kind != DeltaKind::ToolInput || !text.is_empty() {
                    self.span_ms = Some((begin, now_ms));
                }
            }
            Event::Usage { usage, cause, .. } if cause == "turn" => {
                self.tokens += usage.output;
                self.letters = 0;
                self.span_ms = None;
                self.retry = None;
            }
            Event::Retry {
                attempt,
                max_attempts,
                delay_ms,
                message,
                discard,
                ..
            } => {
                if *discard {
                    self.letters = 0;
                    self.span_ms = None;
                }
                self.retry = Some(Retry {
                    due_ms: now_ms.saturating_add(*delay_ms),
                    attempt: *attempt,
                    most: *max_attempts,
                    why: one_line(message),
                });
            }
            Event::ToolResult {
                details: Some(details),
                ..
            } => {
                if let Some(todos) = todos(details) {
                    self.todos = todos;
                }
            }
            Event::Session(SessionEvent::Moved { .. }) => {
                self.letters = 0;
                self.span_ms = None;
            }
            event if event.is_terminal() => {
                *self = Self {
                    todos: std::mem::take(&mut self.todos),
                    ..Self::default()
                };
            }
            _ => {}
        }
    }

    /// Describes the retry that is due, in one line.
    pub(crate) fn retry(&self, now_ms: u64) -> Option<String> {
        let Retry {
            due_ms,
            attempt,
            most,
            why,
        } = self.retry.as_ref()?;
        let left = due_ms.saturating_sub(now_ms).div_ceil(1_000);
        Some(match left {
            0 => format!("retry {attempt} of {most}: {why}"),
            left => format!("retry {attempt} of {most} in {left} s: {why}"),
        })
    }

    /// Describes the tokens received so far, and their rate while they arrive.
    pub(crate) fn tokens(&self, theme: Theme) -> Option<String> {
        let streaming = self.letters / LETTERS;
        let all = self.tokens + streaming;
        if all == 0 {
            return None;
        }
        let shown = match all {
            0..=999 => all.to_string(),
            #[allow(clippy::cast_precision_loss)]
            all => format!("{:.1}k", all as f64 / 1000.0),
        };
        let rate = self.span_ms.and_then(|(begin, end)| {
            let took = end.saturating_sub(begin);
            (took >= 1_000).then(|| streaming * 1_000 / took)
        });
        let rate = rate.filter(|rate| *rate > 0).map(|rate| format!(" {rate}/s"));
        let arrow = theme.sign("↓ ", "");
        Some(format!("{arrow}{shown} tokens{}", rate.unwrap_or_default()))
    }

    /// Renders the open todos: a list while a turn runs, otherwise one line.
    pub(crate) fn todo_panel(&self, is_busy: bool, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let open = self
            .todos
            .iter()
            .filter(|todo| todo.status != "completed")
            .count();
        if open == 0 {
            return Vec::new();
        }
        let dim = theme.style(Tone::Dim);
        let done = self.todos.len() - open;
        let head = format!("  {done} of {} done", count(self.todos.len(), "todo"));
        if !is_busy {
            let text = format!("{head}; {open} open");
            return vec![Line::styled(cut(&text, columns), dim)];
        }
        let mut lines = vec![Line::styled(cut(&head, columns), dim)];
        // The work in progress and what follows it are more useful than what is done.
        let current = self.todos.iter().position(|todo| todo.status != "completed");
        let first = current.unwrap_or_default().saturating_sub(1);
        let first = first.min(self.todos.len().saturating_sub(TODO_ROWS));
        lines.extend(
            self.todos
                .iter()
                .skip(first)
                .take(TODO_ROWS)
                .map(|todo| todo.line(columns, theme)),
        );
        let left = self.todos.len().saturating_sub(first + TODO_ROWS);
        if left > 0 {
            lines.push(Line::styled(cut(&format!("    and {left} more"), columns), dim));
        }
        lines
    }
}

impl Todo {
    fn line(&self, columns: usize, theme: Theme) -> Line<'static> {
        let (sign, tone) = match self.status.as_str() {
            "completed" => (theme.sign("☑", "[x]"), Tone::Dim),
            "in_progress" => (theme.sign("▶", "[>]"), Tone::Accent),
            _ => (theme.sign("☐", "[ ]"), Tone::Text),
        };
        let text = cut(&format!("    {sign} {}", self.text), columns);
        Line::styled(text, theme.style(tone))
    }
}

/// Returns the todos in a tool's details.
fn todos(details: &Value) -> Option<Vec<Todo>> {
    let items = details.get("items")?.as_array()?;
    let todo = |item: &Value| {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(one_line);
        Some(Todo {
            text: text("text")?,
            status: text("status")?,
        })
    };
    items.iter().map(todo).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::{CallId, ProviderErrorKind};

    use super::*;

    fn retry(attempt: u32, delay_ms: u64) -> Event {
        Event::Retry {
            attempt,
            max_attempts: 5,
            delay_ms,
            kind: ProviderErrorKind::Overloaded,
            message: "overloaded".to_owned(),
            discard: false,
        }
    }

    fn delta(text: &str) -> Event {
        Event::Delta {
            kind: DeltaKind::Text,
            text: text.to_owned(),
        }
    }

    /// UI-2: a retry counts down in one line, and disappears when the reply arrives.
    #[test]
    fn retries_count_down() {
        let mut progress = Progress::default();
        progress.hear(&retry(2, 4_000), 1_000);
        assert_eq!(
            progress.retry(1_000).as_deref(),
            Some("retry 2 of 5 in 4 s: overloaded")
        );
        assert_eq!(
            progress.retry(4_500).as_deref(),
            Some("retry 2 of 5 in 1 s: overloaded")
        );
        assert_eq!(progress.retry(9_000).as_deref(), Some("retry 2 of 5: overloaded"));
        progress.hear(&delta("x"), 9_100);
        assert_eq!(progress.retry(9_200), None);
    }

    /// UI-2: tokens are counted while they arrive, with their rate.
    #[test]
    fn tokens_are_counted_live() {
        let mut progress = Progress::default();
        assert_eq!(progress.tokens(Theme::default()), None);
        progress.hear(&delta(&"x".repeat(400)), 1_000);
        assert_eq!(progress.tokens(Theme::default()).as_deref(), Some("↓ 100 tokens"));
        progress.hear(&delta(&"x".repeat(4_400)), 3_000);
        assert_eq!(
            progress.tokens(Theme::default()).as_deref(),
            Some("↓ 1.2k tokens 600/s")
        );
    }

    /// UI-2: open todos stay on the screen: as a list while a turn runs, then as one line; done ones disappear.
    #[test]
    fn todos_stay() {
        let mut progress = Progress::default();
        let result = |last: &str| Event::ToolResult {
            call_id: CallId::from("c"),
            name: "todo".to_owned(),
            content: String::new(),
            details: Some(json!({"items": [
                {"text": "read", "status": "completed"},
                {"text": "fix", "status": "in_progress"},
                {"text": "test", "status": last},
            ]})),
            is_error: false,
        };
        progress.hear(&result("pending"), 0);
        let panel = |progress: &Progress, is_busy: bool| -> Vec<String> {
            let lines = progress.todo_panel(is_busy, 40, Theme::default());
            lines.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            panel(&progress, true),
            ["  1 of 3 todos done", "    ☑ read", "    ▶ fix", "    ☐ test"]
        );
        progress.hear(
            &Event::Canceled {
                message: String::new(),
            },
            0,
        );
        assert_eq!(panel(&progress, false), ["  1 of 3 todos done; 2 open"]);
        progress
            .todos
            .iter_mut()
            .for_each(|todo| todo.status = "completed".to_owned());
        assert_eq!(panel(&progress, true), [""; 0]);
    }
}
