//! Command-line arguments of `windlass serve` and `windlass token`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{ModeOptions, SettingsOptions};

/// Text at the end of `windlass serve --help`.
pub(crate) const SERVE_HELP: &str = "\
  windlass serve                          on this machine only; prints a link that signs your browser in
  windlass serve --listen 0.0.0.0:4747 --name box.lan      in your network, under this name
  windlass token create ci --scope read --scope write      a token for a program
  windlass token link                     another login link, for your phone

The link works once, for ten minutes. Every request needs the cookie it gives, or a token; requests
under another name or from pages of other sites are refused. The server speaks HTTP: put a proxy
with TLS before it (--https), or use an SSH tunnel, outside a network you trust.

Sessions go on when a browser leaves, and when the server is restarted. Ctrl+C stops the server once
running turns have ended; a second Ctrl+C stops it at once.";

/// Text at the end of `windlass token --help`.
pub(crate) const TOKEN_HELP: &str = "\
  windlass token create phone --scope read --scope approve
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:4747/api/sessions
  windlass token list
  windlass token revoke phone

Scopes: read (sessions and events), write (messages and commands), approve (answers to permission
requests), admin (all of these, and tokens). Only a hash of a token is stored. A revoked one stops
working at once, also in open connections.";

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Address and port; other machines can connect only if it is not a loopback address
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4747")]
    pub(crate) listen: SocketAddr,
    /// Host name under which the server is reached, as in `box.lan`; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) name: Vec<String>,
    /// A proxy before the server speaks TLS: cookies are marked as secure
    #[arg(long)]
    pub(crate) https: bool,
    /// Folder of new sessions that name none [default: the current folder]
    #[arg(short = 'C', long = "cd", value_name = "FOLDER")]
    pub(crate) cd: Option<PathBuf>,
    /// Allow sessions in your home folder, or in a folder above it
    #[arg(long)]
    pub(crate) allow_home: bool,
    #[command(flatten)]
    pub(crate) mode: ModeOptions,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it cannot be shown again
    Create {
        /// Name of the token, for the list
        name: String,
        /// Permission of the token; may be repeated [default: read]
        #[arg(long, value_enum)]
        scope: Vec<TokenScope>,
        /// Days until it stops working [default: never]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        days: Option<u32>,
    },
    /// List tokens, browsers that are signed in, and unused login links
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, browser or link
    Revoke {
        /// Its id or its name
        token: String,
    },
    /// Print a login link for another browser; it works once, for ten minutes
    Link {
        /// Address of the server, as the browser reaches it
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4747")]
        url: String,
        /// Permission of the browser; may be repeated [default: admin]
        #[arg(long, value_enum)]
        scope: Vec<TokenScope>,
    },
}

/// Permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenScope {
    /// Read sessions and their events
    Read,
    /// Send messages and run commands
    Write,
    /// Answer permission requests and questions
    Approve,
    /// Everything, and manage tokens
    Admin,
}
