//! The composer, where the user types: takes keys and pastes, produces lines.
//!
//! It is its own editor because a long paste or an image is a single unit in the text, and rows are wrapped
//! with such units in them; existing editor widgets support neither. It does no input or output and has no
//! clock.

mod buffer;
mod chips;
mod cluster;
mod completion;
mod draw;
mod history;
mod keys;
mod layout;
#[cfg(test)]
mod notation;
mod searching;
mod vim;

use crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::text::Line;

use self::buffer::{Buffer, Kind};
use self::chips::{Chips, Content};
pub(crate) use self::completion::CompletionQuery;
use self::draw::View;
use self::history::{History, Search};
use self::vim::Vim;
use crate::desktop::Image;
use crate::text;

/// A paste of more lines than this becomes a chip.
const PASTE_LINES: usize = 3;
/// A paste of more characters than this becomes a chip.
const PASTE_CHARACTERS: usize = 400;
/// Maximum size, in bytes, of pasted text the history stores in full.
const REMEMBERED: usize = 10 * 1024;

/// Effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// Not a composer key: the app may use it.
    Nothing,
    /// The cursor moved; the text is unchanged.
    Moved,
    /// The text changed.
    Changed,
}

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Text with pastes in full and images as labels.
    pub(crate) text: String,
    /// Text as shown in the composer, with all chips as labels.
    pub(crate) shown: String,
    /// Text stored in the history.
    pub(crate) remembered: String,
    /// Images the text mentions, ordered by number.
    pub(crate) images: Vec<Image>,
}

/// The rendered composer.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// Rendered lines.
    pub(crate) lines: Vec<Line<'static>>,
    /// Position of the terminal cursor in the lines, as (column, line).
    pub(crate) cursor: (usize, usize),
}

/// Text editor for the next message.
#[derive(Debug)]
pub(crate) struct Composer {
    buffer: Buffer,
    /// Draft set aside while an answer is typed.
    aside: Option<Buffer>,
    chips: Chips,
    kill: Kill,
    history: History,
    search: Option<Search>,
    vim: Option<Vim>,
    view: View,
    placeholder: String,
}

/// Text that was last cut or yanked.
#[derive(Debug, Default)]
struct Kill {
    text: String,
    /// True for whole lines; only vim commands make a difference.
    is_lines: bool,
    /// True if the last key also cut, so that the next cut appends.
    chains: bool,
}

impl Composer {
    /// Creates an empty composer. The history is ordered oldest first.
    pub(crate) fn new(history: Vec<String>, vim: bool) -> Self {
        let history = history.iter().map(|text| chips::harmless(text)).collect();
        Self {
            buffer: Buffer::default(),
            aside: None,
            chips: Chips::default(),
            kill: Kill::default(),
            history: History::new(history),
            search: None,
            vim: vim.then(Vim::default),
            view: View::default(),
            placeholder: String::new(),
        }
    }

    /// Handles a key.
    pub(crate) fn handle(&mut self, key: KeyEvent) -> Did {
        if key.kind == KeyEventKind::Release {
            return Did::Nothing;
        }
        if self.search.is_some()
            && let Some(did) = self.handle_search(key)
        {
            return did;
        }
        match self.vim {
            Some(_) => self.handle_vim(key),
            None => self.write(key),
        }
    }

    /// Inserts pasted text. A long text becomes a chip.
    pub(crate) fn paste(&mut self, pasted: &str) {
        let pasted = chips::harmless(pasted);
        if let Some(search) = &mut self.search {
            search.query.push_str(&text::one_line(&pasted));
            return search.again(&self.history);
        }
        let is_short = pasted.lines().count() <= PASTE_LINES
            && pasted.chars().take(PASTE_CHARACTERS + 1).count() <= PASTE_CHARACTERS;
        if is_short {
            return self.put(&pasted);
        }
        // If no mark is free, the text itself is inserted.
        match self.chips.add(Content::Text(pasted.clone()), self.buffer.text()) {
            Some(mark) => self.put(mark.encode_utf8(&mut [0; 4])),
            None => self.put(&pasted),
        }
    }

    /// Inserts a chip for an image at the cursor.
    pub(crate) fn attach(&mut self, image: Image) {
        if let Some(mark) = self.chips.add(Content::Image(image), self.buffer.text()) {
            self.put(mark.encode_utf8(&mut [0; 4]));
        }
    }

    /// Inserts text at the cursor as it is, however long.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, text: &str) {
        self.put(&chips::harmless(text));
    }

    /// Replaces the whole text. Labels of existing chips become chips again, so that a text can pass through
    /// an external editor as [`Self::shown`].
    pub(crate) fn set(&mut self, text: &str) {
        self.search = None;
        self.history.stay();
        let text = self.chips.recognise(chips::harmless(text), self.buffer.text());
        self.buffer.replace_all(&text);
        self.settle();
    }

    /// Sets the draft aside with its chips, because the text typed next is something else. Returns false if a
    /// draft was already set aside, which then stays.
    pub(crate) fn put_aside(&mut self) -> bool {
        let is_first = self.aside.is_none();
        if is_first {
            self.aside = Some(self.buffer.take());
            self.history.stay();
            self.view.forget_column();
        }
        is_first
    }

    /// True if a draft was set aside, even an empty one.
    pub(crate) fn has_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Restores the draft that was set aside, if any. Text typed since then goes to the history.
    pub(crate) fn take_up(&mut self) -> bool {
        let Some(aside) = self.aside.take() else {
            return false;
        };
        self.search = None;
        self.history.add(self.buffer.text().to_owned());
        self.buffer = aside;
        self.view.forget_column();
        self.settle();
        true
    }

    /// Puts a message before the current draft. Its images become chips where their labels are; images
    /// without a label follow the text.
    pub(crate) fn write_again(&mut self, said: &str, images: Vec<Image>) {
        self.search = None;
        self.history.stay();
        // An answer in progress is not a message.
        let buffer = self.aside.as_mut().unwrap_or(&mut self.buffer);
        let mut again = chips::harmless(said);
        for image in images {
            let label = chips::image_label(&again, &image.name);
            let beside = format!("{again}{}", buffer.text());
            let Some(mark) = self.chips.add(Content::Image(image), &beside) else {
                continue;
            };
            match label {
                Some(label) => again = again.replace(&label, mark.encode_utf8(&mut [0; 4])),
                None => again.push(mark),
            }
        }
        if !buffer.text().is_empty() {
            again.push('\n');
            again.push_str(buffer.text());
        }
        buffer.replace_all(&again);
        self.settle();
    }

    /// Empties the composer and adds the text to the history.
    pub(crate) fn take(&mut self) -> Draft {
        self.search = None;
        let marked = self.buffer.text();
        let text = self.chips.open(marked).into_owned();
        let shown = self.chips.show(marked).into_owned();
        let images = self.chips.images(marked);
        let remembered = if text.len() <= REMEMBERED {
            text.clone()
        } else {
            shown.clone()
        };

        self.history.add(remembered.clone());
        self.buffer.take();
        let (history, kill, aside) = (&self.history, &self.kill, self.aside.as_ref());
        self.chips.retain(|mark| {
            let is_aside = aside.is_some_and(|aside| aside.mentions(mark));
            is_aside || history.mentions(mark) || kill.text.contains(mark)
        });
        if let Some(vim) = &mut self.vim {
            vim.restart();
        }
        Draft {
            text,
            shown,
            remembered,
            images,
        }
    }

    /// Empties the composer without sending. Returns true if there was text, which is then the newest history
    /// entry, chips included.
    pub(crate) fn clear(&mut self) -> bool {
        if self.search.take().is_some() {
            return true;
        }
        let text = self.buffer.text();
        if text.is_empty() {
            return false;
        }
        if self.history.walking() == Some(text) {
            self.history.stay();
        } else {
            self.history.add(text.to_owned());
        }
        self.buffer.replace_all("");
        true
    }

    /// True if the composer is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Text with one private-use character for each chip.
    pub(crate) fn text(&self) -> &str {
        self.buffer.text()
    }

    /// Text with chips as labels.
    pub(crate) fn shown(&self) -> String {
        self.chips.show(self.buffer.text()).into_owned()
    }

    /// Cursor position, in bytes of [`Self::text`].
    #[cfg(test)]
    pub(crate) fn cursor(&self) -> usize {
        self.buffer.cursor()
    }

    /// Sets the dimmed text shown in an empty composer.
    pub(crate) fn set_placeholder(&mut self, placeholder: &str) {
        self.placeholder = text::one_line(placeholder);
    }

    /// Returns the completion query at the cursor: `@…` at the start of a word, otherwise a text that starts
    /// with `/`.
    pub(crate) fn completion_query(&self) -> Option<CompletionQuery> {
        if self.search.is_some() || self.is_normal() {
            return None;
        }
        completion::query(self.buffer.text(), self.buffer.cursor()).map(|(query, _)| query)
    }

    /// Replaces the completion query: a command line by another one, a file by a mention of its path.
    pub(crate) fn complete(&mut self, with: &str) {
        let text = self.buffer.text();
        let Some((query, mut range)) = completion::query(text, self.buffer.cursor()) else {
            return;
        };
        let with = match query {
            CompletionQuery::Command(_) => chips::harmless(with),
            CompletionQuery::File(_) => completion::mention(&chips::harmless(with)),
        };
        // The space that ends a completion may exist already.
        if with.ends_with(' ') && cluster::at(text, range.end) == " " {
            range.end += 1;
        }
        self.buffer.replace(range, &with, Kind::Whole);
    }

    /// Expands the chip at or directly before the cursor into editable text. Returns false if there is no
    /// pasted text.
    pub(crate) fn open_chip(&mut self) -> bool {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let after = cluster::slice(text, cursor..text.len()).chars().next();
        let before = cluster::slice(text, 0..cursor).chars().next_back();
        let pasted = |mark: Option<char>| mark.and_then(|mark| self.chips.pasted(mark)).map(str::to_owned);
        let at = |mark: Option<char>| mark.map_or(0, char::len_utf8);
        let (range, pasted) = match (pasted(after), pasted(before)) {
            (Some(pasted), _) => (cursor..cursor + at(after), pasted),
            (None, Some(pasted)) => (cursor - at(before)..cursor, pasted),
            (None, None) => return false,
        };
        self.buffer.replace(range, &pasted, Kind::Whole);
        self.settle();
        true
    }

    /// Inserts text at the cursor that is sanitised, or contains marks on purpose.
    fn put(&mut self, text: &str) {
        let cursor = self.buffer.cursor();
        self.search = None;
        self.kill.chains = false;
        self.buffer.replace(cursor..cursor, text, Kind::Whole);
        self.settle();
    }

    fn did_since(&self, revision: u64) -> Did {
        match self.buffer.revision() == revision {
            true => Did::Moved,
            false => Did::Changed,
        }
    }
}

#[cfg(test)]
#[path = "composer_tests.rs"]
mod tests;
