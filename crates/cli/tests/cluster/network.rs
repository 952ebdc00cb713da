//! A network of servers, each in a network namespace of its own, whose links can be cut. Only root can make one.

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Hardware address that nobody has. What is sent to it is lost without a word.
const NOBODY: &str = "02:00:00:00:00:fe";

/// Networks made by this process.
static NETWORKS: AtomicU8 = AtomicU8::new(0);

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The database.
    Store,
    /// A server.
    Server(usize),
}

/// Namespaces `s0`, `s1` …, connected by a bridge, on which the database listens.
pub(super) struct Network {
    /// Third number of its addresses, and part of its names.
    number: u8,
    servers: usize,
}

/// Runs `ip`, and returns the reason if that fails.
fn ip(line: &str) -> Result<(), String> {
    let ran = Command::new("ip")
        .args(line.split(' '))
        .stdin(Stdio::null())
        .output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "ip {line}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("ip: {error}")),
    }
}

impl Network {
    /// Makes a network, or returns the reason if this machine or this user cannot.
    pub(super) fn make(servers: usize) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("network namespaces need root".to_owned());
        }
        let process = u8::try_from(std::process::id() % 50).unwrap_or_default();
        let number = process * 5 + NETWORKS.fetch_add(1, Ordering::Relaxed) % 5;
        let network = Self { number, servers };
        network.remove();
        let bridge = network.name("b");
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!(
            "addr add {}/24 dev {bridge}",
            network.address(End::Store)
        ))?;
        ip(&format!("link set {bridge} up"))?;
        for server in 0..servers {
            let (space, link) = (network.space(server), network.name(&format!("v{server}")));
            ip(&format!("netns add {space}"))?;
            ip(&format!("link add {link} type veth peer name eth0 netns {space}"))?;
            ip(&format!("link set {link} master {bridge} up"))?;
            let address = network.address(End::Server(server));
            ip(&format!("-n {space} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {space} link set eth0 up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(network)
    }

    fn name(&self, part: &str) -> String {
        format!("wl{}{part}", self.number)
    }

    fn space(&self, server: usize) -> String {
        self.name(&format!("s{server}"))
    }

    /// Returns the address of an end.
    pub(super) fn address(&self, end: End) -> String {
        let last = match end {
            End::Store => 254,
            End::Server(server) => server + 1,
        };
        format!("198.18.{}.{last}", self.number)
    }

    /// Removes everything; what an earlier process left as well.
    fn remove(&self) {
        for server in 0..self.servers {
            let _ = ip(&format!("netns del {}", self.space(server)));
        }
        let _ = ip(&format!("link del {}", self.name("b")));
    }

    /// Runs work on a thread in the namespace of a server: its sockets and its processes are there.
    pub(super) fn within<T: Send>(&self, server: usize, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let space = File::open(format!("/run/netns/{}", self.space(server))).unwrap();
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            let ended = worker.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Cuts or mends one direction: packets from `from` to `to` are lost.
    pub(super) fn set_way(&self, (from, to): (End, End), is_open: bool) {
        let to = self.address(to);
        let (space, device) = match from {
            End::Store => (String::new(), self.name("b")),
            End::Server(server) => (format!("-n {} ", self.space(server)), "eth0".to_owned()),
        };
        let changed = match is_open {
            true => ip(&format!("{space}neigh del {to} dev {device}")),
            false => ip(&format!(
                "{space}neigh replace {to} lladdr {NOBODY} dev {device} nud permanent"
            )),
        };
        changed.unwrap();
    }

    /// Makes a port of this machine's loopback reachable at the loopback of each server, whatever is cut.
    pub(super) fn offer(&self, port: u16) {
        for server in 0..self.servers {
            let listener = self.within(server, || TcpListener::bind(("127.0.0.1", port)).unwrap());
            thread::spawn(move || {
                for client in listener.incoming().map_while(Result::ok) {
                    thread::spawn(move || pass_on(&client, port));
                }
            });
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Passes bytes on in both directions until both have ended.
fn pass_on(client: &TcpStream, port: u16) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    thread::scope(|scope| {
        scope.spawn(|| copy(client, &server));
        copy(&server, client);
    });
}
