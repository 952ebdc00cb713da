//! The environment a session works in: its folder, settings, trust, tools, models, sandbox and permissions.
//!
//! The service runs sessions and is handed this crate's implementation of its ports; the binary chooses the folder and
//! the settings. Nothing here reads arguments, prints, or knows a front end.

pub mod assemble;
pub mod backoff;
pub mod command_files;
pub mod connect;
pub mod context_parts;
pub mod grants;
pub mod instructions;
pub mod prompt;
pub mod reach;
pub mod reload;
pub mod remembered;
pub mod roster;
pub mod session_bench;
pub mod settings_again;
