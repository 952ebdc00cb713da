//! The one thread that writes.

use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;
use windlass_core::log::{Durability, LogError};

use super::failure::told;

/// The most writes of one transaction.
const GROUP: usize = 256;

/// Hands work to the thread. The thread ends with the last of these.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: Sender<Job>,
}

struct Job {
    durability: Durability,
    work: Box<dyn FnOnce(&Connection) -> Tell + Send>,
}

/// Tells whoever asked, once it is known whether the transaction was committed.
type Tell = Box<dyn FnOnce(Result<(), LogError>) + Send>;

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, LogError> {
        let (jobs, queue) = channel();
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write(&connection, &queue))
            .map_err(|error| LogError::Failed(error.to_string()))?;
        Ok(Self { jobs })
    }

    /// Runs work in a transaction, perhaps together with others'; each fails alone. What is queued is done in order, also
    /// when nobody waits for it any more.
    pub(super) fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> impl Future<Output = Result<T, LogError>> + Send + 'static {
        let (sender, receiver) = oneshot::channel();
        let work = move |connection: &Connection| -> Tell {
            let done = alone(connection, work);
            Box::new(move |committed: Result<(), LogError>| {
                let _ = sender.send(done.and_then(|value| committed.map(|()| value)));
            })
        };
        let sent = self.jobs.send(Job {
            durability,
            work: Box::new(work),
        });
        async move {
            let gone = || LogError::Failed("the store has stopped".to_owned());
            sent.map_err(|_| gone())?;
            receiver.await.map_err(|_| gone())?
        }
    }
}

/// Writes something small, for whoever wants what came before it on the disk.
pub(super) fn touch(connection: &Connection) -> Result<(), LogError> {
    connection
        .execute("UPDATE beat SET count = count + 1", [])
        .map(drop)
        .map_err(told)
}

fn write(connection: &Connection, queue: &Receiver<Job>) {
    let mut synced = Durability::Process;
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        let wanted = match group.iter().any(|job| job.durability == Durability::Disk) {
            true => Durability::Disk,
            false => Durability::Process,
        };
        if wanted != synced {
            let word = if wanted == Durability::Disk {
                "FULL"
            } else {
                "NORMAL"
            };
            if connection.pragma_update(None, "synchronous", word).is_ok() {
                synced = wanted;
            }
        }
        transact(connection, group);
    }
}

fn transact(connection: &Connection, group: Vec<Job>) {
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        let error = told(error);
        for job in group {
            (job.work)(connection)(Err(error.clone()));
        }
        return;
    }
    let tells: Vec<Tell> = group.into_iter().map(|job| (job.work)(connection)).collect();
    let committed = connection.execute_batch("COMMIT").map_err(told);
    if committed.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    for tell in tells {
        tell(committed.clone());
    }
}

/// Runs work that leaves nothing behind when it fails.
fn alone<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, LogError>,
) -> Result<T, LogError> {
    if connection.is_autocommit() {
        // The transaction could not begin; nothing may be written outside of one.
        return Err(LogError::Failed("no transaction".to_owned()));
    }
    connection.execute_batch("SAVEPOINT one").map_err(told)?;
    let done = work(connection);
    let end = if done.is_ok() {
        "RELEASE one"
    } else {
        "ROLLBACK TO one; RELEASE one"
    };
    connection.execute_batch(end).map_err(told)?;
    done
}
