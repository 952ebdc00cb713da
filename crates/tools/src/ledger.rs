//! What the model knows of each file: the state in which it last saw it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::Stamp;

/// Shared by the tools that read and write files, so that a file is not overwritten by one who has not seen it.
#[derive(Clone, Default)]
pub(crate) struct FileLedger {
    seen: Arc<Mutex<HashMap<PathBuf, Stamp>>>,
}

impl FileLedger {
    /// Notes the state in which a file was seen. `real` has every link followed.
    pub(crate) fn note(&self, real: PathBuf, stamp: Stamp) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(real, stamp);
    }

    /// Whether a file was seen and is in another state now.
    pub(crate) fn is_stale(&self, real: &Path, now: Stamp) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(real).is_some_and(|then| *then != now)
    }
}
