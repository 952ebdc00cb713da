//! Command-line arguments of `windlass serve` and `windlass token`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_core::log::UserName;

use super::{ModeOptions, SettingsOptions, UserChoice};

/// Text at the end of `windlass serve --help`.
pub(crate) const SERVE_HELP: &str = "\
  windlass serve                          this machine only; prints a link that signs you in
  windlass serve --listen 0.0.0.0:4747 --name box.lan      in your network, under this name
  windlass serve --listen 0.0.0.0:4747 --tls-cert box.pem --tls-key box.key     with HTTPS
  windlass serve --cluster --store postgres://…           with other servers; see `windlass cluster --help`
  windlass token create ci --scope read --scope write      a token for a program
  windlass token link                     another login link, for your phone

The link works once, for ten minutes. Every request needs the cookie it gives, or a token; requests
under another name or from pages of other sites are refused. Outside a network you trust, use HTTPS
(--tls-cert and --tls-key), put a proxy with TLS before the server (--https), or use an SSH tunnel.

Sessions continue when a browser leaves, and when the server is restarted. Ctrl+C stops the server once
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

/// Text at the end of `windlass attach --help`.
pub(crate) const ATTACH_HELP: &str = "\
  windlass attach http://127.0.0.1:4747               the last session of your own server
  windlass attach 'http://box.lan:4747/#t=wl_…'       with a login link of that server
  WINDLASS_TOKEN=wl_… windlass attach https://box.example --session \"fix the parser\"

The session runs on the server, with its files and its sandbox; this terminal shows it. Others can
use it at the same time, and leaving stops nothing. `windlass --resume` does the same for
a session that your own server on this machine has open.";

#[derive(Debug, Args)]
pub struct AttachOptions {
    /// Address of the server, or a login link
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:4747")]
    pub url: String,
    /// The session: its name, or the start of its id [default: the last one]
    #[arg(short, long, value_name = "SESSION", conflicts_with = "new")]
    pub session: Option<String>,
    /// Start a new session
    #[arg(long)]
    pub new: bool,
    /// Plain line-by-line output, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Use the whole terminal instead of its last lines
    #[arg(long, conflicts_with = "plain")]
    pub full_screen: bool,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

#[derive(Debug, Args)]
pub struct ServeOptions {
    /// Address and port; other machines can connect only if it is not a loopback address [default: server.listen in the settings, or 127.0.0.1:4747]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Host name under which the server is reached, as in `box.lan`; may be repeated
    #[arg(long, value_name = "HOST")]
    pub name: Vec<String>,
    /// Speak HTTPS with this certificate: a PEM file, with the certificates of the issuers after it
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate: a PEM file, not encrypted
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// A proxy before the server speaks TLS: cookies are marked as secure
    #[arg(long)]
    pub https: bool,
    #[command(flatten)]
    pub proxy: ProxyOptions,
    /// Also answer as an OpenAI server: /v1/models, /v1/chat/completions and /v1/responses, with a token as the API key
    #[arg(long)]
    pub openai: bool,
    /// Folder of new sessions that name none [default: the current folder]
    #[arg(short = 'C', long = "cd", value_name = "FOLDER")]
    pub cd: Option<PathBuf>,
    /// Allow sessions in your home folder, or in a folder above it
    #[arg(long)]
    pub allow_home: bool,
    #[command(flatten)]
    pub cluster: ClusterOptions,
    #[command(flatten)]
    pub mode: ModeOptions,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

/// Text at the end of `windlass audit --help`.
pub(crate) const AUDIT_HELP: &str = "\
Each row contains the hash of the row before it, so that `verify` finds rows that were removed or changed. Keep the
head that it prints elsewhere: `verify --head` then also finds rows removed from the end. docs/users.md says what is
recorded.

  windlass audit list --user ann --since 7d
  windlass audit export > audit.jsonl
  windlass audit verify";

/// Several servers over one store.
#[derive(Debug, Args)]
pub struct ClusterOptions {
    /// Share all sessions with the other servers over the same Postgres store, and take over those of lost ones
    #[arg(long)]
    pub cluster: bool,
    /// Address at which other servers reach this one [default: a free port of loopback]
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    pub cluster_address: Option<String>,
    /// Place whose folders this server has: host:NAME, volume:NAME or any; may be repeated [default: host: and the name of this machine]
    #[arg(long, value_name = "PLACE", requires = "cluster", value_parser = place)]
    pub place: Vec<String>,
}

/// Checks the name of a place.
fn place(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("host:").or(text.strip_prefix("volume:"));
    match text == "any" || name.is_some_and(|name| !name.trim().is_empty()) {
        true => Ok(text.to_owned()),
        false => Err("expected `host:NAME`, `volume:NAME` or `any`".to_owned()),
    }
}

/// Text at the end of `windlass cluster --help`.
pub(crate) const CLUSTER_HELP: &str = "\
Examples:
  windlass --store postgres://… serve --cluster --cluster-address 10.0.0.5:7450
  windlass --store postgres://… cluster status

Servers over the same Postgres store share all sessions. A client may use any of them; if one stops,
another takes its turns over. docs/cluster.md describes set-up and guarantees.";

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// List the servers, their leases and places, and sessions that wait for a server
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A proxy that signs people in.
#[derive(Debug, Args)]
pub struct ProxyOptions {
    /// Address of a proxy that signs people in and names them in a header
    #[arg(long, value_name = "IP")]
    pub trust_proxy: Option<IpAddr>,
    /// The header, as in `X-Forwarded-User`; it is ignored from other addresses
    #[arg(long, value_name = "NAME")]
    pub identity_header: Option<String>,
    /// User that the proxy may name, with all scopes or with those after `=`; `*` is anybody; may be repeated
    #[arg(long, value_name = "USER[=SCOPE,…]")]
    pub identity: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it; it cannot be shown again
    Create {
        /// Name of the token, for the list
        name: String,
        /// Permission of the token; may be repeated [default: read]
        #[arg(long, value_enum)]
        scope: Vec<TokenScope>,
        /// User whose sessions it reaches [default: you, who run the server]
        #[arg(long, value_name = "NAME")]
        user: Option<UserName>,
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
        /// Permission of the browser; may be repeated [default: admin; with --user: read, write and approve]
        #[arg(long, value_enum)]
        scope: Vec<TokenScope>,
        /// User whom it signs in [default: you, who run the server]
        #[arg(long, value_name = "NAME")]
        user: Option<UserName>,
    },
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the last rows, one per line
    List(AuditOptions),
    /// Print all rows as JSON, one per line, with the hashes that chain them
    Export(AuditOptions),
    /// Find rows that were removed or changed
    Verify {
        /// Row that an earlier check printed as its head: also finds rows removed from the end
        #[arg(long, value_name = "NUMBER:HASH")]
        head: Option<String>,
    },
    /// Remove rows that are older than `server.audit_days`; the server does so when it starts
    Prune,
}

/// Selection of rows.
#[derive(Debug, Args)]
pub struct AuditOptions {
    /// Only rows of this user [default: all users]
    #[arg(long, value_name = "NAME", default_value = "*", hide_default_value = true)]
    pub user: UserChoice,
    /// Only rows of this session: its whole id
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only rows of this kind, such as approval_answered, call_started, login, token_created or admin_read
    #[arg(long, value_name = "KIND")]
    pub action: Option<String>,
    /// Only rows from a date on, or of the last time: 2026-01-31, 12h, 7d
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Maximum number of rows of `list`; 0 for all
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenScope {
    /// Read sessions and their events
    Read,
    /// Send messages and run commands
    Write,
    /// Answer permission requests and questions
    Approve,
    /// Everything, and manage tokens
    Admin,
}
