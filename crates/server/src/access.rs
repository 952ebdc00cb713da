//! Addresses and names under which the server answers.

use std::net::{IpAddr, SocketAddr};

/// SRV-3: who may connect, and under which names.
#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// Address the server listens on.
    pub listen: SocketAddr,
    /// Further host names, with or without a port, under which the server is reached.
    pub names: Vec<String>,
    /// True if the server speaks TLS, or a proxy in front of it does.
    pub is_https: bool,
    /// True if a proxy in front of the server speaks TLS: the names are the proxy's, with its port.
    pub is_behind_proxy: bool,
}

impl ServerAccess {
    /// Returns true if a connection from this address is accepted: any if the server listens on a public address,
    /// and otherwise this machine.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || !self.listen.ip().to_canonical().is_loopback()
    }

    /// Returns true if the server is called by one of its names.
    pub(crate) fn is_own_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.hosts().any(|own| own == host)
    }

    /// Returns true if a page of this origin is a page of this server.
    pub(crate) fn is_own_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.is_own_host(host))
    }

    fn hosts(&self) -> impl Iterator<Item = String> + '_ {
        let port = self.listen.port();
        let local = ["127.0.0.1", "[::1]", "localhost"].map(|name| format!("{name}:{port}"));
        let bound = (!self.listen.ip().is_unspecified()).then(|| self.listen.to_string());
        let named = self.names.iter().flat_map(move |name| {
            let name = name.to_ascii_lowercase();
            let with_port = format!("{name}:{port}");
            [name, with_port]
        });
        local.into_iter().chain(bound).chain(named)
    }

    /// Returns the URL to show.
    pub fn url(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let port = self.listen.port();
        match self.names.first() {
            Some(name) if name.contains(':') || self.is_behind_proxy => format!("{scheme}://{name}"),
            Some(name) => format!("{scheme}://{name}:{port}"),
            None if self.listen.ip().is_unspecified() => format!("{scheme}://127.0.0.1:{port}"),
            None => format!("{scheme}://{}", self.listen),
        }
    }

    /// Returns the name of the cookie. Browsers share cookies between the ports of a host, so the port is part of it.
    pub(crate) fn cookie(&self) -> String {
        let prefix = if self.is_https { "__Host-" } else { "" };
        format!("{prefix}windlass-{}", self.listen.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(listen: &str, names: &[&str]) -> ServerAccess {
        ServerAccess {
            listen: listen.parse().unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            is_https: false,
            is_behind_proxy: false,
        }
    }

    /// SRV-3: only the server's own names pass, so that a name that was rebound to it does not.
    #[test]
    fn only_own_names_pass() {
        let local = access("127.0.0.1:4000", &["box.example"]);
        for host in [
            "127.0.0.1:4000",
            "[::1]:4000",
            "LOCALHOST:4000",
            "box.example",
            "box.example:4000",
        ] {
            assert!(local.is_own_host(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:4001",
            "localhost",
            "",
            "box.example.evil",
        ] {
            assert!(!local.is_own_host(host), "{host}");
        }
        assert!(local.is_own_origin("http://localhost:4000"));
        assert!(local.is_own_origin("https://box.example"));
        for origin in [
            "null",
            "http://evil.example",
            "file://",
            "http://localhost:4001",
            "localhost:4000",
        ] {
            assert!(!local.is_own_origin(origin), "{origin}");
        }
    }

    /// SRV-3: a server on loopback accepts only this machine.
    #[test]
    fn loopback_stays_here() {
        let local = access("127.0.0.1:4000", &[]);
        assert!(local.admits("127.0.0.1".parse().unwrap()));
        assert!(local.admits("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!local.admits("192.0.2.1".parse().unwrap()));
        assert!(access("0.0.0.0:4000", &[]).admits("192.0.2.1".parse().unwrap()));
    }
}
