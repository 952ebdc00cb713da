//! The wall around child processes, and path handles for the file tools.
//!
//! - [`SandboxPolicy`] says what a child may reach. [`Sandbox::new`] checks it against this machine, [`Sandbox::wrap`] gives what to
//!   start instead of the program: this binary again, which narrows itself in [`enter`] and becomes the program. For one
//!   without input, [`Sandbox::wrap_without_input`] makes the path rules beforehand, once for many.
//! - [`Roots`] opens files for our own tools so that the object that was checked is the object that is used.
//! - [`support`] says what this kernel enforces.
//!
//! ## How the wall stands
//!
//! 1. *Landlock* lists what may be read and written. It can only allow, and what it allows it allows below, so around a
//!    denied path its siblings are allowed instead of its parents. That holds for paths that do not exist yet, too.
//! 2. Inside a writable folder that would forbid new files beside a denied path. There a *mount namespace* hides the
//!    denied path behind an empty, read-only folder, a read-only path behind a read-only mount, and pins the folders
//!    above, so that they cannot be moved away. A denied path that does not exist is held by an empty folder for as long
//!    as the [`Sandbox`] lives, because nothing can be mounted on nothing.
//! 3. *seccomp* refuses sockets, new namespaces, mounts, tracing and the rest of what a command has no business with.
//! 4. Root keeps only the capabilities that files need. No new privileges, no inherited descriptors, no core files.
//!
//! Without namespaces, a denied path that exists inside a writable folder is still kept, at the price that nothing new
//! can be made beside it, and one that does not exist is not kept. [`Sandbox::gaps`] lists both, so that somebody is asked.
//!
//! Everything only ever narrows: a child that starts the helper again with a wider policy gets the narrower of the two.
//!
//! What this deliberately does not cover: hard links to a denied file that exist before the command, names and command
//! lines in `/proc`, and, on kernels before Landlock 6, signals to other processes of the same user.

mod aliases;
mod capabilities;
mod command_sandbox;
mod digest;
mod enter;
mod environment;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod handle;
mod hold;
mod kernel;
mod masks;
pub mod path;
mod policy;
mod prepared;
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
pub use self::enter::enter;
pub use self::environment::child_environment;
pub use self::handle::{OpenMode, Parents, PathDenied, Place, Roots};
use self::hold::Holds;
use self::policy::Settled;
pub use self::policy::{Guard, LocalSockets, Network, ResourceLimits, SandboxPolicy};
use self::prepared::Prepared;
pub use self::support::{Support, support};
pub use self::working_directory::WorkingDirectory;
pub use self::workspace::Workspace;

/// The first argument that makes this binary the helper.
pub const HELPER: &str = "__sandbox";

/// This binary, also when its file was replaced by an update in the meantime.
const OURSELVES: &str = "/proc/self/exe";

/// Why there is no wall. Never a reason to run without one: that is for a person to decide.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Nothing can be enforced here.
    #[error("this kernel has no Landlock, so commands cannot be confined")]
    NoLandlock,
    /// Nothing can be filtered here.
    #[error("this kernel or processor has no seccomp filters, so commands cannot be confined")]
    NoFilter,
    /// A path of the policy does not mean one place.
    #[error("the path {} of the sandbox policy {problem}", path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The helper was started with something else than what [`Sandbox::wrap`] gives.
    #[error("the sandbox helper got arguments that it does not understand")]
    Arguments,
    /// A step was refused by the system.
    #[error("{step}: {source}")]
    System {
        /// What was being done.
        step: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The path rules were refused.
    #[error("Landlock: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// The system call filter was refused.
    #[error("seccomp: {0}")]
    Seccomp(#[from] seccompiler::Error),
}

impl SandboxError {
    fn system(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            step: step.into(),
            source: source.into(),
        }
    }
}

/// What the wall cannot do here, although the policy asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// A command could make this path, or replace it.
    Open(PathBuf),
    /// Commands cannot make anything directly in this folder, because something in it is denied.
    Frozen(PathBuf),
}

/// A checked policy, ready to start children. It must live as long as they do: what holds the place of absent denied
/// paths goes with it.
#[derive(Debug)]
pub struct Sandbox {
    settled: Settled,
    helper: PathBuf,
    holds: Holds,
    prepared: Prepared,
    gaps: Vec<Gap>,
}

impl Sandbox {
    /// Checks a policy against this machine. The program must call [`enter`] when its first argument is [`HELPER`].
    ///
    /// # Errors
    /// When the kernel cannot enforce it, or a path in it is no place.
    pub fn new(policy: SandboxPolicy) -> Result<Self, SandboxError> {
        Self::with_helper(policy, Path::new(OURSELVES))
    }

    /// The same with another program that calls [`enter`].
    ///
    /// # Errors
    /// As [`Sandbox::new`].
    pub fn with_helper(policy: SandboxPolicy, helper: &Path) -> Result<Self, SandboxError> {
        let support = support::of(helper);
        if support.landlock_abi.is_none() {
            return Err(SandboxError::NoLandlock);
        }
        if !support.seccomp {
            return Err(SandboxError::NoFilter);
        }
        let settled = policy.settle(support.user_namespaces)?;
        let mut wall = Self {
            gaps: settled.gaps(),
            settled,
            helper: helper.to_owned(),
            holds: Holds::default(),
            prepared: Prepared::default(),
        };
        let missed = wall.hold();
        wall.gaps.extend(missed.into_iter().map(Gap::Open));
        Ok(wall)
    }

    /// What to start instead of a program: the helper, and its arguments.
    pub fn wrap(&self, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        // A place that cannot be held again is told by the helper, which then does not start the program.
        self.hold();
        self.arguments(&self.settled, program, args)
    }

    /// The same for a program that has no input, which starts sooner: the path rules are made here, once for many
    /// commands, and handed on. The third is what the helper must have as its standard input; the program finds nothing
    /// there.
    pub fn wrap_without_input(&self, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>, Stdio) {
        self.hold();
        let (settled, input) = match self.prepared.next(&self.settled) {
            Ok((rules, hidden)) => {
                let mut settled = self.settled.clone();
                settled.prepared = Some(hidden);
                (settled, rules.into())
            }
            // The helper makes its own, or tells why it cannot.
            Err(_) => (self.settled.clone(), Stdio::null()),
        };
        let (helper, arguments) = self.arguments(&settled, program, args);
        (helper, arguments, input)
    }

    fn arguments(&self, settled: &Settled, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        let mut all: Vec<OsString> = vec![HELPER.into(), settled.encode().into(), "--".into()];
        all.push(program.into());
        all.extend(args.iter().map(OsString::from));
        (self.helper.clone(), all)
    }

    /// What it cannot do here. When this is not empty, somebody should be asked before a command runs.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    fn hold(&self) -> Vec<PathBuf> {
        let held = self.settled.to_hold();
        held.filter(|path| self.holds.hold(path).is_err()).collect()
    }
}

/// What starts a program without any wall. Only for a caller that was told to by a person.
pub fn unprotected(program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
    (program.to_owned(), args.iter().map(OsString::from).collect())
}
