//! A clock that goes on while the machine sleeps and that nobody can set.

#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(windlass_portable)))]
use self::linux as backend;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
use self::portable as backend;

use std::time::Duration;

/// Returns the time since the machine started.
pub(crate) fn now() -> Duration {
    backend::now()
}
