//! Settings of the HTTP server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::Word;

/// SRV-3: addresses, certificate and trusted proxy of `windlass serve`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerSettings {
    /// Address to listen on.
    pub listen: Option<SocketAddr>,
    /// Further host names of the server.
    pub names: Vec<String>,
    /// File with the certificate and those of its issuers.
    pub tls_cert: Option<PathBuf>,
    /// File with the private key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// Proxy whose identity header is believed.
    pub trust_proxy: Option<IpAddr>,
    /// Header in which the proxy names the user.
    pub identity_header: Option<String>,
    /// Users that the proxy may name, each with optional scopes.
    pub identities: Vec<String>,
    /// DIST-7: limits of the named users.
    pub limits: UserLimits,
    /// DIST-7: the audit log.
    pub audit: AuditSettings,
    /// WEB-6: true if push services may have private addresses.
    pub push_private: bool,
    /// Settings of a server of a cluster.
    pub cluster: ClusterSettings,
}

/// DIST-1: a server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSettings {
    /// Address at which other servers reach this one.
    pub address: Option<String>,
    /// Places that it has.
    pub places: Vec<String>,
    /// File with the secret that the servers share.
    pub secret_file: Option<PathBuf>,
    /// NATS servers that carry what goes from server to server; `None` if they reach each other.
    pub carrier: Option<String>,
    /// File with the credentials for them.
    pub carrier_credentials_file: Option<PathBuf>,
}

/// DIST-7: limits of users per day.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserLimits {
    /// Limits of every named user without an entry for the same.
    pub default: DailyLimits,
    /// Limits by name; `local` is the user who runs the server.
    pub users: BTreeMap<String, DailyLimits>,
    /// Time zone in which a day starts; UTC if `None`.
    pub zone: Option<String>,
}

/// Limits of one user per day.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DailyLimits {
    /// Maximum cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
    /// Maximum number of requests of turns.
    pub turns: Option<u64>,
}

/// DIST-7: settings of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditSettings {
    /// Sessions whose approvals and effects are recorded.
    pub scope: AuditScope,
    /// Days after which rows are removed; never if `None`.
    pub days: Option<u64>,
}

/// Sessions whose approvals and effects are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditScope {
    /// Those of named users.
    #[default]
    Users,
    /// All.
    All,
}

impl Word for AuditScope {
    const WORDS: &'static [(&'static str, Self)] = &[("users", Self::Users), ("all", Self::All)];
}
