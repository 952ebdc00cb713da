//! The record of sessions: stored entries, the history read from them, and the ports of the store.
//!
//! The record of a session is its state events in order ([`Entry`]). A [`History`] is a fold over them, and
//! there is no other source of truth. [`recover`] closes the work that a killed process left open; it only
//! adds entries.
//!
//! The ports are independent of files and databases: [`SessionLog`] writes and reads one session,
//! [`Sessions`] finds sessions, [`Ledger`] reports their cost, [`AgentLedger`] keeps sub-agents,
//! [`GoalRegistry`] lists the goals they work on, [`Slots`] and [`Deliveries`] belong to scheduled jobs, [`Blobs`]
//! and [`Preferences`] store the rest, [`MemoryStore`] keeps memory across sessions, [`MessagePlaces`] finds messages, [`UserLedger`] reports what users have spent, [`AuditLog`] keeps the audit log, [`Lifecycle`] waits for the store itself. [`Store`] combines all of them.
//! A store that several servers share also has [`Servers`], [`SessionInbox`] and [`SharedFolders`].

mod agents;
mod audit;
mod blob;
mod cluster;
mod exchange;
mod folders;
mod goal;
mod history;
mod key;
mod memory;
pub mod recall;
mod recover;
mod running;
mod session;
mod slots;
mod spawn;
mod stored;
mod user;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::agents::{
    AgentBudget, AgentFamily, AgentJob, AgentLedger, AgentLimits, AgentQuery, AgentRow, AgentState,
    AgentStatus, AgentsLeft, NewAgent, SpawnError, Spawned,
};
pub use self::audit::{
    AuditColumns, AuditHash, AuditHead, AuditLog, AuditQuery, AuditRecord, AuditRow, UserLedger,
};
pub use self::blob::{Attachment, BlobLimits, Blobs};
pub use self::cluster::{
    Beat, ClusterStore, Dropped, Holder, Notice, Post, PostKind, ServerInfo, ServerRow, Servers,
    SessionInbox, Whereabouts,
};
pub use self::exchange::{Exchange, Exchanges, Frame, NewExchange, RecordedAnswer, Recorder, SharedRecorder};
pub use self::folders::{FolderRecord, KeptFor, PlaceWait, Relocation, SharedFolders};
pub use self::goal::{GoalInfo, GoalRegistry, Verification};
pub use self::history::{History, counting};
pub use self::key::{SessionKey, SessionKeyError};
pub use self::memory::{
    MemoryChange, MemoryIndex, MemoryKind, MemoryLedger, MemoryMiss, MemoryPostings, MemoryQuery,
    MemorySource, MemoryStats, MemoryStore, MemoryUnit, MemoryUnits, NewUnit, UnitVector, Unread,
    WordPostings,
};
pub use self::recover::{INTERRUPTED_TEXT, NOT_RUN_TEXT, complete, interrupted, recover, take_over};
pub use self::running::ended_commands;
pub use self::session::{
    Booking, Found, Label, NewSession, SessionInfo, SessionQuery, SessionStatus, Spent, SpentBy, Totals,
};
pub use self::slots::{
    Claimed, Delivered, Deliveries, Delivery, DeliveryRecord, JobFacts, JobQuery, JobStanding, MAX_SURPLUS,
    NewSlot, RUN_GRACE_MS, RunningSlot, SlotCause, SlotEnd, SlotKey, SlotRecord, SlotSession, SlotState,
    Slots,
};
pub use self::spawn::AgentCounts;
pub use self::stored::{event_kind, is_milestone, searchable};
pub use self::user::{UserName, UserNameError};
use crate::clock::Timestamp;
use crate::event::{Event, Placed};
use crate::id::{MessageId, SessionId};
use crate::message::Message;

/// A state event with its place in the session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// Sequence number. It starts at 1 and increases by one with every entry of the session.
    pub seq: u64,
    /// Time of storage.
    pub time: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            seq: u64,
            time: Timestamp,
        }
        let Placed { head, event } = Placed::<Head>::deserialize(deserializer)?;
        Ok(Self {
            seq: head.seq,
            time: head.time,
            event,
        })
    }
}

/// Result of opening a session.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Right to write, until it is released or lost.
    pub lease: Lease,
    /// The session.
    pub info: SessionInfo,
    /// Entries from which the history can be read, starting at the first message that is still part of it.
    pub entries: Vec<Entry>,
    /// Partial reply that was being received when the last owner stopped.
    pub draft: Option<Message>,
    /// Unfinished work of the last owner that continues here; `None` if it is only to be closed.
    pub dropped: Option<Dropped>,
}

/// Right to write to a session. Only one owner holds it at a time; a later owner has a higher fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// Owner of the lease.
    pub owner: String,
    /// Fencing number. It increases whenever the owner changes; a writer with an older number is refused.
    pub fence: u64,
}

/// Changes that are written atomically.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Time of the events.
    pub time: Timestamp,
    /// Change to the partial reply.
    pub draft: DraftChange,
    /// Tokens and cost of model calls.
    pub bookings: Vec<Booking>,
    /// Required durability before the write is acknowledged.
    pub durability: Durability,
}

/// Change to the draft.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum DraftChange {
    /// Keeps the draft.
    #[default]
    Keep,
    /// Replaces the draft.
    Set(Box<Message>),
    /// Removes the draft: an entry took its place.
    Clear,
}

/// Durability of an acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives the end of the process.
    #[default]
    Process,
    /// Survives a power cut.
    Disk,
}

/// Writes and reads one session.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// Creates a session and takes its lease.
    ///
    /// # Errors
    /// Fails if the session cannot be stored.
    async fn create(&self, new: NewSession, owner: &str) -> Result<Opened, LogError>;

    /// Takes the lease of a session and reads the data a turn needs. Never takes the lease of an owner that
    /// is alive.
    ///
    /// # Errors
    /// [`LogError::Busy`] if another owner has the lease, [`LogError::Unknown`] if the session does not
    /// exist.
    async fn open(&self, session: &SessionId, owner: &str) -> Result<Opened, LogError>;

    /// Writes a batch. Returns once it has the requested durability.
    ///
    /// # Errors
    /// [`LogError::Lost`] if another owner has taken the lease, or the reason the batch could not be written.
    /// In either case nothing was written.
    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), LogError>;

    /// Renews the lease: signals that the owner is alive.
    ///
    /// # Errors
    /// Same as [`Self::append`].
    async fn renew(&self, lease: &Lease) -> Result<(), LogError>;

    /// Releases the lease.
    ///
    /// # Errors
    /// Fails if the release cannot be written; the lease then expires.
    async fn release(&self, lease: &Lease) -> Result<(), LogError>;

    /// Returns at most `limit` entries after `seq`.
    ///
    /// # Errors
    /// Fails if the entries cannot be read; the error names a damaged entry.
    async fn entries(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Entry>, LogError>;
}

/// Finds sessions.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Returns one session.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn get(&self, session: &SessionId) -> Result<Option<SessionInfo>, LogError>;

    /// Returns sessions, most recently changed first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionInfo>, LogError>;

    /// Returns the current lease owner of a session, if there is one.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn holder(&self, session: &SessionId) -> Result<Option<String>, LogError>;

    /// Changes the name, title or key of a session. Fields that are `None` stay unchanged.
    ///
    /// # Errors
    /// Fails if the session does not exist, the key is taken, or the change cannot be written.
    async fn label(&self, session: &SessionId, label: &Label) -> Result<(), LogError>;

    /// Deletes a session permanently. Refused while it is leased.
    ///
    /// # Errors
    /// Fails if the session does not exist, is busy, or cannot be deleted.
    async fn delete(&self, session: &SessionId) -> Result<(), LogError>;

    /// Searches the text of the sessions of a user, or of all users, best match first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn search(
        &self,
        words: &str,
        user: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<Found>, LogError>;
}

/// Reports and books the cost of model calls.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Returns the spending of one session with its children, or of all sessions, in groups.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn spent(&self, session: Option<&SessionId>, by: SpentBy) -> Result<Vec<Spent>, LogError>;

    /// Books a call made outside a turn: a title, a summary on demand.
    ///
    /// # Errors
    /// Fails if the booking cannot be written.
    async fn book(&self, session: &SessionId, booking: Booking) -> Result<(), LogError>;
}

/// Stores small values by name.
#[async_trait]
pub trait Preferences: Send + Sync {
    /// Returns the value of a preference.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn preference(&self, scope: &str, name: &str) -> Result<Option<String>, LogError>;

    /// Sets a preference; `None` removes it.
    ///
    /// # Errors
    /// Fails if the preference cannot be written.
    async fn set_preference(&self, scope: &str, name: &str, value: Option<&str>) -> Result<(), LogError>;

    /// Sets a preference that has no value yet, and returns the value that it has then. Of several callers, all get that
    /// of the first.
    ///
    /// # Errors
    /// Fails if the preference cannot be written.
    async fn settle_preference(&self, scope: &str, name: &str, value: &str) -> Result<String, LogError>;

    /// Returns all preferences of a scope with their names, sorted by name.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn preferences(&self, scope: &str) -> Result<Vec<(String, String)>, LogError>;
}

/// Finds entries by their message.
#[async_trait]
pub trait MessagePlaces: Send + Sync {
    /// Returns the number of the first entry of a message.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn place(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, LogError>;
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

    /// Returns the ports for several servers; `None` if the store is for one machine.
    fn cluster(&self) -> Option<Arc<dyn ClusterStore>> {
        None
    }

    /// Returns counts in the text format of Prometheus; empty if the store has none.
    fn metrics(&self) -> String;
}

/// Every port of a store.
pub trait Store:
    SessionLog
    + Sessions
    + Ledger
    + AgentLedger
    + GoalRegistry
    + Blobs
    + Preferences
    + MessagePlaces
    + Exchanges
    + Slots
    + Deliveries
    + MemoryStore
    + UserLedger
    + AuditLog
    + Lifecycle
{
}

impl<
    T: SessionLog
        + Sessions
        + Ledger
        + AgentLedger
        + GoalRegistry
        + Blobs
        + Preferences
        + MessagePlaces
        + Exchanges
        + Slots
        + Deliveries
        + MemoryStore
        + UserLedger
        + AuditLog
        + Lifecycle,
> Store for T
{
}

/// Reason data could not be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The session does not exist.
    #[error("there is no session {0}")]
    Unknown(SessionId),
    /// Another owner works in the session.
    #[error("session {session} is in use by {owner}")]
    Busy {
        /// The session.
        session: SessionId,
        /// Owner of the lease.
        owner: String,
    },
    /// Another owner has taken over the session; nothing was written.
    #[error("session {0} was taken over by another process; nothing more is written from here")]
    Lost(SessionId),
    /// Stored data is damaged.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Name of the damaged data.
        what: String,
        /// Description of the damage.
        why: String,
    },
    /// The store is of another kind or of a newer version.
    #[error("{0}")]
    Foreign(String),
    /// The disk is full.
    #[error("the disk is full: {0}")]
    Full(String),
    /// The store cannot be written.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// Another process held the store locked for too long.
    #[error("the store is locked by another process: {0}")]
    Locked(String),
    /// Any other failure of the store.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// Number of entries read from the store at a time.
const PAGE: usize = 1000;

/// Reads every entry of a session.
///
/// # Errors
/// Fails if the session cannot be read.
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
