//! Screens that take the whole terminal for a while: lists to choose from, texts to read, a key to type.

mod pager;
mod picker;
mod secret;

use crossterm::event::KeyEvent;
use ratatui::text::Line;

pub(crate) use self::pager::Pager;
pub(crate) use self::picker::{Picker, Row, Subject};
pub(crate) use self::secret::Secret;
use crate::paint::Picture;
use crate::theme::Theme;

/// A screen.
pub(crate) trait Overlay: Send {
    /// Takes a key. `rows` is how tall the terminal is.
    fn handle(&mut self, key: KeyEvent, rows: usize) -> Step;

    /// Takes what was pasted.
    fn paste(&mut self, _text: &str) -> Step {
        Step::Stay
    }

    /// Takes rows that it asked for.
    fn rows(&mut self, _of: Subject, _rows: Vec<Row>) {}

    /// Takes the preview of a row.
    fn preview(&mut self, _key: &str, _lines: Vec<Line<'static>>) {}

    /// Draws it.
    fn render(&mut self, size: (usize, usize), theme: Theme) -> Picture;
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing more.
    Stay,
    /// It is over.
    Close,
    /// It is over, and this is to be done.
    Do(OverlayAction),
    /// It stays, and wants this.
    Want(OverlayAction),
}

/// What a screen has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OverlayAction {
    /// The row of this key was chosen.
    Choose(Subject, String),
    /// The row of this key was chosen, the other way: a session is forked, a rewind takes the conversation as well.
    ChooseOther(Subject, String),
    /// The row of this key is looked at.
    Preview(Subject, String),
    /// Rows for these words.
    Find(Subject, String),
    /// A key for a provider.
    Connect {
        /// The provider.
        provider: String,
        /// Its key.
        key: Typed,
    },
}

/// What was typed unseen, and stays so.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Typed(pub(crate) String);

impl std::fmt::Debug for Typed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Typed(…)")
    }
}
