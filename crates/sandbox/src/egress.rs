//! Egress by host: a proxy that lets commands reach some hosts instead of the whole network.
//!
//! The commands have a network of their own, in which only this proxy listens. It accepts `CONNECT` and plain
//! HTTP requests, compares the name that the client asks for with the allowed hosts, resolves it here, and
//! passes the bytes on. It records every host that was asked for. A name that is not allowed gets a 403 that
//! says so.
//!
//! The proxy does not look into encrypted connections: whoever answers for an allowed name may pass data on.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Port of the proxy in the network of the commands.
pub(crate) const PORT: u16 = 3128;

/// Ports of an allowed host that names none.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// Maximum number of connections at a time.
const CONNECTIONS: usize = 256;
/// Maximum size of a request's head.
const HEAD: usize = 32 * 1024;
/// Time for a client to send the head of a request, and for a host to accept a connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a connection could not be accepted.
const PAUSE: rustix::event::Timespec = rustix::event::Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Maximum number of hosts that are recorded.
const RECORDED: usize = 1000;

/// The hosts that commands may reach, and those they asked for.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    allowed: Vec<Host>,
    denied: Vec<String>,
    asked: Mutex<Vec<Reached>>,
    open: AtomicUsize,
}

/// A host that a command asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Name and port.
    pub host: String,
    /// True if it is among the allowed hosts.
    pub allowed: bool,
}

/// An entry of the allowed hosts: `example.org`, `*.example.org` or either with `:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    name: String,
    below: bool,
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') => (name.to_owned(), Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let (name, below) = match name.strip_prefix("*.") {
            Some(name) => (name.to_owned(), true),
            None => (name, false),
        };
        let clean = |name: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !name.is_empty() && name.bytes().all(letter) && !name.starts_with('.')
        };
        clean(&name).then_some(Self { name, below, port })
    }

    fn covers(&self, name: &str, port: u16) -> bool {
        let same = match self.below {
            true => name
                .strip_suffix(&self.name)
                .is_some_and(|start| start.ends_with('.')),
            false => name == self.name,
        };
        same && match self.port {
            Some(allowed) => allowed == port,
            None => USUAL_PORTS.contains(&port),
        }
    }
}

/// Returns true if the text names a host as in `security.network`: a name, with `*.` in front for all names
/// below it, and with `:port` behind for another port than 80 and 443.
pub fn is_host(text: &str) -> bool {
    Host::parse(text).is_some()
}

/// Returns the entries of `security.network` that stand for a domain: the name and all names below it.
pub fn domain_hosts(domain: &str) -> [String; 2] {
    [domain.to_owned(), format!("*.{domain}")]
}

/// Returns true if a host is a domain or below it.
pub(crate) fn is_below(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.to_ascii_lowercase(), domain.trim().to_ascii_lowercase());
    host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the variables that make programs use the proxy.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let address = format!("http://127.0.0.1:{PORT}");
    let names = [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ];
    let proxy = names.map(|name| (name.to_owned(), address.clone()));
    // Recent versions of Node look at the others only then.
    proxy
        .into_iter()
        .chain([("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned())])
}

impl Egress {
    pub(crate) fn new(hosts: &[String], denied: &[String]) -> Self {
        Self {
            allowed: hosts.iter().filter_map(|host| Host::parse(host)).collect(),
            denied: denied.to_vec(),
            ..Self::default()
        }
    }

    /// Returns true if commands may reach a host, written as in a list of allowed ones. A port that is not
    /// named is that of HTTPS.
    pub(crate) fn lets_through(&self, host: &str) -> bool {
        Host::parse(host).is_some_and(|host| self.allows(&host.name, host.port.unwrap_or(443)))
    }

    /// Takes the hosts that were asked for since the last call.
    pub(crate) fn take(&self) -> Vec<Reached> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accepts connections, on a thread of its own, until the listener is shut down.
    pub(crate) fn serve(self: Arc<Self>, listener: TcpListener) {
        let work = move || {
            loop {
                let client = match listener.accept() {
                    Ok((client, _)) => client,
                    Err(error) if is_passing(&error) => {
                        let _ = rustix::event::poll(&mut [], Some(&PAUSE));
                        continue;
                    }
                    Err(_) => return,
                };
                if self.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let egress = Arc::clone(&self);
                let work = move || {
                    // The client learns of a failure by the end of its connection.
                    let _ = egress.attend(client);
                    egress.open.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().spawn(work).is_err() {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        let _ = thread::Builder::new()
            .name("windlass-egress".to_owned())
            .spawn(work);
    }

    fn attend(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        let (head, rest) = read_head(&mut client)?;
        let Some(request) = Request::parse(&head) else {
            return refuse(
                &mut client,
                "400 Bad Request",
                "windlass: this is a proxy for HTTP\n",
            );
        };
        let allowed = self.allows(&request.name, request.port);
        self.record(&request, allowed);
        if !allowed {
            let hosts: Vec<&str> = self.allowed.iter().map(|host| host.name.as_str()).collect();
            let text = format!(
                "windlass: {}:{} is not among the hosts that this command may reach ({})\n",
                request.name,
                request.port,
                hosts.join(", ")
            );
            return refuse(&mut client, "403 Forbidden", &text);
        }
        let mut host = match connect(&request.name, request.port) {
            Ok(host) => host,
            Err(error) => {
                let text = format!("windlass: {}:{}: {error}\n", request.name, request.port);
                return refuse(&mut client, "502 Bad Gateway", &text);
            }
        };
        match &request.forward {
            Some(head) => host.write_all(head)?,
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        }
        host.write_all(&rest)?;
        client.set_read_timeout(None)?;
        pass_on(client, host)
    }

    fn allows(&self, name: &str, port: u16) -> bool {
        let is_denied = self.denied.iter().any(|domain| is_below(name, domain));
        !is_denied && self.allowed.iter().any(|host| host.covers(name, port))
    }

    fn record(&self, request: &Request, allowed: bool) {
        let reached = Reached {
            host: format!("{}:{}", request.name, request.port),
            allowed,
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() < RECORDED && !asked.contains(&reached) {
            asked.push(reached);
        }
    }
}

/// A request to the proxy.
struct Request {
    name: String,
    port: u16,
    /// The head to send to the host; `None` for a tunnel.
    forward: Option<Vec<u8>>,
}

impl Request {
    fn parse(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        // A host may take a lone line feed for the end of a line, and the next line for another header.
        if text
            .replace("\r\n", "")
            .contains(|letter: char| letter.is_control() && letter != '\t')
        {
            return None;
        }
        let (line, headers) = text.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (name, port) = place(target, None)?;
            return Some(Self {
                name,
                port,
                forward: None,
            });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let (name, port) = place(authority, Some(80))?;
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        let mut forward = format!("{method} {path} {version}\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let (field, _) = header.split_once(':')?;
            let hop = [
                "connection",
                "proxy-connection",
                "proxy-authorization",
                "keep-alive",
                "host",
            ];
            if !hop.iter().any(|hop| field.trim().eq_ignore_ascii_case(hop)) {
                forward.push_str(header);
                forward.push_str("\r\n");
            }
        }
        // One request for each connection: the next one could be for another host.
        forward.push_str(&format!("Host: {authority}\r\nConnection: close\r\n\r\n"));
        Some(Self {
            name,
            port,
            forward: Some(forward.into_bytes()),
        })
    }
}

/// Returns the name and the port of an authority. A name is compared as text, so it must have one spelling.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    if authority.contains('@') {
        return None;
    }
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (authority, usual?),
    };
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    Host::parse(name).filter(|host| !host.below && host.port.is_none())?;
    Some((name.to_owned(), port))
}

/// Reads up to the empty line. Returns the head, and what came after it.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Connects to a host. A name that leads to this machine must say so: such a service never expects a request
/// from a sandbox.
fn connect(name: &str, port: u16) -> io::Result<TcpStream> {
    let says_so = name == "localhost" || name.parse::<IpAddr>().is_ok();
    let mut last = io::Error::other("the name has no address");
    for address in (name, port).to_socket_addrs()? {
        if !says_so && (is_local(address) || is_own(address)) {
            last = io::Error::other(format!("the name leads to {}", address.ip()));
            continue;
        }
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_local(address: SocketAddr) -> bool {
    let four = |ip: std::net::Ipv4Addr| ip.is_loopback() || ip.is_link_local() || ip.is_unspecified();
    match address.ip() {
        IpAddr::V4(ip) => four(ip),
        IpAddr::V6(ip) => {
            let mapped = ip.to_ipv4_mapped().is_some_and(four);
            mapped || ip.is_loopback() || ip.is_unspecified() || ip.is_unicast_link_local()
        }
    }
}

/// Returns true if an address belongs to this machine: the system would reach it from the same address. Nothing is sent.
fn is_own(address: SocketAddr) -> bool {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address.ip())
}

fn refuse(client: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    client.write_all(reply.as_bytes())?;
    client.shutdown(Shutdown::Write)
}

/// Returns true if a connection could not be accepted, but others can be later. A listener that was shut down ends.
fn is_passing(error: &io::Error) -> bool {
    let is_full = [
        rustix::io::Errno::MFILE,
        rustix::io::Errno::NFILE,
        rustix::io::Errno::NOBUFS,
        rustix::io::Errno::NOMEM,
    ];
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
    ) || errno.is_some_and(|errno| is_full.contains(&errno))
}

/// Passes bytes on in both directions until both ends have finished.
fn pass_on(client: TcpStream, host: TcpStream) -> io::Result<()> {
    let (mut from_host, mut to_client) = (host.try_clone()?, client.try_clone()?);
    let back = thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut from_host, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Write);
    })?;
    let (mut from_client, mut to_host) = (client, host);
    let _ = io::copy(&mut from_client, &mut to_host);
    let _ = to_host.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-12: an entry covers its own name, or all names below it, on its port.
    #[test]
    fn hosts_are_compared_by_name() {
        let egress = Egress::new(
            &[
                "a.org".into(),
                "*.b.org".into(),
                "c.org:8080".into(),
                "D.org".into(),
            ],
            &["c.b.org".into()],
        );
        for (name, port, allowed) in [
            ("a.org", 443, true),
            ("a.org", 80, true),
            ("a.org", 22, false),
            ("x.a.org", 443, false),
            ("a.org.evil.net", 443, false),
            ("x.b.org", 443, true),
            ("x.y.b.org", 443, true),
            ("c.b.org", 443, false),
            ("x.c.b.org", 443, false),
            ("b.org", 443, false),
            ("xb.org", 443, false),
            ("c.org", 8080, true),
            ("c.org", 443, false),
            ("d.org", 443, true),
        ] {
            assert_eq!(egress.allows(name, port), allowed, "{name}:{port}");
        }
        for text in [
            "", "*", "*.", "a b", "http://a", "a/b", "a:b", "a@b", ".a", "a:99999",
        ] {
            assert!(!is_host(text), "{text}");
        }
    }

    /// SAFE-12: an address of this machine is known, whatever it is.
    #[test]
    fn addresses_of_this_machine_are_known() {
        assert!(is_own(([127, 0, 0, 1], 80).into()));
        let away = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:80")?;
            socket.local_addr()
        });
        // A machine without a network has no other address.
        assert!(away.is_err() || away.is_ok_and(|own| is_own((own.ip(), 80).into())));
        assert!(!is_own(([192, 0, 2, 1], 80).into()));
    }

    /// SAFE-12: the name that is checked is the name that is connected, however the request spells it.
    #[test]
    fn requests_name_one_host() {
        let parsed = |head: &str| {
            let request = Request::parse(head.as_bytes())?;
            let forward = request
                .forward
                .map(|head| String::from_utf8_lossy(&head).into_owned());
            Some((request.name, request.port, forward))
        };
        let tunnel = |name: &str, port| Some((name.to_owned(), port, None));
        assert_eq!(parsed("CONNECT A.org:443 HTTP/1.1\r\n\r\n"), tunnel("a.org", 443));
        assert_eq!(
            parsed("CONNECT a.org.:443 HTTP/1.1\r\n\r\n"),
            tunnel("a.org", 443)
        );
        for head in [
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT a.org@evil.net:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://a.org@evil.net/ HTTP/1.1\r\n\r\n",
            "GET http://*.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ x HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: b\nHost: evil.net\r\n\r\n",
            "GET http://a.org/\rHost:evil.net HTTP/1.1\r\n\r\n",
            "GET http://a.org/\0 HTTP/1.1\r\n\r\n",
            "GET\nX http://a.org/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(parsed(head), None, "{head}");
        }
        let (name, port, forward) =
            parsed("GET http://a.org?x HTTP/1.1\r\nHost: evil.net\r\nProxy-Connection: x\r\nA: b\r\n\r\n")
                .unwrap();
        assert_eq!((name.as_str(), port), ("a.org", 80));
        let expected = "GET /?x HTTP/1.1\r\nA: b\r\nHost: a.org\r\nConnection: close\r\n\r\n";
        assert_eq!(forward.as_deref(), Some(expected));
    }
}
