//! Ports of a store that several servers share: the servers themselves, and the inbox of sessions.
//!
//! A lease belongs to a server: it renews one row, and with it the leases of all its sessions. A session whose server
//! is gone can be claimed by another one. The inbox carries what clients send to a session that another server owns;
//! its commit is the acknowledgement.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use super::{LogError, PlaceWait, SharedFolders};
use crate::clock::Timestamp;
use crate::id::SessionId;

/// A server as it announces itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Id of this run of the server. It owns sessions under this name.
    pub id: String,
    /// Address at which other servers reach it, `host:port`; empty if it has none.
    pub address: String,
    /// Version of the program.
    pub version: String,
    /// Places that it has: `host:NAME`, `volume:NAME`, `any`.
    pub places: Vec<String>,
    /// Maximum number of turns that it runs at once.
    pub slots: u32,
}

/// A server as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRow {
    /// The server.
    pub info: ServerInfo,
    /// True if its lease has not ended.
    pub is_alive: bool,
    /// Time left of its lease, or since it ended, in milliseconds.
    pub lease_ms: u64,
    /// Number of sessions that it owns.
    pub sessions: u64,
    /// Number of these with a turn that has not ended.
    pub working: u64,
}

/// News that come with a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beat {
    /// True if there are sessions that this server may claim.
    pub has_work: bool,
    /// True if a session of this server has unfinished work.
    pub has_own: bool,
    /// Own sessions with messages in their inbox.
    pub inbox: Vec<SessionId>,
    /// Sessions whose owner changed since the mark of the last beat.
    pub moved: Vec<SessionId>,
    /// Time until the next lease of another server ends, unless it is renewed, in milliseconds.
    pub ends_ms: Option<u64>,
    /// Time on the clock of the store.
    pub time: Timestamp,
    /// Mark for the next beat.
    pub mark: u64,
}

/// Unfinished work of a session that a server of a cluster opens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Last owner.
    pub from: String,
    /// Time since it gave the session back, or since its lease ended, in milliseconds.
    pub after_ms: u64,
    /// True if inputs wait that would start by themselves.
    pub is_queued: bool,
}

/// The current owner of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Name of the owner: the id of a server, or the name of a process.
    pub owner: String,
    /// Address of the server; empty if the owner is not a server of the cluster, or cannot be reached.
    pub address: String,
}

/// Servers that share a store.
#[async_trait]
pub trait Servers: Send + Sync {
    /// Announces a server, or renews its lease. `since` is the mark of the last beat, 0 at first. Must not be tried again
    /// when the connection is lost: the caller measures its deadline from the call.
    ///
    /// # Errors
    /// Fails if the store cannot be written now.
    async fn beat(&self, server: &ServerInfo, lease: Duration, since: u64) -> Result<Beat, LogError>;

    /// Claims sessions with unfinished work whose owner is gone, at most `limit`: dropped turns first, then the oldest.
    /// Only sessions at one of the server's places.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn claim(&self, server: &ServerInfo, limit: usize) -> Result<Vec<SessionId>, LogError>;

    /// Returns sessions with unfinished work that this owner has, or that wait for a server if it is `None`.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn unfinished(&self, owner: Option<&str>) -> Result<Vec<SessionId>, LogError>;

    /// Gives a session back while its work is unfinished, or all sessions of an owner, and removes the server. Others
    /// may claim them at once.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn give_back(&self, owner: &str, session: Option<&SessionId>) -> Result<(), LogError>;

    /// Returns all servers whose lease has not ended, and those that ended not long ago.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn servers(&self) -> Result<Vec<ServerRow>, LogError>;

    /// Returns where a session is: its live owner, and its place.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn whereabouts(&self, session: &SessionId) -> Result<Option<Whereabouts>, LogError>;
}

/// The place of a session, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// Live owner; `None` if nobody owns it.
    pub holder: Option<Holder>,
    /// Place of its folder, `host:NAME`, `volume:NAME` or `any`; `None` if no server of a cluster has opened it yet.
    pub home: Option<String>,
    /// Set if no server has this place now.
    pub waits: Option<PlaceWait>,
    /// Fence of the last owner.
    pub fence: u64,
    /// True if it has unfinished work.
    pub is_unfinished: bool,
    /// Number of its last entry.
    pub last_seq: u64,
}

/// Kind of a message in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    /// An input.
    Submit,
    /// A request to stop the turn.
    Cancel,
    /// An answer to a permission request or a question.
    Reply,
    /// A request to take a queued message back.
    TakeBack,
    /// A request to continue with the queue.
    GoOn,
    /// SUB-4: a sub-agent in the background has ended. The store puts it into the inbox of the session above with the
    /// end, and takes it out with the delivery.
    ChildDone,
    /// SUB-3: a sub-agent waits for an answer of those who follow the session at the top of its tree.
    ChildAsks,
}

impl PostKind {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Submit, "submit"),
        (Self::Cancel, "cancel"),
        (Self::Reply, "reply"),
        (Self::TakeBack, "take_back"),
        (Self::GoOn, "go_on"),
        (Self::ChildDone, "child_done"),
        (Self::ChildAsks, "child_asks"),
    ];

    /// Returns the name in the store.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let named = |(kind, known)| (known == name).then_some(kind);
        Self::NAMES.into_iter().find_map(named)
    }
}

/// A message in the inbox of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Id, made by the client. The entry that the message becomes takes it from the inbox by this id.
    pub id: String,
    /// The session.
    pub session: SessionId,
    /// Kind of the message.
    pub kind: PostKind,
    /// Content, as JSON.
    pub payload: String,
    /// Server that took it in, which waits for the answer.
    pub from: String,
    /// Time it was stored.
    pub made: Timestamp,
}

/// The inbox of sessions.
#[async_trait]
pub trait SessionInbox: Send + Sync {
    /// Stores a message and wakes the session's owner. A message whose id is known is not stored again.
    ///
    /// # Errors
    /// Fails if the message is not stored.
    async fn post(&self, post: &Post) -> Result<(), LogError>;

    /// Returns the messages of sessions that `owner` owns and has not taken, oldest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn waiting(&self, owner: &str) -> Result<Vec<Post>, LogError>;

    /// Marks a message as taken, with an answer for its sender.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn answer(&self, post: &Post, answer: &str) -> Result<(), LogError>;

    /// Returns the answer to a message; an empty text if an entry took it. `None` if it waits.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn answered(&self, id: &str) -> Result<Option<String>, LogError>;

    /// Listens to notices for a server until the stream is dropped. After a lost connection it begins with
    /// [`Notice::Again`].
    fn notices(&self, server: &str) -> BoxStream<'static, Notice>;
}

/// A notice of the store. It may be lost, so its reader looks into the store now and then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something may have been missed: look at everything.
    Again,
    /// A session of this server has a message.
    Inbox(SessionId),
    /// A session without an owner has work.
    Work,
    /// A message that this server took in is answered.
    Answered(String),
    /// The owner of a session changed.
    Moved(SessionId),
    /// A small value changed.
    Preference,
}

/// Ports that only a store for several servers has.
pub trait ClusterStore: Servers + SessionInbox + SharedFolders {}

impl<T: Servers + SessionInbox + SharedFolders> ClusterStore for T {}
