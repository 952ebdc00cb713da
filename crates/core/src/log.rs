//! The record of sessions: what is stored, how a history is read back from it, and the ports of whoever keeps it.
//!
//! The record of a session is its state events in order ([`Entry`]). A [`History`] is a fold over them; nothing else is
//! the truth. What a killed process left half done is closed by [`recover`], which only ever adds.
//!
//! The ports say nothing about files or databases: [`SessionLog`] writes and reads one session, [`Sessions`] finds them,
//! [`Ledger`] tells what they cost, [`Blobs`] and [`Preferences`] keep the rest, [`Lifecycle`] waits for the store itself.
//! [`Store`] is all of them.

mod blob;
mod exchange;
mod history;
mod key;
pub mod recall;
mod recover;
mod session;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::blob::{Attachment, BlobLimits, Blobs};
pub use self::exchange::{Exchange, Exchanges, Frame, NewExchange, RecordedAnswer, Recorder, SharedRecorder};
pub use self::history::{History, counting};
pub use self::key::{SessionKey, SessionKeyError};
pub use self::recover::{INTERRUPTED_TEXT, interrupted, recover};
pub use self::session::{
    Booking, Found, Label, NewSession, SessionInfo, SessionQuery, SessionStatus, Spent, SpentBy, Totals,
};
use crate::clock::Timestamp;
use crate::event::Event;
use crate::id::SessionId;
use crate::message::Message;

/// A state event with its place in the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Rises by one with every entry of the session, from 1.
    pub seq: u64,
    /// When it was stored.
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The right to write, until it is given back or lost.
    pub lease: Lease,
    /// The session.
    pub info: SessionInfo,
    /// The entries from which the history can be read: from the first message that still counts.
    pub entries: Vec<Entry>,
    /// The reply that was being received when the last owner stopped.
    pub draft: Option<Message>,
}

/// The right to write to a session. Only one owner has it at a time; a later one has a higher fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// Who has it.
    pub owner: String,
    /// Rises whenever the owner changes. A writer with an older one is refused.
    pub fence: u64,
}

/// What is written together: all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// New entries, the first with this number.
    pub first_seq: u64,
    /// In order.
    pub events: Vec<Event>,
    /// When it happened.
    pub time: Timestamp,
    /// What becomes of the reply that is being received.
    pub draft: DraftChange,
    /// What model calls used and cost.
    pub bookings: Vec<Booking>,
    /// Whether it must survive a power cut before this is acknowledged.
    pub durability: Durability,
}

/// What becomes of the draft.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum DraftChange {
    /// It stays.
    #[default]
    Keep,
    /// It is this now.
    Set(Box<Message>),
    /// It is gone: an entry took its place.
    Clear,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process.
    #[default]
    Process,
    /// A power cut.
    Disk,
}

/// Writes and reads one session.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// Makes a session and takes its lease.
    ///
    /// # Errors
    /// When it cannot be stored.
    async fn create(&self, new: NewSession, owner: &str) -> Result<Opened, LogError>;

    /// Takes the lease of a session and reads what a turn needs. Nobody else's lease is taken while they live.
    ///
    /// # Errors
    /// [`LogError::Busy`] when somebody has it, [`LogError::Unknown`] when there is no such session.
    async fn open(&self, session: &SessionId, owner: &str) -> Result<Opened, LogError>;

    /// Writes a batch. Returns when it is as safe as it asks for.
    ///
    /// # Errors
    /// [`LogError::Lost`] when the lease is somebody else's by now, or why it could not be written. Then nothing was.
    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), LogError>;

    /// Says that the owner still lives.
    ///
    /// # Errors
    /// As [`Self::append`].
    async fn renew(&self, lease: &Lease) -> Result<(), LogError>;

    /// Gives the lease back.
    ///
    /// # Errors
    /// When it cannot be written; the lease then ends by itself.
    async fn release(&self, lease: &Lease) -> Result<(), LogError>;

    /// Entries after `seq`, at most `limit` of them.
    ///
    /// # Errors
    /// When they cannot be read; a damaged one is named.
    async fn entries(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Entry>, LogError>;
}

/// Finds sessions.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// One session.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn get(&self, session: &SessionId) -> Result<Option<SessionInfo>, LogError>;

    /// Sessions, the one that changed last first.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionInfo>, LogError>;

    /// Who works in a session now, if somebody does.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn holder(&self, session: &SessionId) -> Result<Option<String>, LogError>;

    /// Names, titles or keys a session anew. What is `None` stays.
    ///
    /// # Errors
    /// When there is no such session, the key is taken, or it cannot be written.
    async fn label(&self, session: &SessionId, label: &Label) -> Result<(), LogError>;

    /// Removes a session for good. Refused while somebody has its lease.
    ///
    /// # Errors
    /// When there is no such session, it is busy, or it cannot be written.
    async fn delete(&self, session: &SessionId) -> Result<(), LogError>;

    /// Places where words were said, best first.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn search(&self, words: &str, limit: usize) -> Result<Vec<Found>, LogError>;
}

/// Tells what model calls cost.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// What was spent, grouped. Of one session with its children, or of all.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn spent(&self, session: Option<&SessionId>, by: SpentBy) -> Result<Vec<Spent>, LogError>;

    /// Books a call that no turn made: a title, a summary on demand.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn book(&self, session: &SessionId, booking: Booking) -> Result<(), LogError>;
}

/// Keeps small things by name.
#[async_trait]
pub trait Preferences: Send + Sync {
    /// What was set.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn preference(&self, scope: &str, name: &str) -> Result<Option<String>, LogError>;

    /// Sets it; `None` forgets it.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn set_preference(&self, scope: &str, name: &str, value: Option<&str>) -> Result<(), LogError>;
}

/// Waits for the store itself.
#[async_trait]
pub trait Lifecycle: Send + Sync {
    /// Waits until the store is open. Requests made earlier wait by themselves.
    ///
    /// # Errors
    /// The reason why the store cannot be opened.
    async fn ready(&self) -> Result<(), LogError>;

    /// Returns once everything written so far would survive a power cut.
    ///
    /// # Errors
    /// When the disk refuses.
    async fn sync(&self) -> Result<(), LogError>;
}

/// Every port of a store.
pub trait Store: SessionLog + Sessions + Ledger + Blobs + Preferences + Exchanges + Lifecycle {}

impl<T: SessionLog + Sessions + Ledger + Blobs + Preferences + Exchanges + Lifecycle> Store for T {}

/// Why something could not be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There is no such session.
    #[error("there is no session {0}")]
    Unknown(SessionId),
    /// Somebody else works in it.
    #[error("session {session} is in use by {owner}")]
    Busy {
        /// The session.
        session: SessionId,
        /// Who has it.
        owner: String,
    },
    /// Somebody else has taken the session over; nothing was written.
    #[error("session {0} was taken over by another process; nothing more is written from here")]
    Lost(SessionId),
    /// Something stored is not what it should be.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// What.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store is of another kind or of a newer version.
    #[error("{0}")]
    Foreign(String),
    /// The disk is full.
    #[error("the disk is full: {0}")]
    Full(String),
    /// Nothing can be written.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// Another process holds the store for too long.
    #[error("the store is locked by another process: {0}")]
    Locked(String),
    /// Anything else the store said.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// Entries read from the store at a time.
const PAGE: usize = 1000;

/// Reads every entry of a session.
///
/// # Errors
/// When it cannot be read.
pub async fn record(store: &(impl SessionLog + ?Sized), session: &SessionId) -> Result<Vec<Entry>, LogError> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let after = all.last().map_or(0, |entry| entry.seq);
        let page = store.entries(session, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}
