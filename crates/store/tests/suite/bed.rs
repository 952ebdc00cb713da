//! A store in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::log::{LogError, NewSession, Opened, Store};

pub(crate) use super::events::{append, batch, said, the_end};

/// Opens a database with the system clock.
pub(crate) fn open(path: &Path) -> Result<Arc<dyn Store>, LogError> {
    windlass_store::open(path, Arc::new(SystemClock::default()))
}

pub(crate) struct Bed {
    folder: TempDir,
    pub(crate) store: Arc<dyn Store>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("data/windlass.db")).unwrap();
        Self { folder, store }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("data/windlass.db")
    }

    /// Opens the same database, as another process would.
    pub(crate) fn again(&self) -> Arc<dyn Store> {
        open(&self.file()).unwrap()
    }

    /// Makes an entry unreadable.
    pub(crate) fn damage(&self, seq: u64) {
        let raw = rusqlite::Connection::open(self.file()).unwrap();
        raw.execute(
            "UPDATE entry SET payload = '{' WHERE seq = ?1",
            [seq.cast_signed()],
        )
        .unwrap();
    }

    /// Runs SQL, with `{audit}` for the table of the audit log.
    pub(crate) fn raw(&self, sql: &str) -> Result<(), String> {
        let raw = rusqlite::Connection::open(self.file()).unwrap();
        let done = raw.execute_batch(&sql.replace("{audit}", "audit"));
        done.map_err(|error| error.to_string())
    }

    /// Removes what keeps rows of the audit log from being changed.
    pub(crate) fn unprotect_audit(&self) {
        self.raw("DROP TRIGGER audit_is_fixed; DROP TRIGGER audit_is_kept")
            .unwrap();
    }

    /// Returns what a check of the database finds.
    pub(crate) fn problems(&self) -> Vec<String> {
        windlass_store::maintenance::check(&self.file()).unwrap().problems
    }

    pub(crate) async fn session(&self, id: &str) -> Opened {
        let new = NewSession {
            id: Some(id.into()),
            place: "/project".into(),
            time: Timestamp(1),
            ..NewSession::default()
        };
        self.store.create(new, &windlass_store::owner()).await.unwrap()
    }
}
