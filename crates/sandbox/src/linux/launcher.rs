//! Our end of a launcher: starts the helper, and sends it the commands to start.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::init::{LAUNCH, NO_NAMESPACES, READY};
use super::redirects::Redirects;
use super::resolved::ResolvedPolicy;
use super::wire;
use crate::{HELPER, SandboxError};

/// Maximum time until a launcher is ready.
const START: i64 = 10;
/// Time that a launcher gets to end after its connection was closed.
const END: Duration = Duration::from_secs(1);
/// Pause between two looks at a launcher that ends.
const PAUSE: Duration = Duration::from_micros(300);

/// A running launcher. Dropping it ends everything that it started.
#[derive(Debug)]
pub(crate) struct Launcher {
    /// `None` while it is being dropped.
    socket: Option<OwnedFd>,
    helper: Mutex<Child>,
    /// The listener of the proxy for the commands. Shut down with the launcher, so that the proxy ends.
    proxy: Option<TcpListener>,
    redirects: Option<Redirects>,
}

/// Reasons why a launcher did not start.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// The system does not let this user create namespaces. The text says which step failed.
    NoNamespaces(String),
    /// Any other failure.
    Failed(SandboxError),
}

impl Launcher {
    /// Starts a launcher with this policy, and waits until it is ready.
    pub(super) fn start(helper: &Path, policy: &ResolvedPolicy) -> Result<Self, NotReady> {
        let failed = |step: &str, error: io::Error| NotReady::Failed(SandboxError::system(step, error));
        let pair = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        let (ours, theirs) = pair.map_err(|error| failed("creating a socket", error.into()))?;
        let child = Command::new(helper)
            .args([HELPER, LAUNCH])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut launcher = Self {
            socket: Some(ours),
            helper: Mutex::new(child.map_err(|error| failed("starting the sandbox helper", error))?),
            proxy: None,
            redirects: None,
        };
        let text = policy.encode();
        let policy = wire::in_memory(text.as_bytes()).map_err(|error| failed("passing the policy", error))?;
        launcher
            .send(b"p", &[policy.as_fd()])
            .map_err(|error| failed("passing the policy", error))?;
        match launcher.first_reply() {
            Ok((reply, files)) if reply == READY => {
                launcher.proxy = files.into_iter().next().map(TcpListener::from);
                Ok(launcher)
            }
            Ok((reply, _)) => match reply.strip_prefix(NO_NAMESPACES) {
                Some(why) => Err(NotReady::NoNamespaces(String::from_utf8_lossy(why).into_owned())),
                None => {
                    let why = io::Error::other(String::from_utf8_lossy(&reply).into_owned());
                    Err(failed("entering the sandbox", why))
                }
            },
            Err(error) => Err(failed("entering the sandbox", error)),
        }
    }

    /// Removes these files as soon as a command creates one, and ends everything then.
    ///
    /// # Errors
    /// If the system refuses to watch their folders.
    pub(super) fn keep_absent(&mut self, files: Vec<PathBuf>) -> io::Result<()> {
        let socket = self.socket.as_ref().filter(|_| !files.is_empty());
        if let Some(socket) = socket {
            self.redirects = Some(Redirects::watch(files, socket.try_clone()?)?);
        }
        Ok(())
    }

    /// Removes the files of [`Self::keep_absent`] that exist. Returns true if a command ever created one.
    pub(super) fn was_redirected(&self) -> bool {
        let is_so = self.redirects.as_ref().is_some_and(Redirects::remove);
        if is_so {
            self.end();
        }
        is_so
    }

    /// Starts a program, and returns the connection to its supervisor.
    ///
    /// # Errors
    /// If the launcher has ended.
    pub(super) fn launch(&self, request: &[u8], streams: [BorrowedFd<'_>; 3]) -> io::Result<UnixStream> {
        let request = wire::in_memory(request)?;
        let (ours, theirs) = UnixStream::pair()?;
        let [input, output, errors] = streams;
        self.send(b"r", &[request.as_fd(), theirs.as_fd(), input, output, errors])?;
        Ok(ours)
    }

    /// Returns true if the launcher still runs.
    pub(super) fn is_alive(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let mut ready = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::empty())];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut ready, Some(&now)), Ok(0))
    }

    /// Ends everything that the launcher started. The kernel does it, so no process can escape.
    pub(crate) fn end(&self) {
        if let Some(socket) = &self.socket {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }

    fn send(&self, text: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        match &self.socket {
            Some(socket) => wire::send(socket, text, files),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Returns the listener of the proxy, if the policy has one.
    pub(super) fn proxy(&self) -> Option<TcpListener> {
        self.proxy.as_ref()?.try_clone().ok()
    }

    fn first_reply(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let Some(socket) = &self.socket else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        };
        let mut ready = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        let limit = Timespec {
            tv_sec: START,
            tv_nsec: 0,
        };
        if poll(&mut ready, Some(&limit))? == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        match wire::receive(socket)? {
            Some(reply) => Ok(reply),
            None => Err(io::Error::other("the helper ended without a word")),
        }
    }
}

impl Launcher {
    /// Waits until the launcher has ended, after its connection was closed.
    fn wait(&self) {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        let patience_ends = Instant::now() + END;
        while matches!(helper.try_wait(), Ok(None)) {
            if Instant::now() >= patience_ends {
                // The launcher follows its parent.
                let _ = helper.kill();
                let _ = helper.wait();
                break;
            }
            thread::sleep(PAUSE);
        }
        // Created in its last moments.
        let _ = self.was_redirected();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.socket = None;
        if let Some(proxy) = &self.proxy {
            let _ = rustix::net::shutdown(proxy, rustix::net::Shutdown::Both);
        }
        self.wait();
    }
}

/// Ends every launcher with all of its processes and mounts, before the program exits.
pub(crate) fn end_all() {
    let all: Vec<Arc<Launcher>> = running().iter().filter_map(Weak::upgrade).collect();
    for launcher in &all {
        launcher.end();
    }
    for launcher in all {
        launcher.wait();
    }
}

/// Remembers a launcher for [`end_all`].
pub(super) fn remember(launcher: &Arc<Launcher>) {
    let mut all = running();
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(launcher));
}

static RUNNING: Mutex<Vec<Weak<Launcher>>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Weak<Launcher>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
