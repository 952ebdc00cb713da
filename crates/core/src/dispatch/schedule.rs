//! Which calls run together.

use super::Execution;
use super::admit::{Admitted, Fate};
use crate::tool::Category;

/// More at once than this helps nobody.
const MOST_AT_ONCE: usize = 8;

/// Cuts the calls into batches that run one after the other; the calls of a batch run together.
pub(super) fn batches(calls: &mut Vec<Admitted>, mode: Execution) -> Vec<Vec<Admitted>> {
    let mut batches: Vec<Vec<Admitted>> = Vec::new();
    let mut open = false;
    for call in calls.drain(..) {
        let shares = can_share(&call.fate, mode);
        match batches.last_mut() {
            Some(batch) if open && shares && batch.len() < MOST_AT_ONCE => batch.push(call),
            _ => batches.push(vec![call]),
        }
        open = shares;
    }
    batches
}

fn can_share(fate: &Fate, mode: Execution) -> bool {
    match (fate, mode) {
        (Fate::Settled(_), _) => true,
        (_, Execution::Sequential) => false,
        (Fate::Run { traits, .. }, _) if traits.exclusive => false,
        (_, Execution::Parallel) => true,
        (Fate::Run { attempt, .. }, Execution::Auto) => attempt.prepared.category == Category::Read,
    }
}
