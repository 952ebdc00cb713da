//! The Linux backend: Landlock, seccomp, namespaces and the process table.

mod capabilities;
pub(crate) mod files;
mod filter;
mod init;
mod isolation;
pub(crate) mod launcher;
mod masks;
mod memory;
mod mounts;
mod namespaces;
mod path_rules;
mod placeholders;
mod private;
pub(crate) mod process;
mod redirects;
pub(crate) mod request;
mod resolved;
mod seen;
mod spare;
mod supervise;
mod supervised;
mod support;
mod sweeper;
mod syscalls;
mod unreachable;
pub(crate) mod warden;
pub(crate) mod wire;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::DumpableBehavior;

pub(crate) use self::init::enter;
pub(crate) use self::launcher::end_all as end_launchers;
use self::launcher::{Launcher, NotReady};
pub(crate) use self::memory::machine_memory;
use self::placeholders::Placeholders;
pub(crate) use self::placeholders::{is_mark as is_placeholder, release_all as release_placeholders};
use self::resolved::ResolvedPolicy;
use self::seen::Seen;
pub(crate) use self::supervised::{Running, Supervised, end_left, kill_all, none_left};
use crate::egress::Egress;
use crate::policy::Guard;
use crate::protected::Placeholder;
use crate::{Gap, Isolation, Launch, Network, Reached, SandboxError, SandboxPolicy, Support};

/// Folders of the system that contain no files of a user.
pub(crate) const SYSTEM_FOLDERS: &[&str] = &["/proc", "/sys", "/dev"];

/// This binary, even if an update has replaced its file in the meantime.
const OURSELVES: &str = "/proc/self/exe";

/// A policy resolved on this machine, and the launcher that enforces it.
#[derive(Debug)]
pub(crate) struct Confinement {
    wanted: SandboxPolicy,
    helper: PathBuf,
    gaps: Vec<Gap>,
    egress: Arc<Egress>,
    current: Mutex<Current>,
    /// Dropped last, after the commands that they keep out have ended.
    placeholders: Placeholders,
}

/// The launcher for new commands, and what it was started with.
#[derive(Debug)]
struct Current {
    policy: ResolvedPolicy,
    launcher: Arc<Launcher>,
    seen: Seen,
    /// True if a launcher ended by itself since the last command.
    restarted: bool,
    /// True if its placeholders were removed, so that it protects absent paths no longer.
    stale: bool,
}

impl Confinement {
    /// Resolves a policy and starts its launcher. The helper is this binary unless another one is given.
    pub(crate) fn new(wanted: SandboxPolicy, helper: Option<&Path>) -> Result<Self, SandboxError> {
        if support::landlock_abi().is_none() {
            return Err(SandboxError::NoLandlock);
        }
        if !support::seccomp() {
            return Err(SandboxError::NoFilter);
        }
        let helper = helper.unwrap_or(Path::new(OURSELVES)).to_owned();
        let placeholders = Placeholders::default();
        let egress = Arc::new(Egress::new(&wanted.hosts.allowed, &wanted.hosts.denied));
        let (current, missed) = start(&wanted, &helper, &placeholders, &egress)?;
        let mut gaps = current.policy.gaps();
        gaps.extend(missed.into_iter().map(Gap::Open));
        Ok(Self {
            wanted,
            helper,
            placeholders,
            gaps,
            egress,
            current: Mutex::new(current),
        })
    }

    pub(crate) fn start(&self, start: Launch<'_>, streams: [BorrowedFd<'_>; 3]) -> io::Result<Running> {
        let env = start
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let request = request::encode(start.program, start.cwd, start.arguments, env)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an argument contains a NUL"))?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let died = !current.launcher.is_alive();
        let is_current = current.seen.still_holds() && self.placeholders.still_hold();
        if died || current.stale || !is_current {
            // Commands that still run keep the old launcher.
            let started = self::start(&self.wanted, &self.helper, &self.placeholders, &self.egress);
            let (next, _) = started.map_err(|error| io::Error::other(error.to_string()))?;
            *current = Current {
                restarted: current.restarted || died,
                ..next
            };
        }
        Ok(Running {
            supervisor: current.launcher.launch(&request, streams)?,
            launcher: Arc::clone(&current.launcher),
        })
    }

    /// Returns true once after a launcher ended by itself and was replaced.
    pub(crate) fn was_restarted(&self) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut current.restarted)
    }

    /// Returns the parts of the machine that commands have for themselves.
    pub(crate) fn isolation(&self, cwd: &Path, scratch: &Path) -> io::Result<Vec<Isolation>> {
        isolation::of(self, cwd, scratch)
    }

    /// Returns the folder for temporary files as commands see it.
    pub(crate) fn temp(&self) -> Option<PathBuf> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_private = current.policy.temp.is_some() && current.policy.has(Guard::Mounts);
        match is_private {
            true => Some(PathBuf::from("/tmp")),
            false => self.wanted.temp.clone(),
        }
    }

    /// Removes the placeholders. The next command gets a new launcher.
    pub(crate) fn release(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.stale = true;
        self.placeholders.release();
    }

    pub(crate) fn names_placeholder(&self, line: &str) -> bool {
        self.placeholders.is_one_in(line)
    }

    pub(crate) fn take_reached(&self) -> Vec<Reached> {
        self.egress.take()
    }

    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}

/// Starts a launcher, with namespaces if they can be created. Also returns the absent paths that cannot be
/// protected.
fn start(
    wanted: &SandboxPolicy,
    helper: &Path,
    placeholders: &Placeholders,
    egress: &Arc<Egress>,
) -> Result<(Current, Vec<PathBuf>), SandboxError> {
    for masks in [true, false] {
        let mut policy = wanted.clone().resolve(masks)?;
        let seen = Seen::of(&policy);
        let mut missed = hold(&mut policy, placeholders);
        match Launcher::start(helper, &policy) {
            Ok(mut launcher) => {
                let redirects = policy.redirects();
                if launcher.keep_absent(redirects.clone()).is_err() {
                    missed.extend(redirects);
                }
                if let Some(listener) = launcher.proxy() {
                    Arc::clone(egress).serve(listener);
                }
                let launcher = Arc::new(launcher);
                launcher::remember(&launcher);
                let current = Current {
                    policy,
                    launcher,
                    seen,
                    restarted: false,
                    stale: false,
                };
                return Ok((current, missed));
            }
            Err(NotReady::NoNamespaces(why)) if wanted.network == Network::Hosts => {
                let error = io::Error::other(why);
                return Err(SandboxError::system("limiting the network to some hosts", error));
            }
            Err(NotReady::NoNamespaces(_)) if masks => placeholders.release(),
            Err(NotReady::NoNamespaces(why)) => {
                return Err(SandboxError::system(
                    "entering the sandbox",
                    io::Error::other(why),
                ));
            }
            Err(NotReady::Failed(error)) => return Err(error),
        }
    }
    Err(SandboxError::NoLandlock)
}

/// Creates the placeholders of a policy. Returns the absent paths that cannot be protected.
fn hold(policy: &mut ResolvedPolicy, placeholders: &Placeholders) -> Vec<PathBuf> {
    placeholders.forget_lost();
    let absent: Vec<(PathBuf, Placeholder)> = policy.placeholders().collect();
    let mut missed = Vec::new();
    for (path, kind) in absent {
        let refused = match kind {
            Placeholder::Nothing => true,
            Placeholder::File | Placeholder::Folder => match placeholders.hold(&path, kind) {
                Ok(()) => continue,
                // A command has no more rights there than this program.
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR) => false,
                Err(_) => true,
            },
        };
        policy.give_up(&path);
        if refused {
            missed.push(path);
        }
    }
    missed
}

/// Makes this process not dumpable: its memory and its files in `/proc` belong to root.
pub(crate) fn hide_memory() {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Asks the kernel for its features.
pub(crate) fn support() -> Support {
    support::of(Path::new(OURSELVES))
}

impl SandboxError {
    fn system(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            step: step.into(),
            source: source.into(),
        }
    }
}

impl From<landlock::RulesetError> for SandboxError {
    fn from(error: landlock::RulesetError) -> Self {
        Self::system("Landlock", io::Error::other(error))
    }
}

impl From<seccompiler::Error> for SandboxError {
    fn from(error: seccompiler::Error) -> Self {
        Self::system("seccomp", io::Error::other(error))
    }
}
