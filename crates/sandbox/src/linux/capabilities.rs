//! The capabilities that root keeps in the sandbox: working on the files of any owner, and switching to
//! another user.
//!
//! Landlock and seccomp apply to root as to any user, but some capabilities bypass paths: raw devices, kernel
//! modules, file handles.

use rustix::io::{Errno, Result};
use rustix::thread::{CapabilitySet, CapabilitySets};

const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// Drops every other capability, for this process and the program that it becomes.
pub(super) fn drop_dangerous() -> Result<()> {
    let now = rustix::thread::capabilities(None)?;
    // Without the right to change the bounding set it does not matter: no new privileges are ever gained.
    if now.effective.contains(CapabilitySet::SETPCAP) {
        let others = CapabilitySet::all().iter().filter(|one| !KEPT.contains(*one));
        for one in others {
            match rustix::thread::remove_capability_from_bounding_set(one) {
                // The kernel does not know the capability, so no process has it.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: now.effective & KEPT,
            permitted: now.permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        },
    )
}
