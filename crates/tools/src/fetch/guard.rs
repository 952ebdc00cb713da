//! Outgoing connections: names are resolved here, every address is checked, and connections go to checked
//! addresses only.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use super::address::objection;
use super::failure::innermost;
use super::target::Target;

const CONNECT: Duration = Duration::from_secs(10);

/// Future addresses of a lookup.
pub(crate) type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names. Answers must not be cached: each one is used for a single connection.
pub(crate) trait NameService: Send + Sync {
    /// Looks up all addresses of `host`.
    fn look_up(&self, host: &str) -> Lookup;
}

/// Name service of this machine.
pub(crate) struct SystemNames;

impl NameService for SystemNames {
    fn look_up(&self, host: &str) -> Lookup {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Reason a host is not contacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{host} is {address}, which is not a public address ({what})")]
    Address {
        host: String,
        address: IpAddr,
        what: &'static str,
    },
    #[error("{0} is this machine")]
    ThisMachine(String),
}

/// Checks hosts and addresses.
struct Guard {
    names: Arc<dyn NameService>,
    allowed_private_hosts: Vec<String>,
}

impl Guard {
    fn lets_in(&self, host: &str) -> bool {
        self.allowed_private_hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), Refusal> {
        match objection(address) {
            Some(what) if !self.lets_in(host) => Err(Refusal::Address {
                host: host.to_owned(),
                address,
                what,
            }),
            _ => Ok(()),
        }
    }
}

/// Resolver for connections.
struct Names(Arc<Guard>);

impl Resolve for Names {
    /// Resolves a name. One private address among public ones is enough to refuse, because any of them may be
    /// used.
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str();
            let found = guard.names.look_up(host).await?;
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            for address in &found {
                guard.judge(host, *address)?;
            }
            // Port 0 means the port of the URL.
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// Connections to checked addresses.
pub(super) struct Way {
    guard: Arc<Guard>,
    plain: OnceLock<Result<Client, String>>,
    encrypted: OnceLock<Result<Client, String>>,
}

impl Way {
    pub(super) fn new(names: Arc<dyn NameService>, allowed_private_hosts: Vec<String>) -> Self {
        Self {
            guard: Arc::new(Guard {
                names,
                allowed_private_hosts,
            }),
            plain: OnceLock::new(),
            encrypted: OnceLock::new(),
        }
    }

    /// Checks everything that is known without a lookup. Hosts that are addresses are checked nowhere else.
    pub(super) fn judge(&self, target: &Target) -> Result<(), Refusal> {
        let host = target.host();
        if let Some(address) = target.address() {
            return self.guard.judge(host, address);
        }
        let is_this_machine = host == "localhost" || host.ends_with(".localhost");
        if is_this_machine && !self.guard.lets_in(host) {
            return Err(Refusal::ThisMachine(host.to_owned()));
        }
        Ok(())
    }

    /// Returns the client for a target. Built on first use, because loading certificates takes time.
    pub(super) fn client(&self, target: &Target) -> Result<Client, String> {
        let kind = if target.is_encrypted() {
            &self.encrypted
        } else {
            &self.plain
        };
        kind.get_or_init(|| self.build(target.is_encrypted())).clone()
    }

    fn build(&self, encrypted: bool) -> Result<Client, String> {
        // An error means that a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            // A proxy would resolve names itself, where the addresses are not checked.
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            // No connection is reused, so that every request is checked against fresh addresses.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("Windlass/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Names(Arc::clone(&self.guard)));
        if !encrypted {
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|error| innermost(&error))
    }
}
