//! The helper's main: it narrows itself and becomes the program. On any failure it ends; it never runs the program without.

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

use super::policy::{Guard, ResourceLimits, Settled};
use super::{SandboxError, capabilities, filter, grants, kernel, masks, support};

/// What a program reads that has no input.
const NOTHING: &str = "/dev/null";

/// The program was found but cannot be run, or the wall could not be put up.
const CANNOT_RUN: i32 = 126;
/// The program was not found.
const NOT_FOUND: i32 = 127;

/// Narrows this process as the arguments after [`HELPER`](super::HELPER) say, and becomes the program they name.
///
/// Must be called first in `main`, while there is one thread. Whatever goes wrong is told in one line on stderr, with the
/// exit codes of a shell: 127 when there is no such program, 126 for everything else.
pub fn enter(args: impl Iterator<Item = OsString>) -> ! {
    let (code, text) = match narrow_and_run(args) {
        Ok(never) => match never {},
        Err(Failure::Sandbox(error)) => (CANNOT_RUN, format!("the sandbox could not be set up: {error}")),
        Err(Failure::Program(name, error)) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let code = if missing { NOT_FOUND } else { CANNOT_RUN };
            (code, format!("{}: {error}", name.display()))
        }
    };
    // There is nobody to tell when stderr is gone; the exit code still says it.
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

fn narrow_and_run(mut args: impl Iterator<Item = OsString>) -> Result<Infallible, Failure> {
    let policy = args.next().ok_or(SandboxError::Arguments)?;
    if policy == support::PROBE {
        exit(support::probe());
    }
    let policy = policy.to_str().ok_or(SandboxError::Arguments)?;
    let settled = Settled::decode(policy)?;
    if args.next().is_none_or(|mark| mark != "--") {
        return Err(SandboxError::Arguments.into());
    }
    let program = args.next().ok_or(SandboxError::Arguments)?;
    let mut command = Command::new(&program);
    command.args(args);
    if settled.prepared.is_some() {
        // What is there now is for us.
        let nothing =
            File::open(NOTHING).map_err(|error| SandboxError::system("opening /dev/null", error))?;
        command.stdin(nothing);
    }
    narrow(&settled)?;
    Err(Failure::Program(program, command.exec()))
}

/// The order matters: each step takes away what the one before needed.
fn narrow(settled: &Settled) -> Result<(), SandboxError> {
    if settled.has(Guard::Descriptors) {
        close_on_exec().map_err(|error| SandboxError::system("closing inherited files", error))?;
    }
    let masked = match settled.masks {
        true if settled.has(Guard::Masks) => masks::put_up(settled)?,
        true => settled.inside_writable().cloned().collect(),
        false => BTreeSet::new(),
    };
    if settled.has(Guard::ResourceLimits) {
        limit(&settled.limits).map_err(|error| SandboxError::system("setting limits", error))?;
    }
    if settled.has(Guard::Capabilities) {
        capabilities::drop_dangerous()
            .map_err(|error| SandboxError::system("dropping capabilities", error))?;
    }
    if settled.has(Guard::NewPrivileges) {
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| SandboxError::system("refusing new privileges", error))?;
    }
    if settled.has(Guard::Paths) {
        match &settled.prepared {
            Some(hidden) if hidden.is_subset(&masked) => grants::restrict_to(io::stdin().as_fd(), settled)?,
            _ => grants::restrict(settled, &masked)?,
        }
    }
    if settled.has(Guard::Filter) {
        filter::install(settled, support::truncation())?;
    }
    Ok(())
}

/// A descriptor that leaked into us would be a way around every rule about paths.
fn close_on_exec() -> io::Result<()> {
    let first = 3;
    if kernel::close_on_exec_from(first).is_ok() {
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
        // SAFETY: the number was just listed as open and nothing else in this single thread closes it; the borrow ends here.
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
        // Raising a limit is not what this is for, and needs a privilege.
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
