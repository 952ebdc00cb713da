//! The portable backend: POSIX only, and no sandbox.
//!
//! Nothing can be confined, so no [`Confinement`] ever exists, and every command asks for approval. A kill
//! reaches the process group of a command; processes that leave the group are not found, and orphans go to
//! the system.

pub(crate) mod files;
pub(crate) mod process;
pub(crate) mod warden;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, exit};

use crate::{Gap, Isolation, Launch, Reached, SandboxError, SandboxPolicy, Support};

/// Folders of the system that contain no files of a user.
pub(crate) const SYSTEM_FOLDERS: &[&str] = &["/dev"];

/// Exit code of a shell for a program that cannot be run.
const CANNOT_RUN: i32 = 126;

/// A sandbox, which cannot exist here.
#[derive(Debug)]
pub(crate) enum Confinement {}

impl Confinement {
    /// Always fails, so that the user decides about each command.
    pub(crate) fn new(_policy: SandboxPolicy, _helper: Option<&Path>) -> Result<Self, SandboxError> {
        Err(SandboxError::NoBackend)
    }

    pub(crate) fn start(&self, _start: Launch<'_>, _streams: [BorrowedFd<'_>; 3]) -> io::Result<Running> {
        match *self {}
    }

    pub(crate) fn was_restarted(&self) -> bool {
        match *self {}
    }

    pub(crate) fn isolation(&self, _cwd: &Path, _scratch: &Path) -> io::Result<Vec<Isolation>> {
        match *self {}
    }

    pub(crate) fn release(&self) {
        match *self {}
    }

    pub(crate) fn temp(&self) -> Option<PathBuf> {
        match *self {}
    }

    pub(crate) fn names_placeholder(&self, _line: &str) -> bool {
        match *self {}
    }

    pub(crate) fn take_reached(&self) -> Vec<Reached> {
        match *self {}
    }

    pub(crate) fn gaps(&self) -> &[Gap] {
        match *self {}
    }
}

/// Does nothing: without a sandbox there are no placeholders.
pub(crate) fn release_placeholders() {}

/// Does nothing: POSIX has no call for this.
pub(crate) fn hide_memory() {}

/// Returns `None`: nothing would enforce a part of it.
pub(crate) fn machine_memory() -> Option<u64> {
    None
}

/// Returns false: without a sandbox there are no placeholders.
pub(crate) fn is_placeholder(_found: &rustix::fs::Stat) -> bool {
    false
}

/// A program in a sandbox, which cannot exist here.
#[derive(Debug)]
pub(crate) enum Running {}

impl Running {
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        match *self {}
    }
}

/// A command in a sandbox, which cannot exist here.
#[derive(Debug, Clone)]
pub(crate) struct Supervised(Never);

#[derive(Debug, Clone)]
enum Never {}

impl Supervised {
    pub(crate) fn new(running: Running) -> io::Result<Self> {
        match running {}
    }

    pub(crate) async fn wait(&self) -> io::Result<ExitStatus> {
        match self.0 {}
    }

    pub(crate) async fn gone(&self) {
        match self.0 {}
    }

    pub(crate) async fn network_missed(&self) {
        match self.0 {}
    }

    pub(crate) fn is_gone(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn terminate(&self) {
        match self.0 {}
    }

    pub(crate) fn leave(&self) {
        match self.0 {}
    }
}

/// Does nothing: there are no commands in a sandbox.
pub(crate) fn end_left() {}

/// Does nothing: there are no commands in a sandbox.
pub(crate) fn kill_all() {}

/// Does nothing: there are no launchers.
pub(crate) fn end_launchers() {}

/// Returns true: there are no commands in a sandbox.
pub(crate) fn none_left() -> bool {
    true
}

/// Reports that nothing is enforced.
pub(crate) fn support() -> Support {
    Support {
        landlock_abi: None,
        seccomp: false,
        network: false,
        scopes: false,
        user_namespaces: false,
    }
}

/// Fails: the helper never starts a program that it cannot confine.
pub(crate) fn enter(_args: impl Iterator<Item = OsString>) -> ! {
    let error = SandboxError::NoBackend;
    // If stderr is closed, the exit code still reports the failure.
    let _ = writeln!(io::stderr(), "windlass: the sandbox could not be set up: {error}");
    exit(CANNOT_RUN)
}
