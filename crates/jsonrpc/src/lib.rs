//! JSON-RPC 2.0, one message per line: what `windlass acp` and `windlass mcp serve` have in common.
//!
//! [`read_messages`] parses the lines of an input as [`Incoming`] messages. An [`Outbox`] writes answers, notifications
//! and requests of ours, and matches the client's answers with them. Neither knows a method.

mod message;
mod outbox;

pub use self::message::{Incoming, RpcError, params, read_messages};
pub use self::outbox::{Gone, OpenRequests, Outbox};
