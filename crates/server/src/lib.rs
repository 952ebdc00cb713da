//! `windlass serve`: sessions over HTTP, for the web page, other machines and programs.
//!
//! The server is a front end like the others: it sees a [`Backend`](windlass_api::Backend) and the ports of the
//! store, and nothing behind them. Requests and answers are JSON, events are server-sent events, and
//! `/api/openapi.json` describes every route.
//!
//! The types to know: [`Server`], [`ServerConfig`], [`ServerPorts`], [`ServerAccess`], [`Credentials`], and [`RemoteBackend`],
//! which is a server seen from a client.
//!
//! Every request passes the checks of `checks.rs`, in a fixed order, before a handler sees it. Every session that
//! somebody watches has one `Hub`, which reads the session once and passes its events to all connections.
//!
//! Deliberately absent: CORS headers, tokens in URLs, and any route that a form of another page could call.

mod access;
mod accounts;
mod app;
mod carried;
mod checks;
mod client;
mod coarse;
mod connection;
mod credentials;
mod diff;
mod exposure;
mod guarded;
mod hub;
mod identity;
mod metrics;
mod openai;
mod owner;
pub mod page;
mod problem;
mod push;
mod questions;
mod queue;
mod routes;
mod sends;
mod server;
#[cfg(test)]
#[path = "../build/shake.rs"]
#[allow(clippy::string_slice)]
mod shake;
#[cfg(test)]
#[path = "../build/shorten.rs"]
#[allow(clippy::indexing_slicing)]
mod shorten;
mod snapshot;
#[cfg(test)]
#[path = "../build/squeeze.rs"]
#[allow(clippy::string_slice, dead_code)]
mod squeeze;
mod tls;
mod user_backend;

pub use self::access::ServerAccess;
pub use self::accounts::{Accounts, Today};
pub use self::app::{Files, ImportRefusal, ImportedSession, ServerPorts, SessionImports, UploadedSession};
pub use self::client::{Login, RemoteBackend};
pub use self::credentials::{Credential, CredentialKind, Credentials, NewCredential, Scope};
pub use self::exposure::{Exposure, ExposureError, ExposureOptions};
pub use self::guarded::{Guarded, TokenHolder};
pub use self::identity::{ProxyUser, TrustedProxy};
pub use self::push::{PushFile, PushPorts};
pub use self::server::{Server, ServerConfig, ServerError};
pub use self::tls::{TlsError, TlsFiles};
pub use self::user_backend::UserBackend;
