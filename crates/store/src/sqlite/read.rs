//! Reads on blocking threads, so that async threads never wait.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use windlass_core::log::LogError;

use super::connection;
use super::writer::Opening;

/// Maximum number of idle connections to keep.
const KEPT: usize = 4;

/// Connections for reading. A new one is opened when all are in use.
#[derive(Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    opening: Arc<Opening>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Creates readers for a database that is still being opened.
    pub(super) fn new(path: &Path, opening: Arc<Opening>) -> Self {
        Self {
            path: Arc::new(path.to_owned()),
            opening,
            idle: Arc::default(),
        }
    }

    /// Waits until the database can be read.
    pub(super) fn ready(&self) -> Result<(), LogError> {
        self.opening.wait()
    }

    /// Runs a query.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let readers = self.clone();
        off_thread(move || {
            let connection = readers.take()?;
            let found = query(&connection);
            readers.give_back(connection);
            found
        })
        .await
    }

    fn take(&self) -> Result<Connection, LogError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match kept {
            Some(connection) => Ok(connection),
            None => {
                self.ready()?;
                connection::reader(&self.path)
            }
        }
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }
}

/// Runs work that waits for the disk on a blocking thread.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(LogError::Failed(error.to_string())),
    }
}
