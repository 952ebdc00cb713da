//! The portable backend: POSIX only, and no sandbox.
//!
//! Nothing can be confined, so no [`Confinement`] ever exists, and every command asks for approval. A kill
//! reaches the process group of a command; processes that leave the group are not found, and orphans go to
//! the system.

pub(crate) mod files;
pub(crate) mod process;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Stdio, exit};

use crate::{Gap, SandboxError, SandboxPolicy, Support};

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

    pub(crate) fn wrap(&self, _program: &Path, _args: &[&str]) -> (PathBuf, Vec<OsString>) {
        match *self {}
    }

    pub(crate) fn wrap_without_input(
        &self,
        _program: &Path,
        _args: &[&str],
    ) -> (PathBuf, Vec<OsString>, Stdio) {
        match *self {}
    }

    pub(crate) fn gaps(&self) -> &[Gap] {
        match *self {}
    }
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
