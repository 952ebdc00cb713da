//! State that the handlers share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId, UserName};
use windlass_core::clock::Clock;
use windlass_core::log::Store;

use crate::access::ServerAccess;
use crate::accounts::Accounts;
use crate::carried::Carried;
use crate::checks::Failures;
use crate::coarse::Coarse;
use crate::credentials::Credentials;
use crate::hub::Hubs;
use crate::metrics::Metrics;
use crate::push::{Push, PushPorts};
use crate::questions::Answers;
use crate::routes::{Imports, Uploads};
use crate::sends::Sends;
use crate::server::ServerConfig;

/// Everything the server needs from the program.
#[derive(Clone)]
pub struct ServerPorts {
    /// Runs sessions.
    pub backend: Arc<dyn Backend>,
    /// Sessions, credentials, costs.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Files of a session's folder.
    pub files: Arc<dyn Files>,
    /// Stores uploaded sessions.
    pub imports: Arc<dyn SessionImports>,
    /// Returns the metrics of the sessions, in the text format of Prometheus.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The audit log, and the limits of users.
    pub accounts: Arc<dyn Accounts>,
    /// Web push.
    pub push: PushPorts,
    /// Shows a warning to whoever runs the server.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
    /// Told when small values of the store may have changed, such as credentials; `None` if the store does not tell.
    pub changed: Option<Arc<Notify>>,
}

/// SRV-1: files of a session's folder, under the same limits as the session's own tools.
#[async_trait]
pub trait Files: Send + Sync {
    /// Checks that a session may work in a folder.
    ///
    /// # Errors
    /// A sentence for the user, if it does not exist or is the home folder.
    async fn check(&self, place: &str) -> Result<(), String>;

    /// Returns the names of files that match, best first, relative to the folder.
    async fn find(&self, place: &str, words: &str, limit: usize) -> Vec<String>;

    /// Reads a file, at most `limit` bytes.
    ///
    /// # Errors
    /// A sentence for the user, if the file is denied, outside the folder, or cannot be read.
    async fn read(&self, place: &str, path: &str, limit: u64) -> Result<Vec<u8>, String>;
}

/// SES-14: reads the session files of Windlass and of other agents.
#[async_trait]
pub trait SessionImports: Send + Sync {
    /// Stores a session that can be resumed. Must store nothing if it returns an error.
    ///
    /// # Errors
    /// If the file is of no known format, damaged, or cannot be stored.
    async fn import(&self, upload: UploadedSession) -> Result<ImportedSession, ImportRefusal>;
}

/// A session file.
#[derive(Debug)]
pub struct UploadedSession {
    /// Name of the file, for messages.
    pub name: String,
    /// Its content.
    pub text: String,
    /// True to import the part that can be read.
    pub lenient: bool,
    /// User that it belongs to from now on.
    pub user: UserName,
}

/// An imported session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImportedSession {
    /// Its id.
    pub id: SessionId,
    /// Program that wrote the file: `windlass`, `claude-code`, `codex` or `pi`.
    pub from: String,
    /// Number of messages.
    pub messages: usize,
    /// Content that was skipped on purpose, with counts.
    pub skipped: BTreeMap<String, usize>,
    /// Content that could not be read: location and reason.
    pub damaged: Vec<String>,
}

/// Reason why a file was not imported.
#[derive(Debug)]
pub enum ImportRefusal {
    /// It is no session.
    Unknown(String),
    /// Parts of it cannot be read: location and reason of each.
    Damaged(Vec<String>),
    /// It could not be stored.
    Failed(String),
}

/// The server's state.
pub(crate) struct App {
    pub(crate) ports: ServerPorts,
    pub(crate) config: ServerConfig,
    pub(crate) access: ServerAccess,
    /// Identifies this run of the server.
    pub(crate) epoch: String,
    pub(crate) credentials: Credentials,
    pub(crate) failures: Failures,
    pub(crate) hubs: Arc<Hubs>,
    pub(crate) coarse: Arc<Coarse>,
    pub(crate) push: Arc<Push>,
    pub(crate) inputs: Inputs,
    pub(crate) metrics: Metrics,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
}

/// Input of clients.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) sends: Sends,
    pub(crate) answers: Answers,
    pub(crate) carried: Arc<Carried>,
    pub(crate) uploads: Uploads,
    pub(crate) imports: Imports,
}

/// The state as handlers get it.
pub(crate) type Shared = Arc<App>;

/// Locks a mutex whose data stays valid if a holder panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values by session.
pub(crate) type BySession<T> = Mutex<HashMap<SessionId, T>>;
