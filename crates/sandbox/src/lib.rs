//! Sandboxed child processes, and path handles for the file tools.
//!
//! - [`SandboxPolicy`] describes what a child process may use. [`Sandbox::new`] checks the policy against
//!   this machine. [`Sandbox::wrap`] returns the command line to start instead of the program: this binary
//!   again, which confines itself in [`enter`] and then becomes the program. For a program without input,
//!   [`Sandbox::wrap_without_input`] creates the path rules in advance and reuses them for many commands.
//! - [`CommandSandbox`] starts the commands of a session, and [`process`] ends them with everything they
//!   started.
//! - [`Roots`] opens files for the built-in tools so that the file that was checked is the file that is used.
//! - [`support`] reports what this kernel enforces.
//!
//! ## The sandbox on Linux
//!
//! 1. *Landlock* lists what may be read and written. Landlock can only allow, and a rule for a folder covers
//!    everything below it; so around a denied path its siblings are allowed instead of its parents. This also
//!    protects denied paths that do not exist yet.
//! 2. Inside a writable folder such rules would forbid new files next to a denied path. There a *mount
//!    namespace* hides the denied path behind an empty, read-only folder and a read-only path behind a
//!    read-only mount, and pins the folders above, so that they cannot be moved away. A denied path that does
//!    not exist gets an empty folder as a placeholder while the [`Sandbox`] exists, because a mount needs a
//!    mount point.
//! 3. *seccomp* refuses sockets, new namespaces, mounts, tracing and other system calls that commands do not
//!    need.
//! 4. Root keeps only the capabilities that files need. No new privileges, no inherited descriptors, no core
//!    files.
//!
//! Without namespaces, an existing denied path inside a writable folder is still protected, but nothing new
//! can be created next to it; a denied path that does not exist is not protected. [`Sandbox::gaps`] lists
//! both cases, so that the user can be asked.
//!
//! Restrictions only ever accumulate: a child that starts the helper again with a wider policy gets the
//! narrower of the two.
//!
//! Deliberately not covered: hard links to a denied file that exist before the command, names and command
//! lines in `/proc`, and, on kernels before Landlock 6, signals to other processes of the same user.
//!
//! ## Other systems
//!
//! Everything that depends on the system is in one backend module, chosen at compile time. Linux has its own.
//! The portable backend needs only POSIX and has no sandbox: [`Sandbox::new`] fails, so every command asks
//! for approval, and a kill reaches the process group of a command. `--cfg windlass_portable` selects it on
//! Linux, for tests.

mod command_sandbox;
mod digest;
mod environment;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux;
pub mod path;
mod policy;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable;
pub mod process;
pub mod program;
mod support;
mod working_directory;
mod workspace;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use self::command_sandbox::CommandSandbox;
pub use self::digest::sha256_hex;
pub use self::environment::{child_environment, reading_environment};
pub use self::handle::{OpenMode, Parents, PathDenied, Place, Roots};
#[cfg(all(target_os = "linux", not(windlass_portable)))]
use self::linux as backend;
pub use self::policy::{Guard, LocalSockets, Network, ResourceLimits, SandboxPolicy};
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
use self::portable as backend;
pub use self::support::{Support, support};
pub use self::working_directory::WorkingDirectory;
pub use self::workspace::Workspace;

/// First argument that makes this binary the sandbox helper.
pub const HELPER: &str = "__sandbox";

/// Reasons why there is no sandbox. None of them justifies running without one: that is for the user to
/// decide.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The system cannot enforce path rules.
    #[error("this kernel has no Landlock, so commands cannot be confined")]
    NoLandlock,
    /// The system cannot filter system calls.
    #[error("this kernel or processor has no seccomp filters, so commands cannot be confined")]
    NoFilter,
    /// A path of the policy does not name exactly one place.
    #[error("the path {} of the sandbox policy {problem}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The problem, as the rest of the sentence.
        problem: &'static str,
    },
    /// The helper was started with arguments that [`Sandbox::wrap`] does not produce.
    #[error("the sandbox helper got arguments that it does not understand")]
    Arguments,
    /// The system refused a step.
    #[error("{step}: {source}")]
    System {
        /// The step.
        step: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// A part of the policy that the sandbox cannot enforce on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// A command could create or replace this path.
    Open(PathBuf),
    /// Commands cannot create anything directly in this folder, because something in it is denied.
    Frozen(PathBuf),
}

/// A checked policy, ready to start child processes. It must outlive them: the placeholders of absent denied
/// paths are removed with it.
#[derive(Debug)]
pub struct Sandbox(backend::Confinement);

impl Sandbox {
    /// Checks a policy against this machine. The program must call [`enter`] if its first argument is
    /// [`HELPER`].
    ///
    /// # Errors
    /// If the kernel cannot enforce the policy, or one of its paths does not name a place.
    pub fn new(policy: SandboxPolicy) -> Result<Self, SandboxError> {
        backend::Confinement::new(policy, None).map(Self)
    }

    /// Like [`Sandbox::new`], with another program that calls [`enter`] as the helper.
    ///
    /// # Errors
    /// As [`Sandbox::new`].
    pub fn with_helper(policy: SandboxPolicy, helper: &Path) -> Result<Self, SandboxError> {
        backend::Confinement::new(policy, Some(helper)).map(Self)
    }

    /// Returns the command line to start instead of a program: the helper, and its arguments.
    pub fn wrap(&self, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        self.0.wrap(program, args)
    }

    /// Like [`Sandbox::wrap`], for a program that has no input. It starts sooner: the path rules are created
    /// here, once for many commands, and passed to the helper. The third value must be the helper's standard
    /// input; the program itself reads an empty one.
    pub fn wrap_without_input(&self, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>, Stdio) {
        self.0.wrap_without_input(program, args)
    }

    /// Returns the parts of the policy that are not enforced here. If there are any, ask the user before a
    /// command runs.
    pub fn gaps(&self) -> &[Gap] {
        self.0.gaps()
    }
}

/// Confines this process as the arguments after [`HELPER`] say, and becomes the program that they name.
///
/// Must be called first in `main`, while there is only one thread. Any failure is reported as one line on
/// stderr, with the exit codes of a shell: 127 if there is no such program, 126 for everything else. Where
/// there is no sandbox, this always fails.
pub fn enter(args: impl Iterator<Item = OsString>) -> ! {
    backend::enter(args)
}

/// Returns the command line that starts a program without a sandbox. Only for a caller with the user's
/// approval.
pub fn unprotected(program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
    (program.to_owned(), args.iter().map(OsString::from).collect())
}
