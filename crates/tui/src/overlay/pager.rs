//! A full-screen pager.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use super::{Overlay, Step};
use crate::paint::Picture;
use crate::text::{cut, width, wrap};
use crate::theme::{Theme, Tone};

/// A text with a scroll position.
pub(crate) struct Pager {
    title: String,
    lines: Vec<Line<'static>>,
    /// Lines wrapped for a width.
    broken: (usize, Vec<Line<'static>>),
    top: usize,
    /// Search text, during and after typing.
    search: Option<String>,
    is_typing: bool,
}

impl Pager {
    pub(crate) fn new(title: &str, lines: Vec<Line<'static>>) -> Self {
        Self {
            title: title.to_owned(),
            lines,
            broken: (0, Vec::new()),
            top: 0,
            search: None,
            is_typing: false,
        }
    }

    /// Creates a pager for preformatted text.
    pub(crate) fn text(title: &str, text: &str) -> Self {
        Self::new(
            title,
            text.lines().map(|line| Line::raw(line.to_owned())).collect(),
        )
    }

    fn seek(&mut self, from: usize) {
        let Some(words) = self.search.as_deref().filter(|words| !words.is_empty()) else {
            return;
        };
        let words = words.to_lowercase();
        let lines = self.broken.1.iter().enumerate().skip(from);
        let mut found = lines.filter(|(_, line)| line.to_string().to_lowercase().contains(&words));
        if let Some((index, _)) = found.next() {
            self.top = index;
        }
    }

    fn typed(&mut self, key: KeyEvent) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => {
                self.is_typing = false;
                self.seek(self.top);
            }
            KeyCode::Esc => {
                self.is_typing = false;
                self.search = None;
            }
            KeyCode::Backspace => {
                self.search.get_or_insert_default().pop();
            }
            KeyCode::Char('c') if control => return Step::Close,
            KeyCode::Char(letter) if !control => self.search.get_or_insert_default().push(letter),
            _ => {}
        }
        Step::Stay
    }
}

impl Overlay for Pager {
    fn handle(&mut self, key: KeyEvent, rows: usize) -> Step {
        if self.is_typing {
            return self.typed(key);
        }
        let page = rows.saturating_sub(3).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Step::Close,
            KeyCode::Char('c' | 'o') if control => return Step::Close,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => self.top += 1,
            KeyCode::PageUp | KeyCode::Char('b') => self.top = self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.top += page,
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = usize::MAX / 2,
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.search = Some(String::new());
            }
            KeyCode::Char('n') => self.seek(self.top + 1),
            _ => {}
        }
        Step::Stay
    }

    fn render(&mut self, (columns, rows): (usize, usize), theme: Theme) -> Picture {
        if self.broken.0 != columns {
            let lines = self
                .lines
                .iter()
                .flat_map(|line| wrap(line, columns, &hanging(line, columns)));
            self.broken = (columns, lines.collect());
        }
        let room = rows.saturating_sub(2).max(1);
        let all = self.broken.1.len();
        self.top = self.top.min(all.saturating_sub(room));
        let mut lines = Vec::with_capacity(rows);
        if rows > 2 {
            lines.push(Line::styled(
                cut(&self.title, columns),
                theme.style(Tone::Heading),
            ));
        }
        lines.extend(self.broken.1.iter().skip(self.top).take(room).cloned());
        lines.resize(rows.saturating_sub(1), Line::default());
        let below = if self.is_typing {
            format!("/{}", self.search.as_deref().unwrap_or_default())
        } else {
            let last = (self.top + room).min(all);
            format!("{last}/{all} · space, b, ↑, ↓ · / search · q or esc back")
        };
        lines.push(Line::from(Span::styled(
            cut(&below, columns),
            theme.style(Tone::Dim),
        )));
        lines.truncate(rows);
        Picture {
            rows: lines,
            cursor: None,
        }
    }
}

/// Returns the indent of the continuation of a line: the second column of a row with two columns, as in a list of
/// commands.
fn hanging(line: &Line<'_>, columns: usize) -> String {
    let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let start = text.len() - text.trim_start_matches(' ').len();
    let name = text.get(start..).unwrap_or_default();
    let gap = name.find("  ").filter(|_| start > 0);
    let column = gap.map(|gap| {
        let (name, rest) = name.split_at(gap);
        start + width(name) + rest.len() - rest.trim_start_matches(' ').len()
    });
    " ".repeat(column.filter(|column| *column <= columns / 2).unwrap_or(4))
}
