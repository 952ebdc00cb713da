//! The terminal front end: the conversation in the terminal's own scrollback, a live area below it.
//!
//! It sees a [`windlass_api::Backend`] and nothing behind it. One loop takes one kind of event; components have
//! `handle` and `render` and know nothing of each other; a painter writes only what changed.
//!
//! Deliberately absent: files, processes, the environment and the clock. What the terminal's machine has to offer comes
//! through the [`Desktop`] port.

mod composer;
mod diff;
mod markdown;
mod paint;
pub mod text;
mod theme;
mod tty;

pub use self::theme::{Palette, Theme};
