//! Child processes as whole trees: started in a group of their own, found again wherever they went, ended
//! together.
//!
//! Ending one process is not enough. Its children may ignore TERM, move to a session of their own, or lose
//! their parent. In a sandbox a supervisor becomes the parent of all of them. Without one, each tree is started with a marker in its environment and one output pipe. To end the
//! tree, the process table is read, and every process that carries the marker, holds the pipe, or descends
//! from one that does, is ended. None of this costs anything while a command runs and exits on its own. Where
//! there is no process table to read, the process group is ended.
//!
//! A kill continues after the call that requested it has returned. [`settle`] ends what runs in the
//! [`Background`] and waits for the kills in progress; the program calls it before it exits.

pub(crate) mod alone;
mod background;
mod duplex;
mod group;
mod kill;
pub(crate) mod reaper;
mod target;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use uuid::Uuid;

pub use self::background::Background;
pub use self::duplex::{Duplex, confined_duplex, spawn_duplex};
pub(crate) use self::group::Group;
pub use self::kill::Kill;
pub(crate) use self::kill::{Member, Search};
use self::reaper::Live;
pub(crate) use self::reaper::UnderWay;
pub use self::reaper::{adopt_orphans, end_all, settle};
pub(crate) use self::target::Target;
use crate::backend::Supervised;
use crate::{Launch, Sandbox};

/// Environment variable that marks every process of a call. Its value is different for each call.
pub const MARKER: &str = "WINDLASS_CALL";

/// A running process and everything it starts. Dropping it before the process has ended ends the whole tree.
pub struct Tree(Inner);

enum Inner {
    /// In a sandbox.
    Confined(Supervised),
    /// Without a sandbox.
    Direct(Box<Direct>),
}

struct Direct {
    /// `None` once the process has been waited for.
    child: Option<Child>,
    target: Target,
    live: Option<Live>,
}

/// Starts a program in a sandbox, without input, and with stdout and stderr in one pipe, which preserves the
/// order of the output.
///
/// # Errors
/// If the pipe cannot be created or the sandbox cannot be entered. Must be called inside a Tokio runtime.
pub fn confined(sandbox: &Sandbox, start: Launch<'_>) -> io::Result<(Tree, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let input = File::open("/dev/null")?;
    let running = sandbox
        .0
        .start(start, [input.as_fd(), writer.as_fd(), writer.as_fd()])?;
    drop(writer);
    let tree = Tree(Inner::Confined(Supervised::new(running)?));
    Ok((tree, Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

/// Starts a program in a process group of its own, with `input` on stdin, and with stdout and stderr in one
/// pipe, which preserves the order of the output. The program's environment is exactly `env` and the marker.
///
/// Uses only what the fast path of the standard library supports: no hook runs between fork and exec.
///
/// # Errors
/// If the pipe cannot be created or the program cannot be started. Must be called inside a Tokio runtime.
pub fn spawn(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    cwd: &Path,
    env: &BTreeMap<String, String>,
    input: Stdio,
) -> io::Result<(Tree, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let marker = Uuid::new_v4().simple().to_string();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(cwd)
        .env_clear()
        .envs(env)
        .env(MARKER, &marker)
        .stdin(input)
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let child = command.spawn()?;
    // The command holds our copies of the writing end; while they are open the pipe never ends.
    drop(command);
    let reader = OwnedFd::from(reader);
    let target = Target {
        root: child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .unwrap_or_default(),
        marker: format!("{MARKER}={marker}").into_bytes(),
        pipe: rustix::fs::fstat(&reader).ok().map(|stat| stat.st_ino),
    };
    let tree = Tree(Inner::Direct(Box::new(Direct {
        child: Some(child),
        live: Some(Live::begin(&target)),
        target,
    })));
    Ok((tree, Receiver::from_owned_fd(reader)?))
}

impl Tree {
    /// Waits for the process itself, not for its children. The future may be dropped and the method called
    /// again.
    ///
    /// # Errors
    /// If the system cannot report the exit status, or the process has been waited for before.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let direct = match &mut self.0 {
            Inner::Confined(command) => return command.wait().await,
            Inner::Direct(direct) => direct,
        };
        let Some(child) = &mut direct.child else {
            return Err(io::Error::other("the process has been waited for"));
        };
        let status = child.wait().await;
        direct.child = None;
        direct.live = None;
        status
    }

    /// Lets the tree outlive the call that started it. The caller must keep waiting for the process.
    pub fn in_background(&self) -> Background {
        match &self.0 {
            Inner::Confined(command) => Background::confined(command),
            Inner::Direct(direct) => Background::begin(&direct.target),
        }
    }

    /// Returns a future that ends when a process of the tree tried to reach another machine although the
    /// sandbox has no network. It never ends if none does.
    pub fn network_missed(&self) -> impl Future<Output = ()> + Send + 'static {
        let command = match &self.0 {
            Inner::Confined(command) => Some(command.clone()),
            Inner::Direct(_) => None,
        };
        async move {
            match command {
                Some(command) => command.network_missed().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Starts to end the tree: TERM to every process, KILL to those left after two seconds. Returns at once.
    pub fn kill(mut self) -> Kill {
        match &mut self.0 {
            Inner::Confined(command) => Kill::confined(command),
            Inner::Direct(direct) => direct.kill(),
        }
    }
}

impl Direct {
    fn kill(&mut self) -> Kill {
        self.live = None;
        kill::start(self.target.clone(), self.child.take())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        match &mut self.0 {
            Inner::Confined(command) if !command.has_ended() => command.terminate(),
            Inner::Direct(direct) if direct.child.is_some() => drop(direct.kill()),
            Inner::Confined(_) | Inner::Direct(_) => {}
        }
    }
}
