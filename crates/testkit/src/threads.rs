//! Several threads that start at the same moment.

use std::sync::Barrier;
use std::thread;

/// Runs `act` on `count` threads at once. File locks belong to open files, so threads contend for them like processes.
pub fn at_once(count: usize, act: impl Fn(usize) + Sync) {
    let barrier = Barrier::new(count);
    thread::scope(|scope| {
        for number in 0..count {
            let (barrier, act) = (&barrier, &act);
            scope.spawn(move || {
                barrier.wait();
                act(number);
            });
        }
    });
}
