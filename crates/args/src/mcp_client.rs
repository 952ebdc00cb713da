//! Command-line arguments of `windlass mcp` for the servers that Windlass uses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::SettingsOptions;

/// Text at the end of `windlass mcp --help`.
pub(crate) const MCP_HELP: &str = "\
Servers are in `mcp.json`, beside your settings file; `add` writes them there. They can also be in
your settings as [mcp_servers.NAME], and in the `.mcp.json` of a project that you trust.

Examples:
  windlass mcp add memory -- npx -y @modelcontextprotocol/server-memory
  windlass mcp add time -- uvx mcp-server-time
  windlass mcp add docs --url https://example.org/mcp --header \"Authorization: Bearer ${DOCS_TOKEN}\"
  windlass mcp import claude         take over the servers of another agent
  windlass mcp test memory           start it, and list its tools
  windlass mcp login docs            log in with a browser";

#[derive(Debug, Subcommand)]
pub enum McpClientCommand {
    /// Add a server: a command after `--`, or an address with --url
    Add(McpAddOptions),
    /// List the servers of this folder: where they come from, and whether they are used
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Remove a server that `add` or `import` wrote
    Remove {
        /// The server
        name: String,
    },
    /// Start a server as a session would, list its tools, and stop it
    Test {
        /// The server [default: all of them]
        name: Option<String>,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Log in to a server with a browser; the token is stored readable only by you
    Login {
        /// The server
        name: String,
        /// Scope to ask for; may be repeated [default: those that the server names]
        #[arg(long)]
        scope: Vec<String>,
        /// Client that is registered with the authorization server
        #[arg(long, value_name = "ID")]
        client_id: Option<String>,
        /// Environment variable with the secret of that client
        #[arg(long, value_name = "VARIABLE", requires = "client_id")]
        client_secret_env: Option<String>,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Forget the token of a server
    Logout {
        /// The server
        name: String,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Allow a server to run without a sandbox, as its configuration says
    Approve {
        /// The server
        name: String,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Copy the servers of another agent into `mcp.json`; those with a known name are left out
    Import {
        /// The agent
        from: McpImportFrom,
        /// Its file [default: where the agent keeps it]
        file: Option<PathBuf>,
    },
}

/// An agent with MCP servers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpImportFrom {
    Claude,
    Codex,
}

#[derive(Debug, Args)]
pub struct McpAddOptions {
    /// Name of the server
    pub name: String,
    /// Program and arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Address of the server
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// Header of every request, as "Name: value"; may be repeated
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub header: Vec<String>,
    /// Environment variable of the program, as NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Run the program without the network
    #[arg(long)]
    pub no_network: bool,
    /// Write to the `.mcp.json` of this folder
    #[arg(long)]
    pub project: bool,
}
