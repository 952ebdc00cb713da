//! Overlays: pickers, a pager, a prompt for a key.

mod fleet;
mod pager;
mod picker;
mod secret;

use crossterm::event::KeyEvent;
use ratatui::text::Line;

pub(crate) use self::fleet::fleet;
pub(crate) use self::pager::Pager;
pub(crate) use self::picker::{Picker, Row, Subject};
pub(crate) use self::secret::Secret;
use crate::paint::Picture;
use crate::theme::Theme;

/// A view that takes the keys. One that fills the terminal hides the conversation; a shorter one takes the place of
/// the input.
pub(crate) trait Overlay: Send {
    /// Handles a key. `rows` is the height of the terminal.
    fn handle(&mut self, key: KeyEvent, rows: usize) -> Step;

    /// Handles pasted text.
    fn paste(&mut self, _text: &str) -> Step {
        Step::Stay
    }

    /// Receives the rows it requested.
    fn rows(&mut self, _of: Subject, _rows: Vec<Row>) {}

    /// Receives the preview of a row.
    fn preview(&mut self, _key: &str, _lines: Vec<Line<'static>>) {}

    /// Receives a line that sums up all rows.
    fn sum_up(&mut self, _of: Subject, _summary: String) {}

    /// Renders the overlay.
    fn render(&mut self, size: (usize, usize), theme: Theme) -> Picture;
}

/// Outcome of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The overlay stays open.
    Stay,
    /// The overlay closes.
    Close,
    /// The overlay closes and requests an action.
    Do(OverlayAction),
    /// The overlay stays open and requests an action.
    Want(OverlayAction),
}

/// KeyAction requested by an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OverlayAction {
    /// The row with this key was chosen.
    Choose(Subject, String),
    /// The row with this key was chosen with the alternative key: a session is forked, a checkpoint also
    /// rewinds the conversation, a message keeps the files.
    ChooseOther(Subject, String),
    /// The preview of the row with this key is needed.
    Preview(Subject, String),
    /// Rows matching these words are needed.
    Find(Subject, String),
    /// The user writes to the sub-agent with this key.
    Steer(String),
    /// A key was entered for a provider.
    Connect {
        /// Name of the provider.
        provider: String,
        /// API key.
        key: Typed,
    },
}

/// Text that was typed hidden and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Typed(pub(crate) String);

impl std::fmt::Debug for Typed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Typed(…)")
    }
}
