//! What root may still do inside: work on files whoever owns them, and become somebody lesser.
//!
//! Landlock and seccomp bind root as everybody else, but some capabilities reach around paths: raw devices, kernel
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

/// Gives up every other capability, for this process and for what it becomes.
pub(super) fn drop_dangerous() -> Result<()> {
    let now = rustix::thread::capabilities(None)?;
    // Without the right to change the bounding set there is none to lose: no new privileges are ever gained.
    if now.effective.contains(CapabilitySet::SETPCAP) {
        let others = CapabilitySet::all().iter().filter(|one| !KEPT.contains(*one));
        for one in others {
            match rustix::thread::remove_capability_from_bounding_set(one) {
                // The kernel does not know it, so nobody has it.
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
