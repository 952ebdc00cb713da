//! Terminal front end: the conversation in the terminal's own scrollback, a live area below it.
//!
//! It sees a [`windlass_api::Backend`] and nothing behind it. One loop ([`run()`]) handles one kind of event at
//! a time; the app turns keys and events into frames and knows no terminal; a painter writes only the
//! differences.
//!
//! The types to know: [`Start`], [`Looks`], [`Desktop`], [`Exited`].
//!
//! Deliberately absent: files, processes, the environment and the clock. Access to the user's machine goes
//! through the [`Desktop`] port.

mod app;
mod composer;
mod desktop;
mod diff;
mod flow;
mod header;
mod keys;
mod markdown;
mod menu;
mod overlay;
mod paint;
mod pick;
mod progress;
mod request;
mod run;
mod status;
pub mod text;
mod theme;
mod transcript;
mod tty;

pub use self::app::commands::is_local_command;
pub use self::desktop::{Desktop, Image};
pub use self::keys::{Chord, KeyAction, KeyBindingError, KeyBindings};
pub use self::pick::pick;
pub use self::run::{Exited, Looks, Notifications, Start, Surface, TuiError, Why, run};
pub use self::theme::{Palette, Theme};
