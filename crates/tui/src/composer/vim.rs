//! The composer with vim's insert and normal modes.

mod act;
mod command;
mod motion;
mod object;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::command::{Act, Command, Entry, Find, Motion, Parsed};
use super::buffer::{Buffer, Kind};
use super::keys::Direction;
use super::{Composer, Did, cluster};

/// Maximum number of keys stored for repeating a change.
const KEYS: usize = 10_000;

/// State of the vim modes.
#[derive(Debug, Default)]
pub(super) struct Vim {
    mode: Mode,
    /// KeyBindings of an unfinished command.
    keys: String,
    /// Last character search in a line.
    find: Option<Find>,
    change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// KeyBindings are text. A new message starts in this mode.
    #[default]
    Insert,
    /// KeyBindings are commands.
    Normal,
}

impl Vim {
    /// Returns to insert mode for a new text.
    pub(super) fn restart(&mut self) {
        self.mode = Mode::Insert;
        self.keys.clear();
        self.change.is_open = false;
    }
}

/// The last change: a command, and the keys typed after it.
#[derive(Debug, Clone, Default)]
struct Change {
    keys: String,
    typed: Vec<KeyEvent>,
    /// True while keys are being added.
    is_open: bool,
}

impl Composer {
    /// Turns vim modes on or off.
    pub(crate) fn set_vim(&mut self, on: bool) {
        self.buffer.release();
        self.vim = on.then(Vim::default);
    }

    /// Name of the current mode, if vim modes are on.
    pub(crate) fn vim_mode(&self) -> Option<&'static str> {
        self.vim.as_ref().map(|vim| match vim.mode {
            Mode::Insert => "insert",
            Mode::Normal => "normal",
        })
    }

    /// True if keys are commands.
    pub(crate) fn is_normal(&self) -> bool {
        self.vim.as_ref().is_some_and(|vim| vim.mode == Mode::Normal)
    }

    /// Keeps the cursor on a character in normal mode: not behind the last one of a line.
    pub(super) fn settle(&mut self) {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let is_behind = matches!(cluster::at(text, cursor), "" | "\n");
        let before = cluster::before(text, cursor);
        if self.is_normal() && is_behind && !matches!(before, "" | "\n") {
            self.buffer.move_to(cursor - before.len());
        }
    }

    /// Handles a key outside of a search.
    pub(super) fn handle_vim(&mut self, key: KeyEvent) -> Did {
        if self.is_normal() {
            return self.handle_normal(key);
        }
        if key.code == KeyCode::Esc {
            self.leave_insert();
            return Did::Moved;
        }
        let did = self.write(key);
        if let Some(vim) = &mut self.vim
            && vim.change.is_open
            && did != Did::Nothing
            && self.search.is_none()
            && vim.change.typed.len() < KEYS
        {
            vim.change.typed.push(key);
        }
        did
    }

    fn handle_normal(&mut self, key: KeyEvent) -> Did {
        self.kill.chains = false;
        let Some(vim) = &mut self.vim else {
            return Did::Nothing;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let known = KeyModifiers::SHIFT.contains(key.modifiers);
        let letter = match key.code {
            KeyCode::Char('r') if control => {
                vim.keys.clear();
                return self.undo_or_redo(1, Buffer::redo);
            }
            KeyCode::Char(letter) if known => letter,
            // Cancels an unfinished command and does nothing else.
            KeyCode::Esc | KeyCode::Enter | KeyCode::Tab if !vim.keys.is_empty() => {
                vim.keys.clear();
                return Did::Moved;
            }
            code => {
                vim.keys.clear();
                match stand_in(code) {
                    Some(letter) if known => letter,
                    _ => return Did::Nothing,
                }
            }
        };
        vim.keys.push(letter);
        match command::parse(&vim.keys) {
            Parsed::Unfinished => Did::Moved,
            Parsed::Wrong => {
                vim.keys.clear();
                Did::Moved
            }
            Parsed::Command(command) => {
                let keys = std::mem::take(&mut vim.keys);
                self.obey(command, keys)
            }
        }
    }

    fn obey(&mut self, command: Command, keys: String) -> Did {
        if let Some(vim) = &mut self.vim
            && command.act.is_change()
        {
            vim.change = Change {
                keys,
                typed: Vec::new(),
                is_open: true,
            };
        }
        let did = self.run(command);
        if self.is_normal()
            && let Some(vim) = &mut self.vim
        {
            vim.change.is_open = false;
        }
        did
    }

    fn run(&mut self, command: Command) -> Did {
        let times = command.count.unwrap_or(1);
        match command.act {
            Act::Undo => return self.undo_or_redo(times, Buffer::undo),
            Act::Repeat => return self.repeat(),
            Act::Move(Motion::Up) => return self.move_rows(Direction::Up, times),
            Act::Move(Motion::Down) => return self.move_rows(Direction::Down, times),
            _ => {}
        }
        self.view.forget_column();
        let revision = self.buffer.revision();
        self.buffer.hold();
        match command.act {
            Act::Move(motion) => {
                if let Some(to) = self.lead(motion, command.count) {
                    self.buffer.move_to(to);
                }
            }
            Act::Operate(operator, target) => {
                if let Some(span) = self.span(operator, target, command.count) {
                    self.operate(operator, span);
                }
            }
            Act::Insert(entry) => self.enter_insert(entry),
            Act::Put(side) => self.put_killed(side, times),
            Act::Replace(letter) => self.replace_letters(letter, times),
            Act::SwapCase => self.swap_case(times),
            Act::Join => (1..times.max(2)).for_each(|_| self.join_line()),
            Act::Undo | Act::Repeat => {}
        }
        if self.is_normal() {
            self.buffer.release();
        }
        self.settle();
        self.did_since(revision)
    }

    fn undo_or_redo(&mut self, times: usize, step: impl Fn(&mut Buffer)) -> Did {
        let revision = self.buffer.revision();
        (0..times).for_each(|_| step(&mut self.buffer));
        self.settle();
        self.did_since(revision)
    }

    fn move_rows(&mut self, direction: Direction, times: usize) -> Did {
        let did = self.go_rows(direction, times);
        self.settle();
        did
    }

    /// Repeats the last change at the cursor.
    fn repeat(&mut self) -> Did {
        let revision = self.buffer.revision();
        let change = self
            .vim
            .as_ref()
            .map(|vim| vim.change.clone())
            .unwrap_or_default();
        let Parsed::Command(command) = command::parse(&change.keys) else {
            return Did::Moved;
        };
        self.run(command);
        if !self.is_normal() {
            for key in change.typed {
                self.write(key);
            }
            self.leave_insert();
        }
        self.did_since(revision)
    }

    fn leave_insert(&mut self) {
        self.buffer.release();
        self.view.forget_column();
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let before = cluster::before(text, cursor);
        if before != "\n" {
            self.buffer.move_to(cursor - before.len());
        }
        if let Some(vim) = &mut self.vim {
            vim.mode = Mode::Normal;
            vim.change.is_open = false;
        }
    }

    /// Enters insert mode.
    fn enter_insert(&mut self, entry: Entry) {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let (start, end) = (cluster::line_start(text, cursor), cluster::line_end(text, cursor));
        match entry {
            Entry::Here => {}
            Entry::After => self.buffer.move_to(cluster::next(text, cursor).min(end)),
            Entry::FirstLetter => self.buffer.move_to(motion::first_letter(text, cursor)),
            Entry::LineEnd => self.buffer.move_to(end),
            Entry::LineBelow => self.buffer.replace(end..end, "\n", Kind::Whole),
            Entry::LineAbove => {
                self.buffer.replace(start..start, "\n", Kind::Whole);
                self.buffer.move_to(start);
            }
        }
        if let Some(vim) = &mut self.vim {
            vim.mode = Mode::Insert;
        }
    }
}

/// Returns the command a special key stands for.
fn stand_in(code: KeyCode) -> Option<char> {
    Some(match code {
        KeyCode::Left | KeyCode::Backspace => 'h',
        KeyCode::Right => 'l',
        KeyCode::Up => 'k',
        KeyCode::Down => 'j',
        KeyCode::Home => '0',
        KeyCode::End => '$',
        KeyCode::Delete => 'x',
        _ => return None,
    })
}

#[cfg(test)]
#[path = "vim_tests.rs"]
mod tests;
