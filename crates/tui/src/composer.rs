//! Where a person writes: keys and pastes go in, lines come out.
//!
//! An editor of its own, because a long paste and an image stand in the text as one unit, and rows are broken by columns
//! with such units in them; the editors there are know neither. It does no input or output and has no clock.

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
/// Up to this size, in bytes, the history keeps pasted text in full.
const REMEMBERED: usize = 10 * 1024;

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// It is not the composer's: the app may use it.
    Nothing,
    /// The text is the same.
    Moved,
    /// The text is another.
    Changed,
}

/// What was written, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// With pasted text in full, and images as labels.
    pub(crate) text: String,
    /// As it stood in the composer, all chips as labels.
    pub(crate) shown: String,
    /// What the history keeps of it.
    pub(crate) remembered: String,
    /// The images that it mentions, by their numbers.
    pub(crate) images: Vec<Image>,
}

/// The composer as lines.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// Its lines.
    pub(crate) lines: Vec<Line<'static>>,
    /// Where the terminal's cursor belongs in them, as (column, line).
    pub(crate) cursor: (usize, usize),
}

/// The composer.
#[derive(Debug)]
pub(crate) struct Composer {
    buffer: Buffer,
    /// What was being written when something else had to be.
    aside: Option<Buffer>,
    chips: Chips,
    kill: Kill,
    history: History,
    search: Option<Search>,
    vim: Option<Vim>,
    view: View,
    placeholder: String,
}

/// What was erased or yanked last, to be put somewhere else.
#[derive(Debug, Default)]
struct Kill {
    text: String,
    /// Whether it is whole lines; only vim's commands tell the difference.
    is_lines: bool,
    /// Whether the last key killed too, so that the next kill adds to it.
    chains: bool,
}

impl Composer {
    /// An empty one. The history is given oldest first.
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

    /// Takes a key.
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

    /// Takes what the terminal says was pasted. A long text becomes a chip.
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
        // Without a mark that is free, the text stands for itself.
        match self.chips.add(Content::Text(pasted.clone()), self.buffer.text()) {
            Some(mark) => self.put(mark.encode_utf8(&mut [0; 4])),
            None => self.put(&pasted),
        }
    }

    /// Puts a chip for the image at the cursor.
    pub(crate) fn attach(&mut self, image: Image) {
        if let Some(mark) = self.chips.add(Content::Image(image), self.buffer.text()) {
            self.put(mark.encode_utf8(&mut [0; 4]));
        }
    }

    /// Puts text at the cursor as it is, however long.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, text: &str) {
        self.put(&chips::harmless(text));
    }

    /// Replaces all that is written. Labels of the chips that were there are chips again, so that a text can go through
    /// an external editor as [`Self::shown`].
    pub(crate) fn set(&mut self, text: &str) {
        self.search = None;
        self.history.stay();
        let text = self.chips.recognise(chips::harmless(text), self.buffer.text());
        self.buffer.replace_all(&text);
        self.settle();
    }

    /// Puts what is written aside, chips and all, because what is written next is something else. Whether that was to be
    /// done: what is aside already stays.
    pub(crate) fn put_aside(&mut self) -> bool {
        let is_first = self.aside.is_none();
        if is_first {
            self.aside = Some(self.buffer.take());
            self.history.stay();
            self.view.forget_column();
        }
        is_first
    }

    /// Whether something was put aside, if only an empty text.
    pub(crate) fn has_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Takes up what was put aside, if something was. What was written since then is in the history.
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

    /// Writes a message again, before the one that is being written: its images are chips where their labels stand, and
    /// behind it those without one.
    pub(crate) fn write_again(&mut self, said: &str, images: Vec<Image>) {
        self.search = None;
        self.history.stay();
        // An answer that is being written is no message.
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

    /// Empties the composer, and remembers what was written.
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

    /// Empties the composer without sending. Whether there was something; it is the newest of the history then, chips
    /// included.
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

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// What is written, with one private-use character for each chip.
    pub(crate) fn text(&self) -> &str {
        self.buffer.text()
    }

    /// What is written, chips as labels.
    pub(crate) fn shown(&self) -> String {
        self.chips.show(self.buffer.text()).into_owned()
    }

    /// Where the cursor is, in bytes of [`Self::text`].
    #[cfg(test)]
    pub(crate) fn cursor(&self) -> usize {
        self.buffer.cursor()
    }

    /// What is seen, dimly, where nothing is written.
    pub(crate) fn set_placeholder(&mut self, placeholder: &str) {
        self.placeholder = text::one_line(placeholder);
    }

    /// The word being written that asks for a completion: `@…` where a word begins, and else a line that begins with
    /// `/` at the very beginning.
    pub(crate) fn completion_query(&self) -> Option<CompletionQuery> {
        if self.search.is_some() || self.is_normal() {
            return None;
        }
        completion::query(self.buffer.text(), self.buffer.cursor()).map(|(query, _)| query)
    }

    /// Replaces what asks: a command line by another one, a file by the mention of the path.
    pub(crate) fn complete(&mut self, with: &str) {
        let text = self.buffer.text();
        let Some((query, mut range)) = completion::query(text, self.buffer.cursor()) else {
            return;
        };
        let with = match query {
            CompletionQuery::Command(_) => chips::harmless(with),
            CompletionQuery::File(_) => completion::mention(&chips::harmless(with)),
        };
        // The space that a completion ends with may be there already.
        if with.ends_with(' ') && cluster::at(text, range.end) == " " {
            range.end += 1;
        }
        self.buffer.replace(range, &with, Kind::Whole);
    }

    /// Makes the pasted text of a chip at the cursor, or directly before it, a text that can be edited. Whether there
    /// is one.
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

    /// Puts text that is harmless, or has marks on purpose, at the cursor.
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
