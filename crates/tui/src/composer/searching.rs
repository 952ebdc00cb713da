//! The composer during a history search. The draft stays unchanged until a match is accepted.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::chips::is_mark;
use super::history::Search;
use super::{Composer, Did, cluster};

impl Composer {
    /// Starts a history search, or moves to the next older match.
    pub(crate) fn search(&mut self) {
        match &mut self.search {
            Some(search) => search.older(&self.history),
            None => self.search = Some(Search::default()),
        }
    }

    /// Ends the search and keeps the draft.
    pub(crate) fn end_search(&mut self) {
        self.search = None;
    }

    /// True during a history search.
    pub(crate) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Handles a key during a search; `None` if the key ends the search and applies to the match.
    pub(super) fn handle_search(&mut self, key: KeyEvent) -> Option<Did> {
        let search = self.search.as_mut()?;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => self.search = None,
            KeyCode::Char('g') if control => self.search = None,
            KeyCode::Char('c' | 'd' | 'z') if control => return Some(Did::Nothing),
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right => return Some(self.take_found()),
            KeyCode::Char('r' | 'p') if control => self.search(),
            KeyCode::Up => self.search(),
            KeyCode::Char('s' | 'n') if control => search.newer(&self.history),
            KeyCode::Down => search.newer(&self.history),
            KeyCode::Char('h') if control => self.shorten_query(),
            KeyCode::Backspace => self.shorten_query(),
            KeyCode::Char('u') if control => {
                search.query.clear();
                search.again(&self.history);
            }
            KeyCode::Char(letter) if plain && !letter.is_control() && !is_mark(letter) => {
                search.query.push(letter);
                search.again(&self.history);
            }
            _ => {
                self.take_found();
                return None;
            }
        }
        Some(Did::Moved)
    }

    fn take_found(&mut self) -> Did {
        let revision = self.buffer.revision();
        let search = self.search.take();
        let found = search.as_ref().and_then(|search| search.text(&self.history));
        if let Some(found) = found.map(str::to_owned) {
            self.history.stay();
            self.buffer.replace_all(&found);
            self.settle();
        }
        self.did_since(revision)
    }

    fn shorten_query(&mut self) {
        if let Some(search) = &mut self.search {
            let end = cluster::previous(&search.query, search.query.len());
            search.query.truncate(end);
            search.again(&self.history);
        }
    }
}
