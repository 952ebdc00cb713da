//! Trees that outlive the call that started them. They end with the program at the latest.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::kill::{self, Kill};
use super::reaper;
use super::target::{GONE, Target};
use crate::backend::{self, Supervised};

static TARGETS: Mutex<Vec<Target>> = Mutex::new(Vec::new());

/// Handle on a tree that is waited for elsewhere. While the handle exists, [`settle`](super::settle) and
/// [`end_all`](super::end_all) end the tree.
pub struct Background(Inner);

enum Inner {
    /// In a sandbox.
    Confined(Supervised),
    /// Without a sandbox: the marker of the tree.
    Direct(Vec<u8>),
}

impl Background {
    pub(super) fn confined(command: &Supervised) -> Self {
        command.leave();
        Self(Inner::Confined(command.clone()))
    }

    pub(super) fn begin(target: &Target) -> Self {
        targets().push(target.clone());
        Self(Inner::Direct(target.marker.clone()))
    }

    /// Starts to end the tree, as [`Tree::kill`](super::Tree::kill) does. Returns `None` if nothing of it is
    /// left.
    pub fn kill(&self) -> Option<Kill> {
        let marker = match &self.0 {
            Inner::Confined(command) => return (!command.is_gone()).then(|| Kill::confined(command)),
            Inner::Direct(marker) => marker,
        };
        let target = targets().iter().find(|target| target.marker == *marker).cloned();
        target.map(end)
    }

    /// Records that the process itself has ended, so that its number may be reused. Its children may still
    /// run.
    pub fn root_ended(&self) {
        let Inner::Direct(marker) = &self.0 else { return };
        let mut targets = targets();
        let target = targets.iter_mut().find(|target| target.marker == *marker);
        if let Some(target) = target {
            target.root = GONE;
        }
    }

    /// Records that the whole tree has ended.
    pub fn over(&self) {
        if let Inner::Direct(marker) = &self.0 {
            targets().retain(|target| target.marker != *marker);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.over();
    }
}

/// Starts to end every tree in the background.
pub(super) fn end_each() {
    backend::end_left();
    let all = targets().clone();
    for target in all {
        drop(end(target));
    }
}

fn end(target: Target) -> Kill {
    // Another task still waits for the process itself, but the call no longer counts as running.
    reaper::no_longer_live(&target);
    kill::start(target, None)
}

fn targets() -> MutexGuard<'static, Vec<Target>> {
    TARGETS.lock().unwrap_or_else(PoisonError::into_inner)
}
