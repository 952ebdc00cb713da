//! Search in the full-screen conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;

use super::App;
use crate::text::cut;
use crate::theme::Tone;

/// A search in the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Find {
    words: String,
    is_typing: bool,
    /// True if the last step found nothing.
    is_missing: bool,
}

/// Direction of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Toward {
    Older,
    Newer,
}

impl App {
    /// Offers a key to the search. Returns true if the key was handled.
    pub(super) fn find_key(&mut self, key: &KeyEvent) -> bool {
        if !self.view.unfolded || !self.composer.is_empty() || !self.requests.is_empty() {
            self.view.find = None;
            return false;
        }
        let is_typing = self.view.find.as_ref().is_some_and(|find| find.is_typing);
        let is_command = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if is_command {
            return false;
        }
        match (key.code, &mut self.view.find) {
            (KeyCode::Enter, Some(find)) if is_typing => {
                find.is_typing = false;
                self.seek_match(Toward::Older);
            }
            (KeyCode::Esc, Some(_)) => self.view.find = None,
            (KeyCode::Backspace, Some(find)) if is_typing => drop(find.words.pop()),
            (KeyCode::Char(letter), Some(find)) if is_typing => find.words.push(letter),
            (KeyCode::Char('/'), _) => {
                self.view.find = Some(Find {
                    is_typing: true,
                    ..Find::default()
                });
            }
            (KeyCode::Char('n'), Some(_)) => self.seek_match(Toward::Older),
            (KeyCode::Char('N'), Some(_)) => self.seek_match(Toward::Newer),
            // While a turn runs, esc stops it here as well.
            (KeyCode::Esc, None) if !self.session.is_busy => self.toggle_transcript(),
            (KeyCode::Home, None) => self.scroll_up(usize::MAX / 4),
            (KeyCode::End, None) => self.view.scroll = 0,
            _ => return false,
        }
        true
    }

    /// Scrolls to the next row that contains the words.
    fn seek_match(&mut self, toward: Toward) {
        let (options, columns) = (self.render_options(), self.view.size.1);
        let Some(find) = &mut self.view.find else { return };
        let words = find.words.to_lowercase();
        if words.is_empty() {
            return;
        }
        let all = self.transcript.all_lines(options);
        let room = usize::from(columns).saturating_sub(6).max(1);
        // The row in the middle of the screen is the one that was found last.
        let middle = all.len().saturating_sub(self.view.scroll + room / 2);
        let hit = |index: &usize| {
            let line = all.get(*index).map(ToString::to_string).unwrap_or_default();
            line.to_lowercase().contains(&words)
        };
        let start = if self.view.scroll == 0 { all.len() } else { middle };
        let found = match toward {
            Toward::Older => (0..start).rev().find(hit),
            Toward::Newer => (middle + 1..all.len()).find(hit),
        };
        find.is_missing = found.is_none();
        if let Some(index) = found {
            self.view.scroll = all.len().saturating_sub(index + room / 2).max(1);
            self.view.top = None;
        }
    }

    /// Marks the rows that contain the words.
    pub(super) fn mark_matches(&self, rows: &mut [Line<'static>]) {
        let words = self.view.find.as_ref().map(|find| find.words.to_lowercase());
        let Some(words) = words.filter(|words| !words.is_empty()) else {
            return;
        };
        let style = self.view.theme.style(Tone::Selected);
        for row in rows.iter_mut() {
            if row.to_string().to_lowercase().contains(&words) {
                row.spans
                    .iter_mut()
                    .for_each(|span| span.style = span.style.patch(style));
            }
        }
    }

    /// Describes the search, or the keys of the view.
    pub(super) fn find_row(&self, columns: usize) -> Option<Line<'static>> {
        if !self.view.unfolded {
            return None;
        }
        let text = match &self.view.find {
            Some(find) if find.is_typing => format!("/{}", find.words),
            Some(find) if find.is_missing => {
                format!("/{}: no more matches · N newer · esc ends the search", find.words)
            }
            Some(find) => format!("/{} · n older · N newer · esc ends the search", find.words),
            None => {
                let rows = match self.view.scroll {
                    0 => String::new(),
                    rows => format!("{} below · ", windlass_core::text::count(rows, "row")),
                };
                format!("{rows}↑↓ pgup pgdn home end scroll · / search · ctrl+o back")
            }
        };
        let style = self.view.theme.style(Tone::Accent);
        Some(Line::styled(cut(&crate::text::plain(&text), columns), style))
    }
}
