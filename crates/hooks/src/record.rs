//! Records of hook runs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Number of runs that are kept.
const KEPT: usize = 50;

/// A run of a hook, or the reason that one did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// Name of the event.
    pub event: String,
    /// Value that matchers were compared with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The matcher of the hook.
    pub matcher: String,
    /// The hook's program.
    pub command: String,
    /// Path of its file.
    pub file: String,
    /// Time it took, in milliseconds.
    pub ms: u64,
    /// The way it ended: an exit code, a signal, a timeout.
    pub exit: String,
    /// Its decision.
    pub decision: String,
    /// Reason it did not run. The other fields about the run are empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// The last runs, and for hooks that did not run the last reason.
#[derive(Debug, Clone, Default)]
pub struct HookRuns {
    runs: VecDeque<HookRun>,
    skipped: VecDeque<HookRun>,
}

impl HookRuns {
    /// Adds a record. Returns false if it repeats the last reason that a hook did not run.
    pub fn push(&mut self, run: HookRun) -> bool {
        if self.skipped.contains(&run) {
            return false;
        }
        if run.skipped.is_none() {
            self.runs.push_back(run);
        } else {
            self.skipped.retain(|known| {
                (&known.command, &known.file, &known.event) != (&run.command, &run.file, &run.event)
            });
            self.skipped.push_back(run);
        }
        for list in [&mut self.runs, &mut self.skipped] {
            if list.len() > KEPT {
                list.pop_front();
            }
        }
        true
    }

    /// Returns the last runs, oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &HookRun> {
        self.runs.iter()
    }

    /// Returns the hooks that did not run at their event, each with the last reason.
    pub fn skipped(&self) -> impl Iterator<Item = &HookRun> {
        self.skipped.iter()
    }
}
