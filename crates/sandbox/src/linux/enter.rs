//! The helper's main function: confines the process, which then becomes the program. On any failure the
//! helper exits; it never runs the program without the sandbox.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::resolved::ResolvedPolicy;
use super::{capabilities, filter, masks, path_rules, support, syscalls};
use crate::SandboxError;
use crate::policy::{Guard, ResourceLimits};

/// Standard input of a program that has none.
const NO_INPUT: &str = "/dev/null";

/// Exit code if the program was found but cannot be run, or the sandbox could not be set up.
const CANNOT_RUN: i32 = 126;
/// Exit code if the program was not found.
const NOT_FOUND: i32 = 127;

/// Confines this process and becomes the program, as [`crate::enter`] says.
pub(crate) fn enter(args: impl Iterator<Item = OsString>) -> ! {
    let (code, text) = match confine_and_run(args) {
        Ok(never) => match never {},
        Err(Failure::Sandbox(error)) => (CANNOT_RUN, format!("the sandbox could not be set up: {error}")),
        Err(Failure::Program(name, error)) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let code = if missing { NOT_FOUND } else { CANNOT_RUN };
            (code, format!("{}: {error}", name.display()))
        }
    };
    // If stderr is closed, the exit code still reports the failure.
    let _ = writeln!(io::stderr(), "windlass: {text}");
    exit(code)
}

enum Failure {
    Sandbox(SandboxError),
    Program(OsString, io::Error),
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error)
    }
}

fn confine_and_run(mut args: impl Iterator<Item = OsString>) -> Result<Infallible, Failure> {
    let encoded = args.next().ok_or(SandboxError::Arguments)?;
    if encoded == support::PROBE {
        exit(support::probe());
    }
    let encoded = encoded.to_str().ok_or(SandboxError::Arguments)?;
    let policy = ResolvedPolicy::decode(encoded)?;
    if args.next().is_none_or(|mark| mark != "--") {
        return Err(SandboxError::Arguments.into());
    }
    let program = args.next().ok_or(SandboxError::Arguments)?;
    let mut command = Command::new(&program);
    command.args(args);
    if policy.prepared.is_some() {
        // The current standard input carries the path rules, which are for the helper only.
        let no_input =
            File::open(NO_INPUT).map_err(|error| SandboxError::system("opening /dev/null", error))?;
        command.stdin(no_input);
    }
    confine(&policy)?;
    Err(Failure::Program(program, command.exec()))
}

/// Applies the guards. The order matters: each step takes away what the one before needed.
fn confine(policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    if policy.has(Guard::Descriptors) {
        close_on_exec().map_err(|error| SandboxError::system("closing inherited files", error))?;
    }
    let masked = match policy.masks {
        true if policy.has(Guard::Masks) => masks::apply(policy)?,
        true => policy.inside_writable().cloned().collect(),
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
        match &policy.prepared {
            Some(hidden) if hidden.is_subset(&masked) => {
                path_rules::restrict_to(io::stdin().as_fd(), policy)?;
            }
            _ => path_rules::restrict(policy, &masked)?,
        }
    }
    if policy.has(Guard::Filter) {
        filter::install(policy, support::truncation())?;
    }
    Ok(())
}

/// Closes inherited descriptors on exec: a leaked one would bypass every path rule.
fn close_on_exec() -> io::Result<()> {
    let first = 3;
    if syscalls::close_on_exec_from(first).is_ok() {
        return Ok(());
    }
    for entry in fs::read_dir("/proc/self/fd")? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<RawFd>().ok());
        let Some(number) = number.filter(|number| *number > 2) else {
            continue;
        };
        // SAFETY: the number was just listed as open and nothing else in this single thread closes it; the
        // borrow ends here.
        #[allow(unsafe_code)]
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
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
        (Resource::As, limits.memory),
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
