//! A monotonic clock that also runs while the machine is suspended.

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
