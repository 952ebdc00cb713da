//! State that the handlers share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId};
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
use crate::routes::Uploads;
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
    /// Returns the metrics of the sessions, in the text format of Prometheus.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The audit log, and the limits of users.
    pub accounts: Arc<dyn Accounts>,
    /// Web push.
    pub push: PushPorts,
    /// Shows a warning to whoever runs the server.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
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
}

/// The state as handlers get it.
pub(crate) type Shared = Arc<App>;

/// Locks a mutex whose data stays valid if a holder panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values by session.
pub(crate) type BySession<T> = Mutex<HashMap<SessionId, T>>;
