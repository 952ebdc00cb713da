//! Waits for a condition. Tests do not sleep; this does, briefly, between two checks.

use std::time::{Duration, Instant};

/// Time that tests wait for something that should happen at once: longer than any machine is ever busy with
/// other tests, so that only a hang uses it up. Processes that a test must see end are made to last longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(5);

/// Checks `condition` until it holds or `limit` has passed, and returns true if it held.
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
