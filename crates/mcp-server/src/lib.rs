//! Windlass as an MCP server: `windlass mcp serve`. Other agents start, continue, steer, cancel, watch and read
//! sessions through tools and resources.
//!
//! [`serve`] speaks over standard input and output, [`serve_http`] over streamable HTTP. Both pass requests to one
//! `Desk`, which knows the methods; `turn.rs` follows a turn until it ends or asks, and `ask.rs` turns permission
//! requests into elicitations. Both eras of the protocol are served: the `initialize` handshake of 2024-11-05 to
//! 2025-11-25, where the server sends `elicitation/create`, and the stateless 2026-07-28, where a call that needs an
//! answer ends with `input_required` and is repeated with it.
//!
//! Deliberately absent: slash commands and `!` lines. Whatever a client sends is text for the model, because the text
//! mostly comes from another model, and a command of the user is not asked about.

mod ask;
mod desk;
mod follow;
mod http;
mod http_session;
mod protocol;
mod resources;
mod signed;
mod stdio;
mod tools;
mod transcript;
mod turn;

pub use self::http::serve_http;
pub use self::stdio::serve;

/// Everything around sessions that a connection needs.
pub trait McpHost: Send + Sync {
    /// Returns the folder of a new session: the one given, or the default.
    ///
    /// # Errors
    /// A sentence for the user, if a session may not work there, or no model is set up.
    fn admit(&self, folder: Option<&str>) -> Result<String, String>;
}
