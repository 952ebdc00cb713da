//! Child processes as whole trees: started in a group of their own, found again wherever they went, ended together.
//!
//! Ending one process is not enough. Its children may ignore TERM, move to a session of their own, or lose their
//! parent. So each tree is started with a marker in its environment and one output pipe, and when it must end, the
//! process table is read and every process that carries the marker, holds the pipe, or descends from one that does, is
//! ended. Nothing of this costs anything while a command runs and ends by itself.
//!
//! A kill goes on after the call that asked for it has returned. [`settle`] ends what runs in the [`Background`] and
//! waits for the kills under way; the program calls it before it exits.

mod background;
mod kill;
mod reaper;
mod table;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use uuid::Uuid;

pub use self::background::Background;
pub use self::kill::Kill;
use self::reaper::Live;
pub use self::reaper::{adopt_orphans, end_all, settle};
use self::tree::Target;

/// The variable that marks every process of a call. Its value is different for each call.
pub const MARKER: &str = "WINDLASS_CALL";

/// A running process and everything it starts. Dropped before it ended, the whole tree is ended.
pub struct Tree {
    /// `None` once it has been waited for.
    child: Option<Child>,
    target: Target,
    live: Option<Live>,
}

/// Starts a program in a process group of its own, with `input` on stdin, and with stdout and stderr in one pipe, so
/// that the order of what it writes is kept. It gets exactly `env` and the marker.
///
/// Uses only what the fast path of the standard library can do: no hook runs between fork and exec.
///
/// # Errors
/// When the pipe cannot be made or the program cannot be started. Must be called inside a Tokio runtime.
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
    // The command holds our copies of the writing end; with them open the pipe would never end.
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
    let tree = Tree {
        child: Some(child),
        live: Some(Live::begin(&target)),
        target,
    };
    Ok((tree, Receiver::from_owned_fd(reader)?))
}

impl Tree {
    /// Waits for the process itself, not for what it started. May be dropped and called again.
    ///
    /// # Errors
    /// When the system cannot say how it ended, or it has been waited for before.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            return Err(io::Error::other("the process has been waited for"));
        };
        let status = child.wait().await;
        self.child = None;
        self.live = None;
        status
    }

    /// Lets the tree outlive the call that started it. Somebody must go on waiting for it.
    pub fn in_background(&self) -> Background {
        Background::begin(&self.target)
    }

    /// Begins to end the tree: TERM to every process, KILL to what is left after two seconds. Returns at once.
    pub fn kill(mut self) -> Kill {
        self.live = None;
        kill::start(self.target.clone(), self.child.take())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.live = None;
            drop(kill::start(self.target.clone(), Some(child)));
        }
    }
}
