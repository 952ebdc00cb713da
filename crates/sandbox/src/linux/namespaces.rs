//! The namespaces of a launcher: its own view of files, processes, IPC objects and, without network access,
//! its own empty network.

use std::fs;
use std::io;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::resolved::ResolvedPolicy;
use super::syscalls;
use crate::SandboxError;
use crate::policy::Guard;

/// Moves this process into new namespaces. Its next child is the first process in the PID namespace.
///
/// # Errors
/// If the system does not let this user create them.
pub(super) fn enter(policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    if !policy.has(Guard::Namespaces) {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        return Err(SandboxError::system("creating namespaces", refused));
    }
    let mut flags = UnshareFlags::NEWNS;
    for (guard, flag) in [
        (Guard::Processes, UnshareFlags::NEWPID),
        (Guard::Ipc, UnshareFlags::NEWIPC),
    ] {
        if policy.has(guard) {
            flags |= flag;
        }
    }
    if policy.own_network() {
        flags |= UnshareFlags::NEWNET;
    }
    create(flags).map_err(|error| SandboxError::system("creating namespaces", error))?;
    if policy.own_network() {
        syscalls::loopback_up().map_err(|error| SandboxError::system("starting the local network", error))?;
    }
    Ok(())
}

/// Creates namespaces, and mounts that do not propagate to the machine.
pub(super) fn create(flags: UnshareFlags) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let capable = rustix::thread::capabilities(None)?
        .effective
        .contains(CapabilitySet::SYS_ADMIN);
    if capable {
        // Root gets no user namespace: inside one, root could not work on other users' files.
        unshare(flags)?;
    } else {
        unshare(UnshareFlags::NEWUSER | flags)?;
        let (user, group) = (user.as_raw(), group.as_raw());
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    mount_change(
        c"/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    Ok(())
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only unsharing the descriptor table is unsound, and the flags do not include it.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}
