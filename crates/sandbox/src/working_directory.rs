//! The working directory of a session: fixed during a turn, changed between turns.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The working directory of a session, shared by its tools and the code that starts its turns.
#[derive(Debug, Clone, Default)]
pub struct WorkingDirectory(Arc<Mutex<Place>>);

#[derive(Debug, Default)]
struct Place {
    current: PathBuf,
    next: Option<PathBuf>,
}

impl WorkingDirectory {
    /// Starts in a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(Place {
            current: folder,
            next: None,
        })))
    }

    /// Returns the working directory of the current turn.
    pub fn current(&self) -> PathBuf {
        self.place().current.clone()
    }

    /// Sets the working directory of the next turn.
    pub fn set_next(&self, folder: PathBuf) {
        self.place().next = Some(folder);
    }

    /// Starts a turn and returns its working directory.
    pub fn begin_turn(&self) -> PathBuf {
        let mut place = self.place();
        if let Some(next) = place.next.take() {
            place.current = next;
        }
        place.current.clone()
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
