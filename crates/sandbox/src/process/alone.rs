//! Commands that change protected files run alone.
//!
//! A sandbox protects a file by a mount on it. The kernel removes the mount from every sandbox as soon as the file is
//! replaced anywhere, and most programs replace a file when they save it. So while an approved call changes protected
//! files, no other command that can write may run: it could wait for that moment and change the new file.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Inner, Tree};
use crate::backend::Supervised;

static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// Files that a command may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    /// None but temporary ones.
    Nothing,
    /// Any but protected ones.
    Files,
    /// Protected ones, too.
    Protected,
}

struct Running {
    command: Supervised,
    changes: Changes,
}

/// The commands of this program, from the check until the start of another one.
pub(crate) struct Turn(MutexGuard<'static, Vec<Running>>);

/// Returns the reason why no call may change protected files now, for the model.
pub(crate) fn refusal() -> Option<String> {
    let others = running();
    let runs = others.iter().any(|other| !other.command.has_ended());
    runs.then(|| {
        "Refused (security): another command is still running, and while protected files change, it could change them, \
         too. Wait for it, or end it with bash_job, and call again."
            .to_owned()
    })
}

/// Ends the processes that ended commands have left behind, because they could change protected files while a call
/// does.
pub(crate) async fn end_leftovers() {
    let left: Vec<Supervised> = {
        let others = running();
        let left = others.iter().filter(|other| other.command.has_ended());
        left.map(|other| other.command.clone()).collect()
    };
    left.iter().for_each(Supervised::terminate);
    for command in left {
        // Its supervisor gives up after some seconds, and then the whole sandbox ends.
        command.gone().await;
    }
}

/// Returns the turn to start a command with these changes.
///
/// # Errors
/// If another command runs that must not run at the same time.
pub(crate) fn turn(changes: Changes) -> io::Result<Turn> {
    let others = running();
    let conflicts = |other: &Running| match changes {
        Changes::Nothing => false,
        Changes::Files => other.changes == Changes::Protected,
        Changes::Protected => true,
    };
    match others.iter().any(conflicts) {
        true => Err(io::Error::other(
            "a command that changes protected files cannot run at the same time as another one; wait for the other one, \
             or end it with bash_job, and call again",
        )),
        false => Ok(Turn(others)),
    }
}

impl Turn {
    /// Remembers the command that was started.
    pub(crate) fn end(mut self, tree: &Tree, changes: Changes) {
        match &tree.0 {
            Inner::Confined(command) if changes != Changes::Nothing => self.0.push(Running {
                command: command.clone(),
                changes,
            }),
            Inner::Confined(_) | Inner::Direct(_) => {}
        }
    }
}

/// Returns the commands that can write and have a process left.
fn running() -> MutexGuard<'static, Vec<Running>> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain(|running| !running.command.is_gone());
    running
}
