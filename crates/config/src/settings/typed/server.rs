//! Settings of the HTTP server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// SRV-3: addresses, certificate and trusted proxy of `windlass serve`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// WEB-6: true if push services may have private addresses.
    pub push_private: bool,
}
