//! The MCP client against foreign servers: the client scenarios of the public conformance suite, with their authorization
//! servers, and the well-known servers of npm and PyPI.

use anyhow::{Context, Result};

use super::{mcp_serve, node, sdk};
use crate::child;
use crate::repo::Root;

/// The well-known servers.
const SERVERS: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];
const REQUIREMENTS: &str = "tests/mcp/requirements.txt";
const TEST: &str = "tests/mcp/test_client.py";

/// Builds the binary and runs it against the servers.
pub(super) fn test(root: &Root) -> Result<()> {
    let bin = node::node(root)?;
    let suite = node::packages(root, "mcp-serve", mcp_serve::PACKAGES)?;
    let servers = node::packages(root, "mcp-servers", SERVERS)?;
    let python = sdk::environment_of(root, "mcp-venv", REQUIREMENTS)?;
    let programs = python.parent().context("the interpreter has a folder")?;
    child::run(child::cargo(root).args(super::BUILD))?;
    child::run(
        child::command(root, "python3")
            .arg(root.join(TEST))
            .env("PATH", mcp_serve::path_with(&bin))
            .env("WINDLASS_BIN", root.target_dir()?.join("debug/windlass"))
            .env("MCP_MODULES", &suite)
            .env("MCP_SERVERS", &servers)
            .env("MCP_PYTHON", programs)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}
