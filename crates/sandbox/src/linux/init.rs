//! The launcher of one sandbox. It enters the sandbox once, and then starts commands on request.
//!
//! The process that this program starts creates the namespaces and a child. The child is the first process of
//! the new PID namespace. It mounts, drops every right that commands do not get, and forks a supervisor for
//! each request. When the connection to this program closes, for whatever reason, it exits, and the kernel
//! ends every other process of the namespace. On any failure it reports the step and exits; nothing ever runs
//! outside the sandbox.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::exit;

use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, setrlimit};

use super::resolved::ResolvedPolicy;
use super::{
    capabilities, filter, masks, namespaces, path_rules, private, spare, supervise, support, sweeper,
    syscalls, warden, wire,
};
use crate::policy::{Guard, Network, ResourceLimits};
use crate::{SandboxError, egress};

/// Argument that makes the helper a launcher, with its connection as standard input.
pub(super) const LAUNCH: &str = "--launch";

/// First reply of a launcher that is ready.
pub(super) const READY: &[u8] = b"ready";
/// Start of the first reply if namespaces cannot be created.
pub(super) const NO_NAMESPACES: &[u8] = b"no namespaces: ";

/// Exit code if the helper cannot do what it was started for.
const CANNOT_RUN: i32 = 126;
/// Value that makes the kernel prefer the commands to this program if memory runs out.
const OOM_SCORE: &str = "300";

/// Becomes the helper that the arguments name. See [`crate::enter`].
pub(crate) fn enter(mut args: impl Iterator<Item = OsString>) -> ! {
    match args.next() {
        Some(first) if first == support::PROBE => exit(support::probe()),
        Some(first) if first == LAUNCH => launch(),
        Some(first) if first == warden::WARDEN => warden::run(args),
        _ => {
            let error = SandboxError::Arguments;
            // If stderr is closed, the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "windlass: {error}");
            exit(CANNOT_RUN)
        }
    }
}

fn launch() -> ! {
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let (Ok(socket), Ok(nothing), Ok(_)) = (socket, File::open("/dev/null"), rustix::process::setsid())
    else {
        exit(CANNOT_RUN)
    };
    // Supervisors inherit standard input, and must not keep the connection open after the launcher.
    if rustix::stdio::dup2_stdin(&nothing).is_err() {
        exit(CANNOT_RUN)
    }
    drop(nothing);
    let failed = match serve(&socket) {
        Ok(()) => exit(0),
        Err(failed) => failed,
    };
    let text = match failed {
        Failure::Namespaces(error) => [NO_NAMESPACES, error.to_string().as_bytes()].concat(),
        Failure::Other(error) => error.to_string().into_bytes(),
    };
    let _ = wire::send(&socket, text.get(..wire::MAX_TEXT).unwrap_or(&text), &[]);
    exit(CANNOT_RUN)
}

enum Failure {
    Namespaces(SandboxError),
    Other(SandboxError),
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        Self::Other(error)
    }
}

fn serve(socket: &OwnedFd) -> Result<(), Failure> {
    let received =
        wire::receive(socket).map_err(|error| SandboxError::system("reading the policy", error))?;
    let Some((_, files)) = received else { return Ok(()) };
    let policy = files.first().and_then(|file| wire::read_whole(file).ok());
    let policy = policy.and_then(|bytes| String::from_utf8(bytes).ok());
    let policy = ResolvedPolicy::decode(&policy.unwrap_or_default())?;
    drop(files);
    if policy.has(Guard::Descriptors) {
        only(socket).map_err(|error| SandboxError::system("closing inherited files", error))?;
    }
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // Held by every process of the sandbox. Without a sweeper, the next sandbox removes the placeholders.
    let _running = match policy.masks {
        true => sweeper::start(socket, &policy).ok().flatten(),
        false => None,
    };
    if policy.masks {
        namespaces::enter(&policy).map_err(Failure::Namespaces)?;
        // The first child of a process that has created a PID namespace is the first in the namespace.
        let child = syscalls::fork().map_err(|error| SandboxError::system("starting the launcher", error))?;
        if let Some(child) = child {
            wait_for(child);
        }
        let parent = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        parent.map_err(|error| SandboxError::system("following the parent", error))?;
    } else {
        let adopted = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        adopted.map_err(|error| SandboxError::system("adopting orphans", error))?;
    }
    // Bound before a command can take the port.
    let proxy = match policy.network {
        Network::Hosts => {
            let listener = TcpListener::bind(("127.0.0.1", egress::PORT));
            Some(listener.map_err(|error| SandboxError::system("starting the proxy", error))?)
        }
        Network::Off | Network::On => None,
    };
    confine(&policy)?;
    // A command must not look into the launcher or its supervisor.
    let hidden = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    hidden.map_err(|error| SandboxError::system("hiding the launcher", error))?;
    let files: Vec<BorrowedFd<'_>> = proxy.iter().map(AsFd::as_fd).collect();
    wire::send(socket, READY, &files).map_err(|error| SandboxError::system("reporting", error))?;
    drop(proxy);
    spare::attend(socket, &policy);
    if !policy.masks {
        // No namespace ends them.
        supervise::kill_all();
    }
    Ok(())
}

/// Closes every file except the standard streams and the connection: one that leaked into this process would
/// bypass every path rule.
fn only(socket: &OwnedFd) -> io::Result<()> {
    let number = u32::try_from(socket.as_raw_fd()).unwrap_or(3);
    if number > 3 {
        syscalls::close_range(3, number - 1)?;
    }
    syscalls::close_range(number + 1, u32::MAX)
}

/// Waits for the launcher and exits as it does.
fn wait_for(child: Pid) -> ! {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => exit(status.exit_status().unwrap_or(CANNOT_RUN)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => exit(CANNOT_RUN),
        }
    }
}

/// Applies the guards. The order matters: each step takes away what the one before needed.
fn confine(policy: &ResolvedPolicy) -> Result<(), Failure> {
    let masked = match policy.masks {
        true => {
            private::mount_all(policy).map_err(Failure::Namespaces)?;
            match policy.has(Guard::Masks) {
                true => masks::apply(policy)?,
                false => policy
                    .denied
                    .iter()
                    .chain(&policy.read_only)
                    .cloned()
                    .collect::<BTreeSet<PathBuf>>(),
            }
        }
        false => BTreeSet::new(),
    };
    if policy.has(Guard::ResourceLimits) {
        limit(&policy.limits).map_err(|error| SandboxError::system("setting limits", error))?;
    }
    if policy.has(Guard::Capabilities) {
        capabilities::drop_dangerous()
            .map_err(|error| SandboxError::system("dropping capabilities", error))?;
    }
    if policy.has(Guard::NewPrivileges) {
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| SandboxError::system("refusing new privileges", error))?;
    }
    if policy.has(Guard::Paths) {
        path_rules::restrict(policy, &masked)?;
    }
    if policy.has(Guard::Filter) {
        filter::install(policy, support::truncation())?;
    }
    Ok(())
}

fn limit(limits: &ResourceLimits) -> rustix::io::Result<()> {
    let core = Some(limits.core.unwrap_or_default());
    let wanted = [
        (Resource::Core, core),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
    ];
    for (resource, value) in wanted {
        let Some(value) = value else { continue };
        // A policy never raises a limit, which would need a privilege.
        let most = rustix::process::getrlimit(resource).maximum;
        let value = Some(most.map_or(value, |most| most.min(value)));
        setrlimit(
            resource,
            Rlimit {
                current: value,
                maximum: value,
            },
        )?;
    }
    Ok(())
}
