//! Stores sessions in Postgres, so that several processes and machines share them.
//!
//! This crate implements the ports of [`windlass_core::log`], as the `store` crate does on SQLite. No SQL and no type
//! of the database leaves it.
//!
//! - [`PostgresStore::begin`] starts to connect; [`PostgresStore::wait`] waits until the tables are there.
//! - [`Liveness`] tells whether the owner of a lease is alive.
//!
//! Every store has one thread with a few connections. Appends of different sessions that arrive at the same time are
//! committed together, and the fence of each session is checked in the statement. If a connection is lost, work waits
//! for the server; a commit whose outcome is unknown is looked up, never sent again blindly. `docs/store.md` describes
//! the tables.

mod address;
mod agents;
mod append;
mod audit;
mod blobs;
mod books;
mod cluster;
mod context;
mod entries;
mod exchanges;
mod failure;
mod find;
mod folders;
mod goals;
mod group;
mod lease;
mod memory;
mod opening;
mod ports;
mod schema;
mod search;
mod slots;
mod sql;
mod times;
mod tls;
pub mod transfer;

use std::sync::{Arc, OnceLock};

use deadpool_postgres::{Object, Transaction};
use windlass_core::clock::Clock;
use windlass_core::log::{LogError, ServerInfo};

use self::address::Address;
use self::context::Thread;
use self::failure::Fault;
use self::times::AppendTimes;

/// Tells whether an owner of sessions is alive. The second argument is true if the term of its lease has not ended.
pub type Liveness = fn(owner: &str, is_within_term: bool) -> bool;

/// Sessions in a Postgres database. Cheap to clone; dropping the last handle waits until all work is done.
#[derive(Clone)]
pub struct PostgresStore {
    thread: Arc<Thread>,
    /// Server of a cluster that this process is.
    server: Arc<OnceLock<ServerInfo>>,
    clock: Arc<dyn Clock>,
    times: Arc<AppendTimes>,
}

impl PostgresStore {
    /// Starts to connect to the database at a URL, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Makes its tables if
    /// they do not exist, and migrates older versions. Requests made meanwhile wait, and fail if the database cannot
    /// be used.
    ///
    /// # Errors
    /// When the URL is not valid, or the system refuses to create the thread.
    pub fn begin(url: &str, clock: Arc<dyn Clock>, lives: Liveness) -> Result<Self, LogError> {
        let times = Arc::<AppendTimes>::default();
        let work = (Arc::clone(&clock), lives, Arc::clone(&times));
        let thread = Thread::start(Address::parse(url)?, work)?;
        Ok(Self {
            thread: Arc::new(thread),
            server: Arc::default(),
            clock,
            times,
        })
    }

    /// Waits until the database can be used. Blocks the thread.
    ///
    /// # Errors
    /// When the server cannot be reached, is too old or refuses the user, or the tables are newer than this program.
    pub fn wait(&self) -> Result<(), LogError> {
        self.thread.wait()
    }

    /// Returns the server of a cluster that owns sessions under this name, if this process is it.
    fn server_of(&self, owner: &str) -> Option<ServerInfo> {
        self.server.get().filter(|server| server.id == owner).cloned()
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Object) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        self.thread
            .run(async move |context| context.read(work).await)
            .await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Transaction<'_>, bool) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        self.thread
            .run(async move |context| context.write(work).await)
            .await
    }
}

/// Returns the URL of a database without its password, for people.
///
/// # Errors
/// When the URL is not valid.
pub fn shown(url: &str) -> Result<String, LogError> {
    Ok(Address::parse(url)?.to_string())
}
