//! State that the handlers share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId};
use windlass_core::clock::Clock;
use windlass_core::log::Store;

use crate::access::Access;
use crate::carried::Carried;
use crate::checks::Failures;
use crate::coarse::Coarse;
use crate::credentials::Credentials;
use crate::hub::Hubs;
use crate::questions::Answers;
use crate::routes::Uploads;
use crate::sends::Sends;

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
    pub(crate) access: Access,
    /// Folder of new sessions that name none.
    pub(crate) place: String,
    pub(crate) version: &'static str,
    /// Identifies this run of the server.
    pub(crate) epoch: String,
    pub(crate) credentials: Credentials,
    pub(crate) failures: Failures,
    pub(crate) hubs: Hubs,
    pub(crate) coarse: Arc<Coarse>,
    pub(crate) inputs: Inputs,
    pub(crate) uploads: Uploads,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
}

/// What clients sent.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) sends: Sends,
    pub(crate) answers: Answers,
    pub(crate) carried: Arc<Carried>,
}

/// The state as handlers get it.
pub(crate) type Shared = Arc<App>;

/// Locks a mutex whose data stays valid if a holder panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values by session.
pub(crate) type BySession<T> = Mutex<HashMap<SessionId, T>>;
