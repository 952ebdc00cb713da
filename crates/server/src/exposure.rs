//! SRV-3: the exposure of a server: its address and names, its certificate, and the proxy that it trusts, from options
//! that may contradict each other.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use axum::http::HeaderName;

use crate::credentials::Scope;
use crate::identity::{ProxyUser, TrustedProxy};
use crate::tls::TlsFiles;

/// Options of a server, as its user gave them.
#[derive(Debug, Clone, Default)]
pub struct ExposureOptions {
    /// Address to listen on; `127.0.0.1:4747` if `None`.
    pub listen: Option<SocketAddr>,
    /// Further host names.
    pub names: Vec<String>,
    /// True if a proxy speaks TLS.
    pub is_https: bool,
    /// File of the certificate.
    pub tls_cert: Option<PathBuf>,
    /// File of its key.
    pub tls_key: Option<PathBuf>,
    /// Address of a proxy that signs people in.
    pub trust_proxy: Option<IpAddr>,
    /// Header in which it names them.
    pub identity_header: Option<String>,
    /// Users that it may name: `USER`, `USER=SCOPE,…` or `*`.
    pub identities: Vec<String>,
}

/// The exposure of a server.
#[derive(Debug, Clone)]
pub struct Exposure {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Further host names under which the server is reached.
    pub names: Vec<String>,
    /// True if a proxy in front of the server speaks TLS.
    pub is_https: bool,
    /// Certificate with which the server itself speaks TLS.
    pub tls: Option<TlsFiles>,
    /// Proxy that signs people in.
    pub proxy: Option<TrustedProxy>,
}

/// Options that do not fit together, with what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExposureError(String);

impl Exposure {
    /// Checks options.
    ///
    /// # Errors
    /// When they do not fit together.
    pub fn new(options: ExposureOptions) -> Result<Self, ExposureError> {
        let fallback = SocketAddr::from(([127, 0, 0, 1], 4747));
        Ok(Self {
            listen: options.listen.unwrap_or(fallback),
            tls: tls(&options)?,
            proxy: proxy(&options)?,
            names: options.names,
            is_https: options.is_https,
        })
    }

    /// Returns what whoever starts the server should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.listen.ip().to_canonical().is_loopback() && self.tls.is_none() && !self.is_https {
            warnings.push(
                "other machines can connect, and this server speaks plain HTTP: whoever can read the network sees your \
                 sessions and can copy your sign-in. Use --tls-cert and --tls-key, an SSH tunnel, or a proxy with TLS \
                 (--https)"
                    .to_owned(),
            );
        }
        if let Some(proxy) = &self.proxy
            && proxy.peer.to_canonical().is_loopback()
        {
            warnings.push(format!(
                "every program on this machine can connect from {} and name any user in `{}`; a proxy on another address \
                 is safer",
                proxy.peer, proxy.header
            ));
        }
        warnings
    }
}

fn wrong<T>(text: impl Into<String>) -> Result<T, ExposureError> {
    Err(ExposureError(text.into()))
}

fn tls(options: &ExposureOptions) -> Result<Option<TlsFiles>, ExposureError> {
    match (options.tls_cert.clone(), options.tls_key.clone()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) if options.is_https => {
            wrong("--https means that a proxy speaks TLS; with --tls-cert the server does: leave --https out")
        }
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => {
            wrong("a certificate needs its key: add --tls-key FILE, or server.tls_key to the settings")
        }
        (None, Some(_)) => {
            wrong("a key needs its certificate: add --tls-cert FILE, or server.tls_cert to the settings")
        }
    }
}

fn proxy(options: &ExposureOptions) -> Result<Option<TrustedProxy>, ExposureError> {
    let missing = match (
        options.trust_proxy,
        &options.identity_header,
        options.identities.as_slice(),
    ) {
        (None, None, []) => return Ok(None),
        (Some(peer), Some(header), users @ [_, ..]) => {
            let users: Result<Vec<_>, _> = users.iter().map(|user| user_of(user)).collect();
            let Ok(header) = HeaderName::try_from(header.as_str()) else {
                return wrong(format!("`{header}` is not the name of a header"));
            };
            return Ok(Some(TrustedProxy {
                peer,
                header,
                users: users?,
            }));
        }
        (None, ..) => "the address of the proxy: --trust-proxy IP, or server.trust_proxy",
        (_, None, _) => {
            "the header in which the proxy names the user: --identity-header NAME, or server.identity_header"
        }
        (.., []) => {
            "the users to accept from the proxy: --identity USER, or server.identities; `*` accepts any user"
        }
    };
    wrong(format!("a trusted proxy also needs {missing}"))
}

/// Parses `USER` or `USER=SCOPE,…`.
fn user_of(text: &str) -> Result<ProxyUser, ExposureError> {
    let (name, scopes) = match text.split_once('=') {
        None => (text, vec![Scope::Admin]),
        Some((name, list)) => {
            let mut scopes = Vec::new();
            for word in list.split(',') {
                let Some(scope) = Scope::ALL.into_iter().find(|scope| scope.name() == word.trim()) else {
                    let all = "read, write, approve, admin";
                    return wrong(format!("`{word}` in the identity `{text}` is not a scope: {all}"));
                };
                scopes.push(scope);
            }
            (name, scopes)
        }
    };
    match name.trim() {
        "" => wrong(format!("the identity `{text}` names no user")),
        "*" => Ok(ProxyUser { name: None, scopes }),
        name => Ok(ProxyUser {
            name: Some(name.to_owned()),
            scopes,
        }),
    }
}
