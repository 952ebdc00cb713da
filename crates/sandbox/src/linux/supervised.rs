//! A command in the sandbox as the runtime sees it: its end, and the end of everything it started.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::launcher::Launcher;
use super::wire::{KILL, REPORT, Report, TERMINATE};

static RUNNING: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// A program that was started in a sandbox, without a runtime.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) supervisor: UnixStream,
    pub(super) launcher: Arc<Launcher>,
}

impl Running {
    /// Waits for the program itself.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let mut bytes = [0; REPORT];
            let read = self.supervisor.read_exact(&mut bytes);
            let report = read.ok().map(|()| Report::decode(bytes));
            if self.launcher.was_redirected() {
                return Err(redirected());
            }
            match report {
                Some(Some(Report::Ended(status))) => return Ok(ExitStatus::from_raw(status)),
                Some(_) => {}
                None => return Err(lost()),
            }
        }
    }
}

/// A command and everything it started. All copies mean the same command.
#[derive(Debug, Clone)]
pub(crate) struct Supervised(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    supervisor: UnixStream,
    state: watch::Sender<State>,
    /// True once the caller leaves the command to itself: then it ends with the program.
    background: Mutex<bool>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    ended: Option<Option<ExitStatus>>,
    gone: bool,
    no_network: bool,
    redirected: bool,
}

impl Supervised {
    /// Follows a program. Must be called inside a Tokio runtime.
    pub(crate) fn new(running: Running) -> io::Result<Self> {
        let Running { supervisor, launcher } = running;
        supervisor.set_nonblocking(true)?;
        let reader = tokio::net::UnixStream::from_std(supervisor.try_clone()?)?;
        let shared = Arc::new(Shared {
            supervisor,
            state: watch::Sender::default(),
            background: Mutex::new(false),
        });
        let mut all = running_now();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&shared));
        drop(all);
        // The task keeps the command alive after its call, until its last process has ended.
        tokio::spawn(follow(reader, Arc::clone(&shared), launcher));
        Ok(Self(shared))
    }

    /// Waits for the program itself, not for its children.
    pub(crate) async fn wait(&self) -> io::Result<ExitStatus> {
        let mut state = self.0.state.subscribe();
        let ended = state.wait_for(|state| state.ended.is_some()).await;
        let state = *ended.map_err(|_| lost())?;
        match state.ended.flatten() {
            _ if state.redirected => Err(redirected()),
            Some(status) => Ok(status),
            None => Err(lost()),
        }
    }

    /// Waits until no process is left.
    pub(crate) async fn gone(&self) {
        let mut state = self.0.state.subscribe();
        let _ = state.wait_for(|state| state.gone).await;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.state.borrow().gone
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.state.borrow().ended.is_some()
    }

    /// Waits until a process tried to reach another machine although there is no network. Never returns if
    /// none does.
    pub(crate) async fn network_missed(&self) {
        let mut state = self.0.state.subscribe();
        if state.wait_for(|state| state.no_network).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Starts to end every process: TERM, and KILL after two seconds. The supervisor does it, so it continues
    /// whatever happens here.
    pub(crate) fn terminate(&self) {
        self.0.send(TERMINATE);
    }

    /// Leaves the command running until the program ends.
    pub(crate) fn leave(&self) {
        *self.0.background.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Shared {
    fn send(&self, byte: u8) {
        // A supervisor that is gone has nothing left to end.
        let _ = rustix::net::send(&self.supervisor, &[byte], rustix::net::SendFlags::NOSIGNAL);
    }

    fn is_left(&self) -> bool {
        *self.background.lock().unwrap_or_else(PoisonError::into_inner) || self.state.borrow().ended.is_some()
    }
}

async fn follow(mut reader: tokio::net::UnixStream, shared: Arc<Shared>, launcher: Arc<Launcher>) {
    let mut bytes = [0; REPORT];
    while reader.read_exact(&mut bytes).await.is_ok() {
        match Report::decode(bytes) {
            Some(Report::Ended(status)) => shared.state.send_modify(|state| {
                state.redirected = launcher.was_redirected();
                state.ended = Some(Some(ExitStatus::from_raw(status)));
            }),
            Some(Report::Gone) => {
                shared.state.send_modify(|state| state.gone = true);
                return;
            }
            Some(Report::NoNetwork) => shared.state.send_modify(|state| state.no_network = true),
            Some(Report::Stuck) | None => launcher.end(),
        }
    }
    // The supervisor was killed, so its processes are no longer under control one by one.
    launcher.end();
    shared.state.send_modify(|state| {
        state.redirected = launcher.was_redirected();
        state.ended.get_or_insert(None);
        state.gone = true;
    });
}

/// Starts to end every command that was left running.
pub(crate) fn end_left() {
    for shared in alive().iter().filter(|shared| shared.is_left()) {
        shared.send(TERMINATE);
    }
}

/// Ends every command at once.
pub(crate) fn kill_all() {
    for shared in alive() {
        shared.send(KILL);
    }
}

/// Returns true if no process of any command is left.
pub(crate) fn none_left() -> bool {
    alive().iter().all(|shared| shared.state.borrow().gone)
}

fn alive() -> Vec<Arc<Shared>> {
    running_now().iter().filter_map(Weak::upgrade).collect()
}

fn running_now() -> MutexGuard<'static, Vec<Weak<Shared>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn redirected() -> io::Error {
    io::Error::other(
        "a command created commondir in the folder of a git repository, which would make git run programs of its \
         choice; the file was removed, and all commands of this sandbox were ended",
    )
}

fn lost() -> io::Error {
    io::Error::other("the sandbox's launcher ended before the command; the next command starts a new one")
}
