//! Waiting for something to become true. Tests do not sleep; this does, briefly, between two looks.

use std::time::{Duration, Instant};

/// How long tests wait for what should come at once: longer than any machine is ever busy with other tests, so that only
/// a hang takes it all. What a test must see ended before its own end is made to last longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(5);

/// Looks until `condition` holds or `limit` has passed, and says whether it held.
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
