//! The MCP client: servers of tools, resources and prompts, over standard streams and HTTP.
//!
//! - [`McpServerConfig`] describes a server; [`file::parse`] reads the `mcpServers` shape of other programs.
//! - [`McpServer`] is a server that runs, or should: it is started in the background, restarted a few times if it
//!   ends, and keeps its last error and its log.
//! - [`ServerSet`] is the servers of a session. It offers their tools, and [`ServerSet::search_tools`] for the tools
//!   that are too many to offer.
//! - [`Launcher`] starts the process of a server; the caller confines it.
//!
//! Nothing of a server is trusted: names, descriptions, schemas, sizes and hints are bounded and checked here, and
//! every phase has a limit of its own. Types of the protocol library stay inside this crate.

mod client;
mod config;
mod content;
mod definitions;
mod elicit;
mod era;
pub mod file;
mod http;
mod meter;
mod naming;
pub mod oauth;
mod repair;
mod sampling;
mod schema;
mod search;
mod server;
mod set;
mod sse;
mod tool;

pub use self::config::{
    EraChoice, HttpEndpoint, Launcher, McpError, McpServerConfig, McpTransport, ProcessAccess,
    SamplingLimits, ServerLimits, ServerOrigin, StdioServer, ToolFilter,
};
pub use self::content::plain as plain_text;
pub use self::definitions::Definitions;
pub use self::era::EraMemory;
pub use self::naming::server_part;
pub use self::server::{McpServer, Phase, PromptInfo, ResourceInfo, ServerReport};
pub use self::set::{Environment, ServerSet};
