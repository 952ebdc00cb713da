//! Prompt for an API key. The key is never shown and not stored anywhere else.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;

use super::{Overlay, OverlayAction, Step, Typed};
use crate::paint::Picture;
use crate::text::{cut, wrap};
use crate::theme::{Theme, Tone};

/// A prompt with hidden input.
pub(crate) struct Secret {
    provider: String,
    hint: String,
    typed: String,
}

impl Secret {
    pub(crate) fn new(provider: &str, hint: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            hint: hint.to_owned(),
            typed: String::new(),
        }
    }
}

impl Overlay for Secret {
    fn handle(&mut self, key: KeyEvent, _rows: usize) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Step::Close,
            KeyCode::Char('c') if control => return Step::Close,
            KeyCode::Char('u') if control => self.typed.clear(),
            KeyCode::Char(letter) if !control => self.typed.push(letter),
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Enter if !self.typed.trim().is_empty() => {
                return Step::Do(OverlayAction::Connect {
                    provider: self.provider.clone(),
                    key: Typed(std::mem::take(&mut self.typed)),
                });
            }
            _ => {}
        }
        Step::Stay
    }

    fn paste(&mut self, text: &str) -> Step {
        self.typed
            .extend(text.chars().filter(|letter| !letter.is_control()));
        Step::Stay
    }

    fn render(&mut self, (columns, rows): (usize, usize), theme: Theme) -> Picture {
        let count = self.typed.chars().count();
        let stars = "*".repeat(count.min(columns.saturating_sub(8)));
        let mut lines = vec![Line::styled(
            cut(&format!("API key for {}", self.provider), columns),
            theme.style(Tone::Heading),
        )];
        lines.push(Line::default());
        lines.extend(wrap(
            &Line::styled(self.hint.clone(), theme.style(Tone::Dim)),
            columns,
            "",
        ));
        lines.push(Line::default());
        let cursor = (4 + stars.len(), lines.len());
        lines.push(Line::raw(cut(&format!("key {stars}"), columns)));
        lines.push(Line::default());
        let text =
            "The key is tested, then stored where only you can read it. Enter continues, esc goes back.";
        lines.extend(wrap(&Line::styled(text, theme.style(Tone::Dim)), columns, ""));
        lines.truncate(rows);
        let cell = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        let is_in_sight = cursor.1 < rows && cursor.0 < columns;
        Picture {
            rows: lines,
            cursor: is_in_sight.then(|| (cell(cursor.0), cell(cursor.1))),
        }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        // Overwrites the key, so that it does not linger in reused memory.
        let length = self.typed.len();
        self.typed.clear();
        self.typed.extend(std::iter::repeat_n('\0', length));
    }
}
