//! A store in a folder of its own, and events to put into it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::Event;
use windlass_core::id::SessionId;
use windlass_core::log::{Batch, Lease, LogError, NewSession, Opened, Store};
use windlass_core::message::{FinishReason, Message, Part, Role};

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

pub(crate) fn said(role: Role, text: &str) -> Event {
    let message = Message::new(&SessionId::from("s"), role, vec![Part::text(text)], Timestamp(1));
    Event::Message {
        message: Arc::new(message),
    }
}

pub(crate) fn the_end(text: &str) -> Event {
    Event::Final {
        content: text.into(),
        finish: FinishReason::EndTurn,
    }
}

pub(crate) fn batch(first_seq: u64, events: Vec<Event>) -> Batch {
    Batch {
        first_seq,
        events,
        time: Timestamp(100 + first_seq),
        ..Batch::default()
    }
}

pub(crate) async fn append(store: &Arc<dyn Store>, lease: &Lease, first_seq: u64, events: Vec<Event>) {
    store.append(lease, batch(first_seq, events)).await.unwrap();
}
