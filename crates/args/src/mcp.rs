//! Arguments of `windlass mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::mcp_client::McpClientCommand;
use super::{ModeOptions, SettingsOptions};

/// Text at the end of `windlass mcp serve --help`.
const SERVE_HELP: &str = "\
Another agent starts this command; there is nothing to type here:
  claude mcp add windlass -- windlass mcp serve
  codex mcp add windlass -- windlass mcp serve
  npx @modelcontextprotocol/inspector --cli windlass mcp serve --method tools/list

Over HTTP, for several clients; each needs a token:
  windlass mcp serve --http 127.0.0.1:4848
  windlass token create other-agent --scope write --scope approve

Tools: start_session, continue_session, steer_session, cancel_session, wait_for_session,
read_session, list_sessions. Permission requests are shown by the client as forms. A client
without forms, or a token without the scope `approve`, cannot approve anything: then the answer is
no. docs/mcp-serve.md describes the rest.";

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Offer Windlass itself as an MCP server: other agents start and follow sessions through its tools
    #[command(after_help = SERVE_HELP)]
    Serve(McpServeOptions),
    #[command(flatten)]
    Client(McpClientCommand),
}

#[derive(Debug, Args)]
pub struct McpServeOptions {
    /// Serve streamable HTTP at this address, under /mcp, instead of standard input and output
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Another name under which clients reach the server, such as `box.lan`; can be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    pub name: Vec<String>,
    /// Folder of sessions that name none
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsOptions,
    #[command(flatten)]
    pub mode: ModeOptions,
    /// Work in your home folder, or in a folder above it, if a client names it
    #[arg(long)]
    pub allow_home: bool,
}

impl McpServeOptions {
    /// Returns the settings that the flags stand for.
    pub fn flags(&self) -> Vec<(&'static str, &'static str, String)> {
        self.mode.flags(self.allow_home)
    }
}
