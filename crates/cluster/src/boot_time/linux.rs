//! The boot-time clock of Linux.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Duration::new(seconds, u32::try_from(nanos).unwrap_or_default())
}
