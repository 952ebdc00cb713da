//! Sandboxed child processes, and path handles for the file tools.
//!
//! - [`SandboxPolicy`] describes what a child process may use. [`Sandbox::new`] starts a *launcher* with it:
//!   this binary again, which enters the sandbox once, in [`enter`]. [`Sandbox::start`] then has the launcher
//!   fork commands, which costs hardly more than without a sandbox.
//! - [`CommandSandbox`] starts the commands of a session, and [`process`] ends them with everything they
//!   started.
//! - [`Warden`] is a process beside a server that ends what the server started if the server cannot.
//! - [`Roots`] opens files for the built-in tools so that the file that was checked is the file that is used.
//!   [`folder`] is for walks over a whole tree.
//! - [`support`] reports what this kernel enforces.
//!
//! ## The sandbox on Linux
//!
//! A launcher is the first process of its own PID namespace. When this program ends, by any means, the
//! launcher ends, and the kernel ends every process that it started. Each command has a supervisor, a copy of
//! the launcher, which becomes the parent of every process that the command leaves behind, so all of them are
//! found. A command has a session of its own and no controlling terminal.
//!
//! 1. In a *mount namespace* everything is read-only, and the writable folders are mounted back. This covers
//!    modes, owners, times and attributes, too. `/tmp`, `/dev`, its terminals, `/dev/shm` and `/proc` are the
//!    launcher's own. A denied path is hidden behind an empty, read-only folder, and a read-only path behind a
//!    read-only mount; the folders above are pinned, so that they cannot be moved away. A protected path that
//!    does not exist gets an empty folder as a placeholder while the [`Sandbox`] exists, because a mount needs
//!    a mount point.
//! 2. *Landlock* lists what may be read and written. It also keeps commands from signalling and inspecting
//!    processes outside.
//! 3. *PID, IPC and network namespaces*: commands see no other processes, share no System V objects with
//!    them, and have only a loopback interface of their own unless the network is on.
//! 4. *seccomp* refuses local sockets, new namespaces, mounts, tracing, limits of other processes, set-user-id
//!    modes and other system calls that commands do not need.
//! 5. Root keeps only the capabilities that files need. No new privileges, no inherited descriptors, no core
//!    files.
//!
//! Without namespaces, Landlock and seccomp remain. Landlock can only allow, and a rule for a folder covers
//! everything below it; so around a denied path its siblings are allowed instead of its parents. An existing
//! denied path inside a writable folder is still protected, but nothing new can be created next to it; a
//! denied path that does not exist is not protected. [`Sandbox::gaps`] lists both cases, so that the user can
//! be asked.
//!
//! The launcher's mounts and rules are about the files that had the names when it started. Before each command
//! the paths of the policy are checked, and the launcher is replaced if one of them is another file.
//!
//! Deliberately not covered: hard links to a denied file that exist before the command.
//!
//! ## Other systems
//!
//! Everything that depends on the system is in one backend module, chosen at compile time. Linux has its own.
//! The portable backend needs only POSIX and has no sandbox: [`Sandbox::new`] fails, so every command asks
//! for approval, and a kill reaches the process group of a command. `--cfg windlass_portable` selects it on
//! Linux, for tests.

#![cfg_attr(
    not(all(target_os = "linux", not(windlass_portable))),
    allow(dead_code, reason = "without a sandbox, nothing uses its policies")
)]

mod command_sandbox;
mod digest;
mod egress;
mod environment;
pub mod folder;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod ignore_files;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux;
mod package_caches;
pub mod path;
mod policy;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable;
pub mod process;
pub mod program;
pub mod protected;
mod regular;
mod scan;
mod support;
mod temp;
mod warden;
mod working_directory;
mod workspace;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::{Resource, Rlimit};

pub use self::command_sandbox::{Access, CommandSandbox, ProtectedChange};
pub use self::digest::sha256_hex;
pub use self::egress::{Reached, domain_hosts, is_host};
pub use self::environment::{child_environment, reading_environment};
pub use self::handle::{OpenMode, Parents, PathDenied, Place, Roots};
pub use self::ignore_files::{can_read_ignore_files, can_read_ignore_files_above};
#[cfg(all(target_os = "linux", not(windlass_portable)))]
use self::linux as backend;
pub use self::policy::{Guard, HostRules, LocalSockets, Network, ResourceLimits, SandboxPolicy};
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
use self::portable as backend;
pub use self::protected::ProtectedPaths;
pub use self::regular::{read_given, read_given_text, read_open, read_regular};
pub use self::support::{Support, support};
pub use self::temp::PrivateTemp;
pub use self::warden::{WARDEN_MARK, Warden, since_boot, warden_mark};
pub use self::working_directory::WorkingDirectory;
pub use self::workspace::{Location, Workspace};

/// First argument that makes this binary the sandbox helper.
pub const HELPER: &str = "__sandbox";

/// Reasons why there is no sandbox. None of them justifies running without one: that is for the user to
/// decide.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program was built for a system without a sandbox.
    #[error("this build has no kernel sandbox for this platform, so commands cannot be confined")]
    NoBackend,
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
    /// The helper was started with arguments or a policy that this program does not produce.
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

impl SandboxError {
    /// Returns true if this machine has no sandbox at all, so that the user decides about each command.
    fn is_about_machine(&self) -> bool {
        matches!(self, Self::NoBackend | Self::NoLandlock | Self::NoFilter)
    }
}

/// A part of the policy that the sandbox cannot enforce on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// A command could create or replace this path.
    Open(PathBuf),
    /// Commands cannot create anything directly in this folder, because something in it is denied.
    Frozen(PathBuf),
    /// There are no namespaces: commands see other processes and the machine's `/tmp`, and can change modes and
    /// times of files outside.
    Shared,
}

/// A part of the machine, and whether commands have one of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// Name of the part, such as `processes` or `/tmp`.
    pub what: &'static str,
    /// False if commands share it with this machine.
    pub is_own: bool,
}

/// A checked policy, ready to start child processes. Dropping it ends the processes that no [`process::Tree`]
/// or background job holds, and removes the placeholders of absent protected paths.
#[derive(Debug)]
pub struct Sandbox(backend::Confinement);

/// A program to start in a sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Arguments.
    pub arguments: &'a [&'a OsStr],
    /// Working directory.
    pub cwd: &'a Path,
    /// All environment variables.
    pub env: &'a BTreeMap<String, String>,
}

impl Sandbox {
    /// Checks a policy against this machine and starts its launcher. The program must call [`enter`] if its
    /// first argument is [`HELPER`].
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

    /// Starts a program with these standard streams. A program that cannot be run ends with the exit codes of
    /// a shell, 127 if there is no such program, and says why on its standard error.
    ///
    /// # Errors
    /// If the sandbox cannot be entered, or an argument contains a NUL.
    pub fn start(&self, start: Launch<'_>, streams: [BorrowedFd<'_>; 3]) -> io::Result<Confined> {
        self.0.start(start, streams).map(Confined)
    }

    /// Finds out with a command which parts of the machine programs have for themselves. The command's output goes to
    /// a file in `scratch`.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub fn isolation(&self, cwd: &Path, scratch: &Path) -> io::Result<Vec<Isolation>> {
        self.0.isolation(cwd, scratch)
    }

    /// Returns the folder for temporary files as programs see it, if the policy has one.
    pub fn temp(&self) -> Option<PathBuf> {
        self.0.temp()
    }

    /// Returns true once after the launcher ended by itself and was replaced.
    pub fn was_restarted(&self) -> bool {
        self.0.was_restarted()
    }

    /// Removes the placeholders of absent protected paths until the next command starts here, for a command of
    /// another sandbox that may create those paths.
    pub fn release(&self) {
        self.0.release();
    }

    /// Returns true if a line of output names a placeholder of an absent protected path.
    pub(crate) fn names_placeholder(&self, line: &str) -> bool {
        self.0.names_placeholder(line)
    }

    /// Takes the hosts that commands asked for since the last call, if the policy limits them to some.
    pub fn take_reached(&self) -> Vec<Reached> {
        self.0.take_reached()
    }

    /// Returns the parts of the policy that are not enforced here. If there are any, ask the user before a
    /// command runs.
    pub fn gaps(&self) -> &[Gap] {
        self.0.gaps()
    }
}

/// A program that was started in a sandbox. Dropping it ends the program with everything it started.
#[derive(Debug)]
pub struct Confined(backend::Running);

impl Confined {
    /// Waits for the program itself, without a runtime. Processes that it leaves behind end when this value is
    /// dropped.
    ///
    /// # Errors
    /// If the launcher ended before the program did.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

/// Returns true for an empty file or folder that a sandbox keeps in the place of an absent protected path. It is not
/// a file of the user.
pub fn is_placeholder(found: &rustix::fs::Stat) -> bool {
    backend::is_placeholder(found)
}

/// Returns true for folders without files of their own, whose entries tell about processes and devices.
pub fn is_of_kernel(folder: &std::path::Path) -> bool {
    backend::files::is_of_kernel(folder)
}

/// Removes the placeholders of all sandboxes, and creates no more. For the end of the program.
pub fn release_placeholders() {
    backend::release_placeholders();
}

/// SAFE-10: keeps other processes of the user from reading the memory and the environment of this one, and the
/// kernel from writing either to a core file. Must be called before the first secret is read.
pub fn protect_process() {
    // Nothing can be done about a refusal, and neither call needs a privilege.
    let limit = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(Resource::Core, limit);
    backend::hide_memory();
}

/// Becomes the helper that the arguments after [`HELPER`] name.
///
/// Must be called first in `main`, while there is only one thread. Where there is no sandbox, this always
/// fails.
pub fn enter(args: impl Iterator<Item = OsString>) -> ! {
    backend::enter(args)
}
