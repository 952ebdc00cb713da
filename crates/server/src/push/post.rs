//! Requests to push services. A browser names the address, so it is treated like any address of a stranger: HTTPS only,
//! no redirects, and no private addresses, neither written nor resolved.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};

/// Time for a connection, and for a whole request.
const CONNECT: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(30);
/// Longest address of a subscription.
const LONGEST: usize = 2_000;
/// Time the push service keeps a message for a browser that is off, in seconds.
const KEPT: &str = "86400";

/// Reason an address is not public.
type Objection = fn(IpAddr) -> Option<&'static str>;

/// A checked address of a subscription.
pub(super) struct Endpoint(Url);

impl Endpoint {
    /// Returns scheme, host and port.
    pub(super) fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

/// Answer of a push service.
pub(super) enum Sent {
    Taken,
    /// The subscription no longer exists.
    Gone,
    /// The push service does not want the message.
    Refused,
    /// The message can be sent again.
    Failed,
}

pub(super) struct Poster {
    objection: Objection,
    allows_private: bool,
    client: OnceLock<Option<Client>>,
}

impl Poster {
    pub(super) fn new(objection: Objection, allows_private: bool) -> Self {
        Self {
            objection,
            allows_private,
            client: OnceLock::new(),
        }
    }

    /// Checks an address of a subscription. The error says what would be right.
    pub(super) fn check(&self, endpoint: &str) -> Result<Endpoint, String> {
        if endpoint.len() > LONGEST {
            return Err(format!("an address of at most {LONGEST} bytes"));
        }
        let url = Url::parse(endpoint).map_err(|error| format!("not an address: {error}"))?;
        let Some(host) = url.host_str() else {
            return Err("an address with a host".to_owned());
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address without a user".to_owned());
        }
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = host == "localhost" || literal.as_ref().is_ok_and(IpAddr::is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if self.allows_private && is_local => {}
            _ => return Err("an address with https://".to_owned()),
        }
        if self.allows_private {
            return Ok(Endpoint(url));
        }
        if is_local || host.ends_with(".localhost") {
            return Err(format!("`{host}` is this machine; server.push_private allows it"));
        }
        match literal.ok().and_then(|address| (self.objection)(address)) {
            Some(what) => Err(format!(
                "`{host}` is not a public address ({what}); server.push_private allows it"
            )),
            None => Ok(Endpoint(url)),
        }
    }

    fn client(&self) -> Option<&Client> {
        let made = self.client.get_or_init(|| {
            let mut builder = Client::builder()
                .redirect(Policy::none())
                .no_proxy()
                .connect_timeout(CONNECT)
                .timeout(WHOLE);
            if !self.allows_private {
                builder = builder.dns_resolver(std::sync::Arc::new(PublicNames(self.objection)));
            }
            builder.build().ok()
        });
        made.as_ref()
    }

    /// Sends a message.
    pub(super) async fn post(
        &self,
        to: &Endpoint,
        authorization: &str,
        body: Vec<u8>,
        is_urgent: bool,
    ) -> Sent {
        let Some(client) = self.client() else {
            return Sent::Refused;
        };
        let request = client
            .post(to.0.clone())
            .header("authorization", authorization)
            .header("content-encoding", "aes128gcm")
            .header("content-type", "application/octet-stream")
            .header("ttl", KEPT)
            .header("urgency", if is_urgent { "high" } else { "normal" })
            .body(body);
        match request.send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Sent::Taken,
            Ok(StatusCode::NOT_FOUND | StatusCode::GONE) => Sent::Gone,
            Ok(status) if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => Sent::Failed,
            Ok(_) => Sent::Refused,
            Err(_) => Sent::Failed,
        }
    }
}

/// Resolves names to public addresses only.
struct PublicNames(Objection);

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let objection = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            // One private address among public ones is enough to refuse, because any of them may be used.
            if found.is_empty() || found.iter().any(|address| objection(*address).is_some()) {
                let why = format!("{} has no public address", name.as_str());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into());
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(address: IpAddr) -> Option<&'static str> {
        (!address.to_string().starts_with("9.")).then_some("private")
    }

    /// WEB-6: a subscription cannot make the server call addresses of its own network.
    #[test]
    fn addresses_are_checked() {
        let poster = Poster::new(objection, false);
        for wrong in [
            "",
            "push",
            "ftp://push.example/x",
            "http://push.example/x",
            "http://127.0.0.1:1/x",
            "https://localhost/x",
            "https://push.localhost/x",
            "https://127.0.0.1/x",
            "https://10.0.0.1/x",
            "https://[::1]/x",
            "https://2130706433/x",
            "https://user:word@push.example/x",
            "file:///etc/passwd",
        ] {
            assert!(poster.check(wrong).is_err(), "{wrong}");
        }
        for right in [
            "https://push.example/x",
            "https://9.9.9.9/x",
            "https://push.example:8443/x?y=z",
        ] {
            assert!(poster.check(right).is_ok(), "{right}");
        }
        let private = Poster::new(objection, true);
        assert!(private.check("http://127.0.0.1:1/x").is_ok());
        assert!(private.check("https://10.0.0.1/x").is_ok());
        assert!(private.check("http://push.example/x").is_err());
    }
}
