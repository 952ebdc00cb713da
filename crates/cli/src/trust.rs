//! Asks the user whether to trust a project's own files.

mod command;
mod offer;
mod question;
mod review;

pub(crate) use self::command::{TrustChange, command};
pub(crate) use self::offer::offer;
