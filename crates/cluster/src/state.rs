//! State that the parts of this server share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use windlass_api::{Backend, ClientError, LocalSessions, SessionFolders, SessionId};
use windlass_core::clock::Clock;
use windlass_core::log::{ClusterStore, ServerInfo, Store};

use crate::boot_time;
use crate::moving::WorkEnd;
use crate::term::{OwnLease, Term};
use crate::wire::ClusterWire;

/// News that a slow reader may be behind.
const NEWS: usize = 4_096;

/// Status that streams end with when the deadline has passed.
pub(crate) const LOST: &str = "lost contact with the store; a server with contact continues the turn";

/// Configuration of a server of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The server, as it announces itself.
    pub server: ServerInfo,
    /// Its lease.
    pub term: Term,
}

/// Connections of a server of a cluster.
#[derive(Clone)]
pub struct ClusterPorts {
    /// Sessions.
    pub store: Arc<dyn Store>,
    /// Servers, and the inbox.
    pub cluster: Arc<dyn ClusterStore>,
    /// Runs the sessions of this server.
    pub local: Arc<dyn Backend>,
    /// Opens them and lets them go.
    pub sessions: Arc<dyn LocalSessions>,
    /// Stores their folders, and rebuilds those of others.
    pub folders: Arc<dyn SessionFolders>,
    /// Reaches other servers.
    pub wire: Arc<dyn ClusterWire>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Shows a warning to whoever runs the server.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
    /// Told when small values of the store may have changed.
    pub changed: Arc<Notify>,
    /// Moves the time since boot at which the processes of this server end, if it does not end them itself.
    pub warden: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// News for the streams of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The owner of a session changed.
    Moved(SessionId),
    /// Any owner may have changed.
    Again,
    /// Contact with the store is lost.
    Lost,
}

/// Counts since the server started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) beats: AtomicU64,
    pub(crate) failed_beats: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) taken_over: AtomicU64,
    pub(crate) posted: AtomicU64,
    pub(crate) taken: AtomicU64,
    pub(crate) mirrors: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Small values shared by the tasks of this server.
#[derive(Debug)]
pub(crate) struct Flags {
    /// True if a session of this server had unfinished work at the last heartbeat.
    pub(crate) has_own: AtomicBool,
    /// Milliseconds by which this server's clock is ahead of the store's.
    pub(crate) ahead_ms: AtomicI64,
    /// True once the server gives its sessions back.
    pub(crate) is_leaving: AtomicBool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            has_own: AtomicBool::new(true),
            ahead_ms: AtomicI64::default(),
            is_leaving: AtomicBool::default(),
        }
    }
}

/// The shared state.
pub(crate) struct Shared {
    pub(crate) config: ClusterConfig,
    pub(crate) ports: ClusterPorts,
    lease: Mutex<OwnLease>,
    pub(crate) news: broadcast::Sender<News>,
    /// Wakes the task that claims sessions.
    pub(crate) work: Notify,
    /// Wakes the task that compares the store with what is open here.
    pub(crate) compare: Notify,
    /// Wakes the task that empties the inbox.
    pub(crate) inbox: Notify,
    /// Wakes those who wait for the answer to a message.
    pub(crate) answers: Mutex<HashMap<String, Arc<Notify>>>,
    /// Messages that are being carried out.
    pub(crate) in_hand: Mutex<HashSet<String>>,
    /// Work for other servers that takes longer than a question, by id.
    pub(crate) works_long: Mutex<HashMap<String, WorkEnd>>,
    pub(crate) counts: Counts,
    pub(crate) flags: Flags,
}

impl Shared {
    pub(crate) fn new(config: ClusterConfig, ports: ClusterPorts) -> Self {
        Self {
            lease: Mutex::new(OwnLease::new(config.term)),
            config,
            ports,
            news: broadcast::channel(NEWS).0,
            work: Notify::new(),
            compare: Notify::new(),
            inbox: Notify::new(),
            answers: Mutex::default(),
            in_hand: Mutex::default(),
            works_long: Mutex::default(),
            counts: Counts::default(),
            flags: Flags::default(),
        }
    }

    /// Returns the id of this server.
    pub(crate) fn id(&self) -> &str {
        &self.config.server.id
    }

    pub(crate) fn lease(&self) -> MutexGuard<'_, OwnLease> {
        lock(&self.lease)
    }

    /// Returns true if this server may act.
    pub(crate) fn holds(&self) -> bool {
        self.lease().holds(boot_time::now())
    }

    /// Returns true if this server works, and does not stop.
    pub(crate) fn works(&self) -> bool {
        self.holds() && !self.flags.is_leaving.load(Ordering::SeqCst)
    }

    /// Fails if this server must not act.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        match self.holds() {
            true => Ok(()),
            false => Err(ClientError::Setup(
                "this server has lost contact with the store; try again, or use another server".to_owned(),
            )),
        }
    }

    /// Returns true if this server has the place of a session; a session without one can go anywhere.
    pub(crate) fn has_place(&self, home: Option<&str>) -> bool {
        home.is_none_or(|home| self.config.server.places.iter().any(|place| place == home))
    }

    /// Passes news on. Nobody may listen.
    pub(crate) fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
