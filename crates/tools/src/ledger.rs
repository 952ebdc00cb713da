//! Records the state in which the model last saw each file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::Stamp;

/// Shared by the tools that read and write files, so that a session does not overwrite changes it has not
/// seen.
#[derive(Clone, Default)]
pub(crate) struct FileLedger {
    seen: Arc<Mutex<HashMap<PathBuf, Stamp>>>,
}

impl FileLedger {
    /// Records the state in which a file was seen. `real` has every link resolved.
    pub(crate) fn note(&self, real: PathBuf, stamp: Stamp) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(real, stamp);
    }

    /// Returns true if a file was seen and is in another state now.
    pub(crate) fn is_stale(&self, real: &Path, now: Stamp) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(real).is_some_and(|then| *then != now)
    }
}
