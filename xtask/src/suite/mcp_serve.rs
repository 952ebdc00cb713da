//! The suites of MCP against `windlass mcp serve`: the command line of the inspector over standard input and output,
//! and the server scenarios of the public conformance suite over HTTP.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::node;
use crate::child;
use crate::repo::Root;

/// The foreign clients.
pub(super) const PACKAGES: &[&str] = &[
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
];
/// Starts the server, adds its token to the suite's requests, and runs the scenarios.
const DRIVER: &str = "tests/mcp/serve.mjs";

/// Builds the binary and runs both clients against it.
pub(super) fn test(root: &Root) -> Result<()> {
    let bin = node::node(root)?;
    let modules = node::packages(root, "mcp-serve", PACKAGES)?;
    child::run(child::cargo(root).args(super::BUILD))?;
    let windlass = root.target_dir()?.join("debug/windlass");
    child::run(
        child::command(root, bin.join("node"))
            .arg(root.join(DRIVER))
            .env("PATH", path_with(&bin))
            .env("WINDLASS_BIN", windlass)
            .env("MCP_MODULES", modules),
    )
}

/// Returns `PATH` with a folder in front.
pub(super) fn path_with(folder: &Path) -> std::ffi::OsString {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::iter::once(folder.to_owned())
        .chain(std::env::split_paths(&rest))
        .collect();
    std::env::join_paths(folders).unwrap_or(rest)
}
