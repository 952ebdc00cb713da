//! The store on SQLite.

mod agents;
mod audit;
mod blobs;
mod books;
mod care;
mod connection;
mod entries;
mod exchanges;
mod failure;
mod find;
mod fragments;
mod goals;
mod lease;
mod memory;
mod opening;
mod process;
mod read;
mod schema;
mod slots;
mod transfer;
mod writer;

use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tempfile::TempDir;
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentLedger, AgentLimits, AgentQuery, AgentRow, Attachment, Batch, BlobLimits, Blobs,
    Booking, Durability, Entry, Exchange, Exchanges, Found, Frame, GoalInfo, GoalRegistry, Label, Lease,
    Ledger, Lifecycle, LogError, MessagePlaces, NewAgent, NewExchange, NewSession, Opened, Preferences,
    SessionInfo, SessionLog, SessionQuery, Sessions, SpawnError, Spawned, Spent, SpentBy, UserName,
};

pub use self::care::{Health, backup, check, vacuum};
pub(crate) use self::lease::is_alive_anywhere;
pub use self::lease::owner;
use self::read::Readers;
use self::writer::Writer;

/// Sessions in a SQLite database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SqliteStore {
    /// Dropped before the writer, so that the writer is the last to close the database.
    readers: Readers,
    writer: Writer,
    blobs: Arc<PathBuf>,
    clock: Arc<dyn Clock>,
    /// Folder of an ephemeral database, removed after the writer has closed it.
    _folder: Option<Arc<TempDir>>,
}

impl SqliteStore {
    /// Starts to open a database. Creates it and its folder if they do not exist, and migrates older
    /// versions. Requests made meanwhile wait, and fail if it cannot be opened; [`Self::wait`] returns the
    /// cause.
    ///
    /// # Errors
    /// When the system refuses to create the thread or the folder. The folder is created first, private to
    /// the user, so that callers that continue meanwhile find it there.
    pub(crate) fn begin(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        Self::start(path, clock, None)
    }

    fn start(path: &Path, clock: Arc<dyn Clock>, folder: Option<Arc<TempDir>>) -> Result<Self, LogError> {
        connection::make_folder(path)?;
        let file = path.to_owned();
        let (writer, opening) = Writer::start(move || connection::open(&file))?;
        Ok(Self {
            writer,
            readers: Readers::new(path, opening),
            blobs: Arc::new(blobs::folder(path)),
            clock,
            _folder: folder,
        })
    }

    /// Starts to open a new database in a new folder below `parent`, or in a temporary one. It is removed with the
    /// last handle.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(crate) fn ephemeral(parent: Option<&Path>, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        // Created with mode 0700.
        let made = match parent {
            None => tempfile::tempdir(),
            Some(parent) => fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .and_then(|()| tempfile::tempdir_in(parent)),
        };
        let folder = made.map_err(|error| LogError::ReadOnly(error.to_string()))?;
        let file = folder.path().join("session.db");
        Self::start(&file, clock, Some(Arc::new(folder)))
    }

    /// Waits until the database is open. Blocks the thread.
    ///
    /// # Errors
    /// When the file is not a Windlass database or is newer than this program, or the system refuses access.
    pub(crate) fn wait(&self) -> Result<(), LogError> {
        self.readers.ready()
    }

    /// Runs a query that reads little. It runs at once on the connection of the writer if nobody writes, because waking
    /// another thread, which may have to open another connection, takes longer.
    async fn read_little<T: Send + 'static>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        match self.writer.try_read(query) {
            Ok(found) => found,
            Err(query) => self.readers.run(query).await,
        }
    }

    /// Removes the files of contents that are no longer attached. Runs in its own transaction, after the one
    /// that detached them is committed.
    async fn sweep(&self, addresses: Vec<String>) -> Result<(), LogError> {
        if addresses.is_empty() {
            return Ok(());
        }
        let folder = Arc::clone(&self.blobs);
        let work = move |connection: &rusqlite::Connection| blobs::sweep(connection, &folder, &addresses);
        self.writer.run(Durability::Process, work).await
    }
}

#[async_trait]
impl Lifecycle for SqliteStore {
    async fn ready(&self) -> Result<(), LogError> {
        let readers = self.readers.clone();
        read::off_thread(move || readers.ready()).await
    }

    async fn sync(&self) -> Result<(), LogError> {
        self.writer.run(Durability::Disk, writer::touch).await
    }

    fn metrics(&self) -> String {
        String::new()
    }
}

#[async_trait]
impl SessionLog for SqliteStore {
    async fn create(&self, new: NewSession, owner: &str) -> Result<Opened, LogError> {
        let (owner, clock) = (owner.to_owned(), Arc::clone(&self.clock));
        let work =
            move |connection: &rusqlite::Connection| lease::create(connection, new, &owner, clock.now());
        self.writer.run(Durability::Process, work).await
    }

    async fn open(&self, session: &SessionId, owner: &str) -> Result<Opened, LogError> {
        let (id, owner, clock) = (session.clone(), owner.to_owned(), Arc::clone(&self.clock));
        let work = move |connection: &rusqlite::Connection| lease::take(connection, &id, &owner, clock.now());
        let lease = self.writer.run(Durability::Process, work).await?;
        let id = session.clone();
        self.readers
            .run(move |connection| {
                connection::at_once(connection, |connection| opening::opened(connection, &id, lease))
            })
            .await
    }

    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), LogError> {
        let (lease, durability) = (lease.clone(), batch.durability);
        let session = lease.session.clone();
        let has_ended = batch.events.iter().any(windlass_core::event::Event::is_terminal);
        let work = move |connection: &rusqlite::Connection| entries::append(connection, &lease, &batch);
        let appended = self.writer.run(durability, work);
        if has_ended {
            // Queued after the append; nobody waits for it.
            let work = move |connection: &rusqlite::Connection| entries::index(connection, &session);
            drop(self.writer.run(Durability::Process, work));
        }
        appended.await
    }

    async fn renew(&self, lease: &Lease) -> Result<(), LogError> {
        let (lease, clock) = (lease.clone(), Arc::clone(&self.clock));
        let work = move |connection: &rusqlite::Connection| lease::renew(connection, &lease, clock.now());
        self.writer.run(Durability::Process, work).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LogError> {
        let lease = lease.clone();
        let work = move |connection: &rusqlite::Connection| lease::release(connection, &lease);
        self.writer.run(Durability::Process, work).await
    }

    async fn entries(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Entry>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| entries::after(connection, &id, after, limit))
            .await
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn get(&self, session: &SessionId) -> Result<Option<SessionInfo>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| find::get(connection, &id))
            .await
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionInfo>, LogError> {
        let query = query.clone();
        self.readers
            .run(move |connection| find::list(connection, &query))
            .await
    }

    async fn holder(&self, session: &SessionId) -> Result<Option<String>, LogError> {
        let (id, clock) = (session.clone(), Arc::clone(&self.clock));
        self.readers
            .run(move |connection| lease::holder(connection, &id, clock.now()))
            .await
    }

    async fn label(&self, session: &SessionId, label: &Label) -> Result<(), LogError> {
        let (id, label) = (session.clone(), label.clone());
        let work = move |connection: &rusqlite::Connection| find::label(connection, &id, &label);
        self.writer.run(Durability::Process, work).await
    }

    async fn delete(&self, session: &SessionId) -> Result<(), LogError> {
        let (id, clock) = (session.clone(), Arc::clone(&self.clock));
        let work = move |connection: &rusqlite::Connection| {
            let attached = blobs::attachments(connection, &id)?;
            find::delete(connection, &id, clock.now())?;
            Ok(attached
                .into_iter()
                .map(|attachment| attachment.address)
                .collect())
        };
        let gone = self.writer.run(Durability::Disk, work).await?;
        self.sweep(gone).await
    }

    async fn search(
        &self,
        words: &str,
        user: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<Found>, LogError> {
        let (words, user) = (words.to_owned(), user.cloned());
        self.readers
            .run(move |connection| find::search(connection, &words, user.as_ref(), limit))
            .await
    }
}

#[async_trait]
impl Ledger for SqliteStore {
    async fn spent(&self, session: Option<&SessionId>, by: SpentBy) -> Result<Vec<Spent>, LogError> {
        let session = session.cloned();
        self.readers
            .run(move |connection| books::spent(connection, session.as_ref(), by))
            .await
    }

    async fn book(&self, session: &SessionId, booking: Booking) -> Result<(), LogError> {
        let id = session.clone();
        let work = move |connection: &rusqlite::Connection| books::book(connection, &id, &booking);
        self.writer.run(Durability::Process, work).await
    }
}

#[async_trait]
impl AgentLedger for SqliteStore {
    async fn spawn(&self, new: NewAgent, owner: &str) -> Result<Spawned, SpawnError> {
        let (owner, clock) = (owner.to_owned(), Arc::clone(&self.clock));
        let work = move |connection: &rusqlite::Connection| {
            // A refusal wrote nothing, so the transaction may be committed.
            match agents::spawn(connection, &new, &owner, clock.now()) {
                Err(SpawnError::Log(error)) => Err(error),
                told => Ok(told),
            }
        };
        self.writer.run(Durability::Process, work).await?
    }

    async fn restart(&self, session: &SessionId, limits: &AgentLimits) -> Result<AgentRow, SpawnError> {
        let (id, limits, clock) = (session.clone(), limits.clone(), Arc::clone(&self.clock));
        let work = move |connection: &rusqlite::Connection| match agents::restart(
            connection,
            &id,
            &limits,
            clock.now(),
        ) {
            Err(SpawnError::Log(error)) => Err(error),
            told => Ok(told),
        };
        self.writer.run(Durability::Process, work).await?
    }

    async fn agent(&self, session: &SessionId) -> Result<Option<AgentRow>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| agents::get(connection, &id))
            .await
    }

    async fn agents(&self, query: &AgentQuery) -> Result<Vec<AgentRow>, LogError> {
        let query = query.clone();
        self.readers
            .run(move |connection| agents::list(connection, &query))
            .await
    }

    async fn budget_left(&self, session: &SessionId) -> Result<AgentBudget, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| agents::budget_left(connection, &id))
            .await
    }

    async fn set_worktree(&self, session: &SessionId, folder: Option<&str>) -> Result<(), LogError> {
        let (id, folder) = (session.clone(), folder.map(str::to_owned));
        let work =
            move |connection: &rusqlite::Connection| agents::set_worktree(connection, &id, folder.as_deref());
        self.writer.run(Durability::Process, work).await
    }
}

#[async_trait]
impl GoalRegistry for SqliteStore {
    async fn goals(&self, only_active: bool) -> Result<Vec<GoalInfo>, LogError> {
        self.read_little(move |connection| goals::list(connection, only_active))
            .await
    }

    async fn unattended_cost(&self, since: Timestamp) -> Result<f64, LogError> {
        self.readers
            .run(move |connection| goals::unattended_cost(connection, since))
            .await
    }
}

#[async_trait]
impl Blobs for SqliteStore {
    async fn attach(
        &self,
        session: &SessionId,
        name: &str,
        mut content: Box<dyn Read + Send>,
        limits: BlobLimits,
    ) -> Result<Attachment, LogError> {
        let folder = Arc::clone(&self.blobs);
        let staged = read::off_thread(move || blobs::stage(&folder, &mut *content)).await?;
        let (id, name, clock) = (session.clone(), name.to_owned(), Arc::clone(&self.clock));
        let folder = Arc::clone(&self.blobs);
        let work = move |connection: &rusqlite::Connection| {
            blobs::attach(connection, &folder, (&id, &name), &staged, (limits, clock.now()))
        };
        let (attachment, gone) = self.writer.run(Durability::Process, work).await?;
        self.sweep(gone).await?;
        Ok(attachment)
    }

    async fn attachments(&self, session: &SessionId) -> Result<Vec<Attachment>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| blobs::attachments(connection, &id))
            .await
    }

    async fn read_at(&self, address: &str, offset: u64, limit: usize) -> Result<Option<Vec<u8>>, LogError> {
        let (folder, address) = (Arc::clone(&self.blobs), address.to_owned());
        read::off_thread(move || blobs::read_at(&folder, &address, offset, limit)).await
    }

    async fn content(&self, address: &str) -> Result<Option<Vec<u8>>, LogError> {
        let (folder, address) = (Arc::clone(&self.blobs), address.to_owned());
        read::off_thread(move || blobs::get(&folder, &address)).await
    }
}

#[async_trait]
impl Exchanges for SqliteStore {
    async fn keep_exchange(
        &self,
        session: &SessionId,
        new: NewExchange,
        limit: u64,
    ) -> Result<bool, LogError> {
        let id = session.clone();
        let work = move |connection: &rusqlite::Connection| exchanges::keep(connection, &id, &new, limit);
        self.writer.run_later(work).await
    }

    async fn exchanges(&self, session: &SessionId) -> Result<Vec<Exchange>, LogError> {
        let id = session.clone();
        self.readers
            .run(move |connection| exchanges::all(connection, &id))
            .await
    }

    async fn keep_frame(&self, frame: &Frame) -> Result<String, LogError> {
        let frame = frame.clone();
        let work = move |connection: &rusqlite::Connection| exchanges::keep_frame(connection, &frame);
        self.writer.run(Durability::Process, work).await
    }

    async fn frame(&self, digest: &str) -> Result<Option<Frame>, LogError> {
        let digest = digest.to_owned();
        self.readers
            .run(move |connection| exchanges::frame(connection, &digest))
            .await
    }
}

#[async_trait]
impl Preferences for SqliteStore {
    async fn preference(&self, scope: &str, name: &str) -> Result<Option<String>, LogError> {
        let (scope, name) = (scope.to_owned(), name.to_owned());
        self.readers
            .run(move |connection| find::preference(connection, &scope, &name))
            .await
    }

    async fn set_preference(&self, scope: &str, name: &str, value: Option<&str>) -> Result<(), LogError> {
        let (scope, name, value) = (scope.to_owned(), name.to_owned(), value.map(str::to_owned));
        let work = move |connection: &rusqlite::Connection| {
            find::set_preference(connection, &scope, &name, value.as_deref())
        };
        self.writer.run(Durability::Process, work).await
    }

    async fn settle_preference(&self, scope: &str, name: &str, value: &str) -> Result<String, LogError> {
        let (scope, name, value) = (scope.to_owned(), name.to_owned(), value.to_owned());
        let work = move |connection: &rusqlite::Connection| {
            find::settle_preference(connection, &scope, &name, &value)
        };
        self.writer.run(Durability::Process, work).await
    }

    async fn preferences(&self, scope: &str) -> Result<Vec<(String, String)>, LogError> {
        let scope = scope.to_owned();
        self.readers
            .run(move |connection| find::preferences(connection, &scope))
            .await
    }
}

#[async_trait]
impl MessagePlaces for SqliteStore {
    async fn place(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, LogError> {
        let (session, message) = (session.clone(), message.clone());
        self.readers
            .run(move |connection| find::place(connection, &session, &message))
            .await
    }
}
