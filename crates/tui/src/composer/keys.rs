//! KeyBindings of the composer: the bindings of common shells.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::buffer::Kind;
use super::chips::is_mark;
use super::layout::Layout;
use super::{Composer, Did, cluster};

/// Target of a movement, or extent of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Left,
    Right,
    WordLeft,
    WordRight,
    /// Like [`Reach::WordLeft`], but words are separated by white space only.
    BlankLeft,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyAction {
    Type(char),
    Move(Reach),
    Erase(Reach),
    /// Cuts, and stores the text for [`KeyAction::Yank`].
    Kill(Reach),
    Yank,
    Swap,
    Row(Direction),
    Undo,
    Redo,
    Search,
}

/// Vertical direction: through the rows, then through the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Composer {
    /// Handles a key outside of a search.
    pub(super) fn write(&mut self, key: KeyEvent) -> Did {
        let chains = std::mem::take(&mut self.kill.chains);
        if key.code == KeyCode::Enter && key.modifiers.is_empty() {
            return self.continue_line();
        }
        let Some(action) = action(key) else {
            return Did::Nothing;
        };
        if !matches!(action, KeyAction::Row(_)) {
            self.view.forget_column();
        }
        // In an empty composer, the app handles the key, which may quit.
        if self.buffer.text().is_empty() && matches!(action, KeyAction::Erase(_)) {
            return Did::Nothing;
        }
        let revision = self.buffer.revision();
        match action {
            KeyAction::Type(letter) => self.type_letter(letter),
            KeyAction::Move(reach) => self.buffer.move_to(self.reach(reach)),
            KeyAction::Erase(reach) => self.erase(reach),
            KeyAction::Kill(reach) => self.kill(reach, chains),
            KeyAction::Yank => {
                let text = self.kill.text.clone();
                self.put(&text);
            }
            KeyAction::Swap => self.swap(),
            KeyAction::Row(direction) => return self.go_rows(direction, 1),
            KeyAction::Undo => self.buffer.undo(),
            KeyAction::Redo => self.buffer.redo(),
            KeyAction::Search => self.search(),
        }
        self.did_since(revision)
    }

    /// Moves up or down by rows; at the edge, one step through the history.
    pub(super) fn go_rows(&mut self, direction: Direction, times: usize) -> Did {
        // A text just recalled is stepped over as a whole, however many rows it has.
        let text = self.buffer.text();
        let passes = self.buffer.cursor() == text.len() && self.history.walking() == Some(text);
        let layout = Layout::new(text, &self.chips, self.view.room());
        let (column, row) = layout.place(self.buffer.cursor());
        let revision = self.buffer.revision();
        let goal = self.view.goal(revision).unwrap_or(column);
        let last = layout.len().saturating_sub(1);
        let to = match direction {
            Direction::Up => row.saturating_sub(times),
            Direction::Down => (row + times).min(last),
        };
        let position = layout.position(goal, to);
        if let Some(position) = position.filter(|_| to != row && !passes) {
            self.buffer.move_to(position);
            self.view.keep(goal, revision);
            return Did::Moved;
        }
        let recalled = match direction {
            Direction::Up => self.history.older(self.buffer.text()),
            Direction::Down => self.history.newer(),
        };
        let Some(recalled) = recalled else {
            return Did::Nothing;
        };
        self.buffer.replace_all(&recalled);
        Did::Changed
    }

    /// Turns enter into a line break if a backslash precedes it.
    fn continue_line(&mut self) -> Did {
        let cursor = self.buffer.cursor();
        if cluster::before(self.buffer.text(), cursor) != "\\" {
            return Did::Nothing;
        }
        self.buffer.replace(cursor - 1..cursor, "\n", Kind::Whole);
        Did::Changed
    }

    fn type_letter(&mut self, letter: char) {
        let is_text = letter == '\n' || !(letter.is_control() || is_mark(letter));
        if is_text {
            let cursor = self.buffer.cursor();
            self.buffer
                .replace(cursor..cursor, letter.encode_utf8(&mut [0; 4]), Kind::Type);
        }
    }

    fn erase(&mut self, reach: Reach) {
        let (cursor, to) = (self.buffer.cursor(), self.reach(reach));
        self.buffer
            .replace(cursor.min(to)..cursor.max(to), "", Kind::Erase);
    }

    fn kill(&mut self, reach: Reach, chains: bool) {
        let cursor = self.buffer.cursor();
        let to = match (reach, self.reach(reach)) {
            // At the start or end of a line, its line break is cut.
            (Reach::LineStart, to) if to == cursor => self.reach(Reach::Left),
            (Reach::LineEnd, to) if to == cursor => self.reach(Reach::Right),
            (_, to) => to,
        };
        let range = cursor.min(to)..cursor.max(to);
        let killed = cluster::slice(self.buffer.text(), range.clone()).to_owned();
        if killed.is_empty() {
            self.kill.chains = chains;
            return;
        }
        let kept = std::mem::take(&mut self.kill.text);
        self.kill.text = match (chains, to < cursor) {
            (false, _) => killed,
            (true, true) => killed + &kept,
            (true, false) => kept + &killed,
        };
        self.kill.is_lines = false;
        self.kill.chains = true;
        self.buffer.replace(range, "", Kind::Whole);
    }

    /// Swaps the graphemes around the cursor; at the end of a line, the two before it.
    fn swap(&mut self) {
        let text = self.buffer.text();
        let mut middle = self.buffer.cursor();
        if matches!(cluster::at(text, middle), "" | "\n") {
            middle = cluster::previous(text, middle);
        }
        let (left, right) = (cluster::before(text, middle), cluster::at(text, middle));
        if matches!(left, "" | "\n") || matches!(right, "" | "\n") {
            return;
        }
        let swapped = format!("{right}{left}");
        let range = middle - left.len()..middle + right.len();
        self.buffer.replace(range, &swapped, Kind::Whole);
    }

    fn reach(&self, reach: Reach) -> usize {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        match reach {
            Reach::Left => cluster::previous(text, cursor),
            Reach::Right => cluster::next(text, cursor),
            Reach::WordLeft => cluster::word_left(text, cursor),
            Reach::WordRight => cluster::word_right(text, cursor),
            Reach::BlankLeft => cluster::blank_left(text, cursor),
            Reach::LineStart => cluster::line_start(text, cursor),
            Reach::LineEnd => cluster::line_end(text, cursor),
            Reach::TextStart => 0,
            Reach::TextEnd => text.len(),
        }
    }
}

fn action(key: KeyEvent) -> Option<KeyAction> {
    let modifiers = key.modifiers;
    let known = KeyModifiers::SHIFT | KeyModifiers::CONTROL | KeyModifiers::ALT;
    if !known.contains(modifiers) {
        return None;
    }
    let control = modifiers.contains(KeyModifiers::CONTROL);
    let alt = modifiers.contains(KeyModifiers::ALT);
    let by_words = control || alt;
    Some(match key.code {
        KeyCode::Char(letter) => return letter_action(letter, control, alt),
        KeyCode::Enter if !control => KeyAction::Type('\n'),
        KeyCode::Left if by_words => KeyAction::Move(Reach::WordLeft),
        KeyCode::Left => KeyAction::Move(Reach::Left),
        KeyCode::Right if by_words => KeyAction::Move(Reach::WordRight),
        KeyCode::Right => KeyAction::Move(Reach::Right),
        KeyCode::Home if control => KeyAction::Move(Reach::TextStart),
        KeyCode::Home => KeyAction::Move(Reach::LineStart),
        KeyCode::End if control => KeyAction::Move(Reach::TextEnd),
        KeyCode::End => KeyAction::Move(Reach::LineEnd),
        KeyCode::Backspace if by_words => KeyAction::Kill(Reach::WordLeft),
        KeyCode::Backspace => KeyAction::Erase(Reach::Left),
        KeyCode::Delete if by_words => KeyAction::Kill(Reach::WordRight),
        KeyCode::Delete => KeyAction::Erase(Reach::Right),
        KeyCode::Up if !by_words => KeyAction::Row(Direction::Up),
        KeyCode::Down if !by_words => KeyAction::Row(Direction::Down),
        _ => return None,
    })
}

fn letter_action(letter: char, control: bool, alt: bool) -> Option<KeyAction> {
    Some(match (letter.to_ascii_lowercase(), control, alt) {
        (_, false, false) => KeyAction::Type(letter),
        // Some keyboards type symbols this way (AltGr).
        (sign, true, true) if !sign.is_ascii_alphanumeric() => KeyAction::Type(letter),
        ('a', true, false) => KeyAction::Move(Reach::LineStart),
        ('e', true, false) => KeyAction::Move(Reach::LineEnd),
        ('b', true, false) => KeyAction::Move(Reach::Left),
        ('f', true, false) => KeyAction::Move(Reach::Right),
        ('b', false, true) => KeyAction::Move(Reach::WordLeft),
        ('f', false, true) => KeyAction::Move(Reach::WordRight),
        ('h', true, false) => KeyAction::Erase(Reach::Left),
        ('d', true, false) => KeyAction::Erase(Reach::Right),
        ('w', true, false) => KeyAction::Kill(Reach::BlankLeft),
        ('d', false, true) => KeyAction::Kill(Reach::WordRight),
        ('u', true, false) => KeyAction::Kill(Reach::LineStart),
        ('k', true, false) => KeyAction::Kill(Reach::LineEnd),
        ('y', true, false) => KeyAction::Yank,
        ('t', true, false) => KeyAction::Swap,
        ('j', true, false) => KeyAction::Type('\n'),
        ('p', true, false) => KeyAction::Row(Direction::Up),
        ('n', true, false) => KeyAction::Row(Direction::Down),
        ('r', true, false) => KeyAction::Search,
        // Older terminals send the same byte for three of these, and newer ones report the key without shift.
        ('_' | '7' | '/' | '-', true, false) => KeyAction::Undo,
        ('_' | '-', false, true) => KeyAction::Redo,
        _ => return None,
    })
}
