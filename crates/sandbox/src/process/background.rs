//! Trees that outlive the call that started them. They end with the program at the latest.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::kill::{self, Kill};
use super::reaper;
use super::tree::{GONE, Target};

static TARGETS: Mutex<Vec<Target>> = Mutex::new(Vec::new());

/// A hold on a tree that is waited for elsewhere. As long as it is there, [`settle`](super::settle) and
/// [`end_all`](super::end_all) end the tree.
pub struct Background {
    marker: Vec<u8>,
}

impl Background {
    pub(super) fn begin(target: &Target) -> Self {
        targets().push(target.clone());
        Self {
            marker: target.marker.clone(),
        }
    }

    /// Begins to end the tree, as [`Tree::kill`](super::Tree::kill) does. `None` when nothing of it is left.
    pub fn kill(&self) -> Option<Kill> {
        let target = targets()
            .iter()
            .find(|target| target.marker == self.marker)
            .cloned();
        target.map(end)
    }

    /// The process itself has ended, so that its number may go to another one. What it started may still run.
    pub fn root_ended(&self) {
        let mut targets = targets();
        let target = targets.iter_mut().find(|target| target.marker == self.marker);
        if let Some(target) = target {
            target.root = GONE;
        }
    }

    /// Everything has ended.
    pub fn over(&self) {
        targets().retain(|target| target.marker != self.marker);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.over();
    }
}

/// Begins to end every tree in the background.
pub(super) fn end_each() {
    let all = targets().clone();
    for target in all {
        drop(end(target));
    }
}

fn end(target: Target) -> Kill {
    // Somebody still waits for the process itself, but it does not count as running any more.
    reaper::no_longer_live(&target);
    kill::start(target, None)
}

fn targets() -> MutexGuard<'static, Vec<Target>> {
    TARGETS.lock().unwrap_or_else(PoisonError::into_inner)
}
