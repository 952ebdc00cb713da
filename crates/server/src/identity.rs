//! SRV-3: people whom a proxy in front of the server has signed in. The proxy names them in a header, which is believed
//! only in connections from the proxy's own address.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use windlass_core::clock::Timestamp;
use windlass_core::log::UserName;

use crate::checks::{Peer, printable};
use crate::credentials::{Credential, CredentialKind, Scope};
use crate::problem::Problem;

/// A proxy that signs people in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxy {
    /// Its address.
    pub peer: IpAddr,
    /// Header in which it names the user.
    pub header: HeaderName,
    /// Users that it may name.
    pub users: Vec<ProxyUser>,
}

/// A user that the proxy may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyUser {
    /// Name as in the header; anybody if `None`.
    pub name: Option<String>,
    /// Permissions of the user.
    pub scopes: Vec<Scope>,
}

impl TrustedProxy {
    /// Removes the header from a request that does not come from the proxy.
    pub(crate) fn strip(&self, request: &mut Request) {
        let peer = request.extensions().get::<Peer>();
        let is_proxy = peer.is_some_and(|Peer(peer)| peer.ip().to_canonical() == self.peer.to_canonical());
        if !is_proxy {
            request.headers_mut().remove(&self.header);
        }
    }

    /// Returns the user of a request whose header was left in place; `None` if it names nobody.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Result<Option<Credential>, Problem> {
        let mut values = headers.get_all(&self.header).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            let text = format!("the header `{}` appears more than once", self.header);
            return Err(refused(text).fixed_by("let the proxy overwrite the header that clients send"));
        }
        let Some(name) = value.to_str().ok().map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let Some(user) = self.find(name) else {
            let text = format!("`{}` may not use this server", printable(name));
            return Err(refused(text).fixed_by(format!("windlass serve --identity {}", printable(name))));
        };
        // The local user is whoever runs the server, and nobody the proxy names.
        let own = name
            .parse::<UserName>()
            .map_err(|error| refused(error.to_string()))?;
        if own.is_local() {
            let text = format!("`{own}` is the user who runs this server");
            return Err(refused(text).fixed_by("configure the proxy to send a different name for this user"));
        }
        Ok(Some(Credential {
            user: own,
            id: format!("proxy:{name}"),
            kind: CredentialKind::Proxy,
            name: printable(name),
            scopes: user.scopes.clone(),
            created_at: Timestamp(0),
            expires_at: None,
        }))
    }

    fn find(&self, name: &str) -> Option<&ProxyUser> {
        let exact = self.users.iter().find(|user| user.name.as_deref() == Some(name));
        exact.or_else(|| self.users.iter().find(|user| user.name.is_none()))
    }

    /// Returns true if a user of this name has a scope.
    pub(crate) fn allows(&self, name: &str, scope: Scope) -> bool {
        let scopes = self.find(name).map(|user| user.scopes.as_slice());
        scopes.is_some_and(|scopes| scopes.contains(&scope) || scopes.contains(&Scope::Admin))
    }
}

fn refused(text: String) -> Problem {
    Problem::refused(StatusCode::FORBIDDEN, "identity", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> TrustedProxy {
        TrustedProxy {
            peer: "10.0.0.2".parse().unwrap(),
            header: HeaderName::from_static("x-forwarded-user"),
            users: vec![ProxyUser {
                name: Some("ann".to_owned()),
                scopes: vec![Scope::Read],
            }],
        }
    }

    fn request(peer: &str) -> Request {
        let mut request = Request::new(axum::body::Body::empty());
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        let user = axum::http::HeaderValue::from_static("ann");
        request.headers_mut().insert("x-forwarded-user", user);
        request
    }

    /// SRV-3: the header of any other peer is removed, whatever form its address has.
    #[test]
    fn only_the_proxy_names_users() {
        for (peer, is_kept) in [
            ("10.0.0.2:1", true),
            ("[::ffff:10.0.0.2]:1", true),
            ("10.0.0.3:1", false),
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
        ] {
            let mut request = request(peer);
            proxy().strip(&mut request);
            let user = proxy().user(request.headers()).unwrap();
            assert_eq!(user.is_some(), is_kept, "{peer}");
        }
    }
}
